"""What the questions of some days tell about the platform and its documentation."""

from datetime import date, datetime

from schemas.answer import Confidence, Page
from schemas.question import QuestionType
from schemas.record import Score
from schemas.wire import WireModel


class TypeCount(WireModel):
    """Questions of one type on one day."""

    day: date
    """In UTC."""
    type: QuestionType | None
    """None: the caller got an error instead of an answer."""
    questions: int


class ApiCount(WireModel):
    """Questions about one API on one day."""

    day: date
    api_name: str
    api_url: str
    questions: int
    unanswered: int
    """How many of them count as gaps."""


class ErrorCount(WireModel):
    """Questions that name one error."""

    error: str
    questions: int


class Gap(WireModel):
    """What several questions ask for and the documentation does not answer."""

    question: str
    """The most typical of its wordings."""
    size: int
    wordings: list[str]
    """Each once, as they were asked."""
    nearest: Page | None
    """The page that most of them came nearest to."""
    first_asked: datetime
    last_asked: datetime


class Rated(WireModel):
    """An answer that its caller judged."""

    id: str
    asked_at: datetime
    question: str
    confidence: Confidence | None
    score: Score
    comment: str


class Insights(WireModel):
    """The questions of the last days; what is largest comes first, what has a day is by day."""

    days: int
    questions: int
    off_topic_share: float
    """0 to 1, of the questions that were answered."""
    cached_share: float
    """0 to 1, of the questions that were answered."""
    by_type: list[TypeCount]
    by_api: list[ApiCount]
    errors: list[ErrorCount]
    gaps: list[Gap]
    feedback: list[Rated]
