"""Records of questions and feedback."""

from datetime import datetime
from typing import Literal

from schemas.answer import Confidence, Page
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.question import AnswerMode, Filters, QuestionType

Score = Literal[-1, 0, 1]
"""-1: not helpful, 0: withdraws earlier feedback, 1: helpful."""


class Feedback(ApiModel):
    """The caller's feedback on an answer."""

    score: Score
    comment: str = ""


class RecordedPage(Page):
    """A cited page and the document that it belongs to."""

    source: str
    document_id: str


class QuestionRecord(ApiModel):
    """A question and its outcome. Secrets are masked in every text."""

    id: str
    """The answer's id."""
    owner: str
    """The id of the caller's API key; empty without keys."""
    asked_at: datetime
    """With time zone."""
    session: str | None
    question: str
    """The caller's wording."""
    understood: str = ""
    """The standalone question without pasted details."""
    language: Language | None
    """The requested language, or that of the answer."""
    mode: AnswerMode
    k: int | None
    filters: Filters
    type: QuestionType | None = None
    """None without an answer."""
    api_name: str | None = None
    api_url: str | None = None
    error: str | None = None
    """The error code or message in the question."""
    confidence: Confidence | None = None
    answer: tuple[str, ...] = ()
    pages: tuple[RecordedPage, ...] = ()
    """The cited pages."""
    nearest: Page | None = None
    """The best matching page, cited or not."""
    coverage: float | None = None
    """Share (0 to 1) of the question's words that the cited chunks contain, weighted by rarity."""
    answered_by: str = ""
    degraded: str | None = None
    """A `DegradedReason`; free text in records of earlier versions."""
    cached: bool = False
    milliseconds: int
    failure: str | None = None
    """The code of the error that was returned instead of an answer."""
    feedback: Feedback | None = None
