"""Records of questions and feedback, and the insights report: statistics and documentation gaps."""

from datetime import date, datetime
from typing import Literal

from pydantic import JsonValue

from schemas.answer import Confidence, Page
from schemas.base import ApiModel
from schemas.choices import TABLES, Language, TableName
from schemas.question import AnswerMode, Filters, QuestionType

Score = Literal[-1, 0, 1]
"""-1: not helpful, 0: withdraws earlier feedback, 1: helpful."""

MAX_QUESTION_CHARS = 2_000
"""Maximum length of a question that is analysed, in characters; longer questions are truncated."""


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
    """The id of the caller, usually that of an API key; empty if no API key is configured."""
    asked_at: datetime
    """With time zone."""
    session: str | None
    question: str
    """The caller's wording."""
    understood: str = ""
    """The standalone question: the field `question` of the answer."""
    language: Language | None
    """The requested language or, if none was requested, the language of the answer."""
    mode: AnswerMode
    k: int | None
    filters: Filters
    type: QuestionType | None = None
    """None if the caller got an error instead of an answer."""
    api_name: str | None = None
    api_url: str | None = None
    error: str | None = None
    """The error code or message in the question."""
    confidence: Confidence | None = None
    answer: tuple[str, ...] = ()
    pages: tuple[RecordedPage, ...] = ()
    """The cited pages."""
    nearest: Page | None = None
    """The page that the answer suggests or, without a suggestion, cites first."""
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


class TypeCount(ApiModel):
    """Questions of one type on one day."""

    day: date
    """In UTC."""
    type: QuestionType | None
    """None if the caller got an error instead of an answer."""
    questions: int


class ApiCount(ApiModel):
    """Questions about one API on one day."""

    day: date
    """In UTC."""
    api_name: str
    api_url: str
    questions: int
    unanswered: int
    """Number of these questions whose answer was rated negatively or, without a rating, has low confidence
    or no sources.
    """


class ErrorCount(ApiModel):
    """How many questions contain an error code or, for an error without a code, its message."""

    error: str
    """The code, or the message of an error without a code."""
    questions: int
    messages: tuple[str, ...] = ()
    """Up to three messages that questions contain in addition to the code, the most frequent first."""


class Gap(ApiModel):
    """A topic of several questions that the documentation does not answer."""

    question: str
    """The most typical wording."""
    size: int
    """Number of questions; repetitions by one caller on one day count once."""
    wordings: tuple[str, ...]
    """Up to 50 distinct wordings: first the most typical one, then the others, newest first."""
    missing: tuple[str, ...]
    """Words that the questions share, but the documents do not contain in any form."""
    nearest: Page | None
    """The page that is most often the nearest page of these questions. Deleted pages are skipped."""
    first_asked: datetime
    last_asked: datetime
    name: str = ""
    """A name for the topic, written by a model; empty if no model named it."""


class RatedAnswer(ApiModel):
    """An answer with feedback from its caller."""

    id: str
    asked_at: datetime
    question: str
    confidence: Confidence | None
    score: Score
    comment: str


class Insights(ApiModel):
    """The report on recent questions."""

    days: int
    """Number of days that the report covers, up to the time when it is made."""
    questions: int
    unanswered: int
    """Number of on-topic questions whose answer was rated negatively or, without a rating, has low
    confidence or no sources.
    """
    off_topic_share: float
    """Share of off-topic questions among those that got an answer instead of an error, 0 to 1."""
    cached_share: float
    """Share of reused answers (`Answer.cached`) among all answers, 0 to 1."""
    notes: tuple[str, ...] = ()
    """Limitations of the report."""
    by_type: tuple[TypeCount, ...] = ()
    """In date order."""
    by_api: tuple[ApiCount, ...] = ()
    """The API with the most questions first."""
    gaps: tuple[Gap, ...] = ()
    """The largest gap first."""
    errors: tuple[ErrorCount, ...] = ()
    """The most frequent error first."""
    feedback: tuple[RatedAnswer, ...] = ()
    """The lowest score first; with equal scores, the latest first."""

    def as_json(self, table: TableName | None = None) -> dict[str, JsonValue]:
        """Return the report as JSON. If `table` is given, the other tables are omitted."""
        body: dict[str, JsonValue] = self.model_dump(mode="json", by_alias=True)
        return {name: body[name] for name in body if name not in TABLES or table in (None, name)}
