"""What became of a question then, and what becomes of it now."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal, Self

from pydantic import computed_field

from schemas.answer import Answer, Page
from schemas.question import QuestionType
from schemas.record import Record
from schemas.wire import WireModel

Verdict = Literal["high", "medium", "low", "off-topic", "failed"]
"""The confidence of an answer, or why there is none."""

VERDICTS: tuple[Verdict, ...] = ("high", "medium", "low", "off-topic", "failed")

Change = Literal["failed", "lost", "won", "other type", "other confidence", "other pages", "same"]
"""What is worst comes first; `lost` and `won` are answers that cite something."""

CHANGES: tuple[Change, ...] = (
    "failed",
    "lost",
    "won",
    "other type",
    "other confidence",
    "other pages",
    "same",
)


class Outcome(WireModel):
    """What became of a question."""

    type: QuestionType | None
    verdict: Verdict
    pages: list[Page]
    """What the answer cites, each once."""
    steps: list[str]
    answered_by: str
    failure: str | None = None

    @classmethod
    def of_record(cls, record: Record) -> Self:
        """What became of it then."""
        pages = [Page(title=page.title, page_url=page.page_url) for page in record.pages]
        return cls(
            type=record.type,
            verdict=_verdict(record.type, record.confidence),
            pages=_distinct(pages),
            steps=list(record.answer),
            answered_by=record.answered_by,
            failure=record.failure,
        )

    @classmethod
    def of_answer(cls, answer: Answer) -> Self:
        """What becomes of it now."""
        pages = [Page(title=s.title, page_url=s.page_url) for s in answer.sources]
        return cls(
            type=answer.type,
            verdict=_verdict(answer.type, answer.confidence),
            pages=_distinct(pages),
            steps=list(answer.answer),
            answered_by=answer.answered_by,
        )

    @classmethod
    def of_failure(cls, code: str) -> Self:
        """What becomes of it now: an error."""
        return cls(type=None, verdict="failed", pages=[], steps=[], answered_by="", failure=code)

    @property
    def addresses(self) -> set[str]:
        """The pages' urls, or titles where they have none."""
        return {page.page_url or page.title for page in self.pages}


class Replayed(WireModel):
    """A question, then and now."""

    id: str
    """The record's."""
    question: str
    times: int
    """How often it was asked."""
    before: Outcome
    after: Outcome

    @computed_field  # type: ignore[prop-decorator]
    @property
    def overlap(self) -> float:
        """Pages cited both times among all that were cited, 0 to 1 (Jaccard); 1 where there are none."""
        before, after = self.before.addresses, self.after.addresses
        return len(before & after) / len(before | after) if before | after else 1.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def change(self) -> Change:
        """The worst of what has changed."""
        before, after = self.before, self.after
        if after.verdict == "failed":
            return "failed"
        if bool(before.pages) != bool(after.pages):
            return "lost" if before.pages else "won"
        if before.type != after.type:
            return "other type"
        if before.verdict != after.verdict:
            return "other confidence"
        return "other pages" if self.overlap < 1 else "same"


class Replay(WireModel):
    """Kept questions, asked again."""

    days: int
    settings: str
    """With what they were asked now."""
    questions: list[Replayed]

    @property
    def changes(self) -> Counter[Change]:
        """How many changed how."""
        return Counter(each.change for each in self.questions)


def _verdict(question_type: QuestionType | None, confidence: str | None) -> Verdict:
    if question_type is None:
        return "failed"
    if question_type == "unknown":
        return "off-topic"
    return "high" if confidence == "high" else "medium" if confidence == "medium" else "low"


def _distinct(pages: Iterable[Page]) -> list[Page]:
    return list({page.page_url or page.title: page for page in pages}.values())
