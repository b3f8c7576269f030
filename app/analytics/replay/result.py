"""What became of a question then, and what becomes of it now."""

from collections import Counter
from collections.abc import Iterable
from statistics import fmean
from typing import Literal, Self

from pydantic import computed_field

from schemas.answer import Page
from schemas.base import ApiModel
from schemas.question import QuestionType
from schemas.record import QuestionRecord

ReplayVerdict = Literal["high", "medium", "low", "off-topic", "failed"]
"""The confidence of an answer, or why there is none."""

VERDICTS: tuple[ReplayVerdict, ...] = ("high", "medium", "low", "off-topic", "failed")

ReplayChange = Literal[
    "failed", "lost", "won", "other type", "other confidence", "other pages", "other words", "same"
]
"""`lost` and `won` are answers that cite something."""

CHANGES: tuple[ReplayChange, ...] = (
    "failed",
    "lost",
    "won",
    "other type",
    "other confidence",
    "other pages",
    "other words",
    "same",
)
"""What weighs most comes first."""


class ReplayOutcome(ApiModel):
    """What became of a question."""

    type: QuestionType | None
    verdict: ReplayVerdict
    pages: list[Page]
    """What the answer cites, each once."""
    steps: list[str]
    answered_by: str
    failure: str | None
    """The code of the error that there was instead of an answer."""

    @classmethod
    def of(cls, record: QuestionRecord) -> Self:
        """What `record` says of it."""
        return cls(
            type=record.type,
            verdict=_verdict(record),
            pages=_distinct(record.pages),
            steps=list(record.answer),
            answered_by=record.answered_by,
            failure=record.failure,
        )

    @property
    def addresses(self) -> set[str]:
        """The pages, by what tells them apart."""
        return set(map(address, self.pages))


class Replayed(ApiModel):
    """A question, then and now."""

    id: str
    """The record's."""
    question: str
    times: int
    """How often it was asked."""
    before: ReplayOutcome
    after: ReplayOutcome

    @computed_field  # type: ignore[prop-decorator]
    @property
    def overlap(self) -> float:
        """Pages cited both times among all that were cited, 0 to 1 (Jaccard); 1 where there are none."""
        before, after = self.before.addresses, self.after.addresses
        return len(before & after) / len(before | after) if before | after else 1.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def change(self) -> ReplayChange:
        """What weighs most of what has changed."""
        before, after = self.before, self.after
        if after.verdict == "failed":
            return "failed"
        if bool(before.pages) != bool(after.pages):
            return "lost" if before.pages else "won"
        if before.type != after.type:
            return "other type"
        if before.verdict != after.verdict:
            return "other confidence"
        if self.overlap < 1:
            return "other pages"
        return "same" if before.steps == after.steps else "other words"


class Replay(ApiModel):
    """Kept questions, asked again."""

    days: int
    kept: int
    """Different questions of these days; those that were asked again are the newest."""
    settings: str
    """With what they were asked now."""
    questions: list[Replayed]

    @property
    def changes(self) -> Counter[ReplayChange]:
        """How many changed how."""
        return Counter(each.change for each in self.questions)

    @property
    def overlap(self) -> float:
        """Mean of the questions'."""
        return fmean(each.overlap for each in self.questions)


def address(page: Page) -> str:
    """What tells a page from others: its url, or its title where it has none."""
    return page.page_url or page.title


def _verdict(record: QuestionRecord) -> ReplayVerdict:
    if record.type is None or record.confidence is None:
        return "failed"
    return "off-topic" if record.type == "unknown" else record.confidence


def _distinct(pages: Iterable[Page]) -> list[Page]:
    named = (Page(title=page.title, page_url=page.page_url) for page in pages)
    return list({address(page): page for page in named}.values())
