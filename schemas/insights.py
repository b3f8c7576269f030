"""What the questions of some days tell about the platform and its documentation."""

from datetime import date, datetime
from typing import Literal, get_args

from pydantic import JsonValue

from schemas.answer import Confidence, Page
from schemas.base import ApiModel
from schemas.question import QuestionType
from schemas.record import Score

Table = Literal["byType", "byApi", "gaps", "errors", "feedback"]
"""A part of the report that is a table by itself, as it is named on the wire."""

TABLES: tuple[Table, ...] = get_args(Table)


class TypeCount(ApiModel):
    """Questions of one type on one day."""

    day: date
    """In UTC."""
    type: QuestionType | None
    """None: the caller got an error instead of an answer."""
    questions: int


class ApiCount(ApiModel):
    """Questions about one API on one day."""

    day: date
    """In UTC."""
    api_name: str
    api_url: str
    questions: int
    unanswered: int
    """Of them: low confidence, no sources, or bad feedback."""


class ErrorCount(ApiModel):
    """Questions that name one error."""

    error: str
    questions: int


class Gap(ApiModel):
    """What several questions ask for and the documentation does not answer."""

    question: str
    """The most typical of its wordings."""
    size: int
    """Questions; what one caller asked again in the same words on the same day is one."""
    wordings: tuple[str, ...]
    """Each once, the most typical first, then the newest; the first 50."""
    missing: tuple[str, ...]
    """Words that its questions share and the documents do not hold."""
    nearest: Page | None
    """The page that most of them came nearest to."""
    first_asked: datetime
    last_asked: datetime
    name: str = ""
    """What a chat model calls it; empty where none was asked."""


class Rated(ApiModel):
    """An answer that its caller judged."""

    id: str
    asked_at: datetime
    question: str
    confidence: Confidence | None
    score: Score
    comment: str


class Insights(ApiModel):
    """The questions of the last days; what is largest comes first, what has a day is by day."""

    days: int
    questions: int
    unanswered: int
    """Of those about the platform: low confidence, no sources, or bad feedback."""
    off_topic_share: float
    """0 to 1, of the questions that were answered."""
    cached_share: float
    """0 to 1, of the questions that were answered."""
    notes: tuple[str, ...] = ()
    """What the report had to do without."""
    by_type: tuple[TypeCount, ...] = ()
    by_api: tuple[ApiCount, ...] = ()
    """The APIs that are asked for most come first."""
    gaps: tuple[Gap, ...] = ()
    errors: tuple[ErrorCount, ...] = ()
    feedback: tuple[Rated, ...] = ()
    """The worst first, then the latest."""

    def as_json(self, table: Table | None = None) -> dict[str, JsonValue]:
        """What goes over the wire: all of it, or of the tables only one."""
        found: dict[str, JsonValue] = self.model_dump(mode="json", by_alias=True)
        return {name: found[name] for name in found if name not in TABLES or table in (None, name)}
