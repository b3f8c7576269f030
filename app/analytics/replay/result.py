"""Replay results: the JSON that `apidesk replay --json` prints."""

from collections import Counter
from collections.abc import Iterable
from statistics import fmean
from typing import Literal, Self

from pydantic import Field, computed_field

from schemas.answer import Page
from schemas.base import ApiModel
from schemas.question import QuestionType
from schemas.record import QuestionRecord

ReplayVerdict = Literal["high", "medium", "low", "off-topic", "failed"]
"""The confidence of an answer, or the reason why there is none."""

VERDICTS: tuple[ReplayVerdict, ...] = ("high", "medium", "low", "off-topic", "failed")

ReplayChange = Literal[
    "failed", "lost", "won", "other type", "other confidence", "other pages", "other words", "same"
]
"""The most severe difference. `lost` and `won`: the answer lost or gained its citations."""

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
"""The most severe first."""


class ReplayOutcome(ApiModel):
    """The outcome of a question: its answer, or the error."""

    type: QuestionType | None
    verdict: ReplayVerdict
    pages: list[Page]
    """Cited pages, without duplicates."""
    steps: list[str]
    answered_by: str
    failure: str | None
    """Error code, if there was no answer."""

    @classmethod
    def of(cls, record: QuestionRecord) -> Self:
        """The outcome stored in `record`."""
        return cls(
            type=record.type,
            verdict=_verdict(record),
            pages=_distinct(record.pages),
            steps=list(record.answer),
            answered_by=record.answered_by,
            failure=record.failure,
        )

    @property
    def page_keys(self) -> set[str]:
        """Keys of the cited pages."""
        return set(map(page_key, self.pages))


class ReplayedQuestion(ApiModel):
    """A question with its recorded and its new outcome."""

    id: str
    """Id of the record."""
    question: str
    times: int
    """Number of times it was asked."""
    before: ReplayOutcome
    after: ReplayOutcome

    @computed_field  # type: ignore[prop-decorator]
    @property
    def overlap(self) -> float:
        """Jaccard similarity of the cited pages, 0 to 1; 1 if neither answer cites a page."""
        before, after = self.before.page_keys, self.after.page_keys
        return len(before & after) / len(before | after) if before | after else 1.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def change(self) -> ReplayChange:
        """The most severe change."""
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
    """Recorded questions, asked again."""

    days: int
    recorded: int = Field(alias="kept")
    """Number of distinct recorded questions, of which the newest are replayed."""
    settings: str
    """Model and k of the replay."""
    questions: list[ReplayedQuestion]

    @property
    def changes(self) -> Counter[ReplayChange]:
        """Number of questions per kind of change."""
        return Counter(each.change for each in self.questions)

    @property
    def overlap(self) -> float:
        """Mean overlap of the questions."""
        return fmean(each.overlap for each in self.questions)


def page_key(page: Page) -> str:
    """Identity of a page: its url, or its title if it has no url."""
    return page.page_url or page.title


def _verdict(record: QuestionRecord) -> ReplayVerdict:
    if record.type is None or record.confidence is None:
        return "failed"
    return "off-topic" if record.type == "unknown" else record.confidence


def _distinct(pages: Iterable[Page]) -> list[Page]:
    plain = (Page(title=page.title, page_url=page.page_url) for page in pages)
    return list({page_key(page): page for page in plain}.values())
