"""A request to answer a question, with its options, and the interface of answerers."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from schemas.answer import Answer, EventSink
from schemas.choices import Language
from schemas.errors import QuestionError, QuestionTooLong
from schemas.question import AnswerMode, Filters, Question, Turn
from schemas.settings import Settings

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler

    from app.masking.masking import SecretScan


@dataclass(frozen=True)
class AskCommand:
    """A question with the options of its caller. Every field except `text` is optional."""

    text: str
    k: int | None = None
    """Maximum number of chunks to retrieve; None means APIDESK_TOP_K."""
    language: Language | None = None
    """The language of the answer; None means the language of the question."""
    filters: Filters | None = None
    """Conditions that the chunks must meet; None means all chunks."""
    mode: AnswerMode = "pipeline"
    session: str | None = None
    """The session that the question belongs to; None for a question without a session."""
    owner: str = ""
    """Id of the caller, who owns the session and the entry in the question log.

    Empty if no API key is required.
    """
    account: str = ""
    """The account under which the tokens are counted (see `Caller.account`)."""
    fresh: bool = False
    """Whether to ignore a cached answer. The new answer is still cached."""
    question: Question | None = field(default=None, repr=False)
    """The question that CachingAnswerer (see `middleware.py`) built from `text`.

    None means that the answer service builds it.
    """
    secret_scan: "SecretScan | None" = field(default=None, repr=False)
    """The scan of `text` for secrets, which RecordingAnswerer adds; None before that."""
    history: tuple[Turn, ...] = ()
    """The earlier turns of the session, oldest first."""
    callbacks: "tuple[BaseCallbackHandler, ...]" = field(default=(), repr=False)
    """LangChain callbacks for this run."""


@runtime_checkable  # Litestar checks with `isinstance` that a dependency has the declared type
class Answerer(Protocol):
    """Answers questions, as the answer service and its middleware do."""

    def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Awaitable[Answer]:
        """Return the answer. `on_event` receives the events of the answer. Raises ApideskError."""


def check_question(text: str, settings: Settings, field: str = "question") -> None:
    """Raise QuestionError if the question is blank or too long. The message begins with `field`."""
    if not text.strip():
        raise QuestionError(f"{field}: must not be blank", field=field)
    if len(text) > settings.max_question_chars:
        raise QuestionTooLong(
            f"{field}: {len(text)} characters, at most {settings.max_question_chars} are allowed",
            field=field,
        )
