"""A question that was asked, as it is kept."""

from datetime import datetime
from typing import Literal

from schemas.answer import Confidence, Page
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.question import AnswerMode, Filters, QuestionType

Score = Literal[-1, 0, 1]
"""Did not help; takes back what was said before; helped."""


class Feedback(ApiModel):
    """What its caller thought of an answer."""

    score: Score
    comment: str = ""


class RecordedPage(Page):
    """A page of the documentation that an answer rests on, and the document that it was made from."""

    source: str
    document_id: str


class QuestionRecord(ApiModel):
    """A question, and what became of it. Secrets are masked in every text."""

    id: str
    """The answer's."""
    owner: str
    """The id of the API key that asked; empty where there are no keys."""
    asked_at: datetime
    """With its zone."""
    session: str | None
    question: str
    """In the caller's words."""
    understood: str = ""
    """As it was answered: a follow-up stands by itself, and what was pasted is gone."""
    language: Language | None
    """What the caller asked for, or what was answered in."""
    mode: AnswerMode
    k: int | None
    filters: Filters
    type: QuestionType | None = None
    """None where there was no answer."""
    api_name: str | None = None
    api_url: str | None = None
    error: str | None = None
    """The error that the question names."""
    confidence: Confidence | None = None
    answer: tuple[str, ...] = ()
    pages: tuple[RecordedPage, ...] = ()
    """What the answer cites."""
    nearest: Page | None = None
    """The page that came nearest, be it cited or not."""
    coverage: float | None = None
    """0 to 1: of the question's telling words, those that what is cited holds; rare words count more."""
    answered_by: str = ""
    degraded: str | None = None
    cached: bool = False
    milliseconds: int
    failure: str | None = None
    """The code of the error that the caller got instead of an answer."""
    feedback: Feedback | None = None
