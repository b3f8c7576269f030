"""A question with its options, and the interface of everything that answers one."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from schemas.answer import Answer, EventSink
from schemas.choices import Language
from schemas.errors import QuestionError, QuestionTooLong
from schemas.question import AnswerMode, Filters, Turn
from schemas.settings import Settings

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler


@dataclass(frozen=True)
class AskCommand:
    """A question as the caller asked it. Every field except `text` is optional."""

    text: str
    k: int | None = None
    """The number of chunks to retrieve; None means APIDESK_TOP_K."""
    language: Language | None = None
    """The language of the answer; None means the language of the question."""
    filters: Filters | None = None
    mode: AnswerMode = "pipeline"
    session: str | None = None
    """The session that the question belongs to; None for a question without a session."""
    owner: str = ""
    """The id of the caller's API key; empty if no keys are configured."""
    account: str = ""
    """The account that is charged for the tokens."""
    fresh: bool = False
    """Whether to bypass the cache."""
    history: tuple[Turn, ...] = ()
    """The earlier turns of the session, oldest first."""
    callbacks: "tuple[BaseCallbackHandler, ...]" = field(default=(), repr=False)
    """LangChain callbacks for this run."""


@runtime_checkable
class Answerer(Protocol):
    """Answers questions: the answer service, or middleware around it."""

    def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Awaitable[Answer]:
        """Return the answer; `on_event` receives the events on the way. Raises ApideskError."""


def check_question(text: str, settings: Settings) -> None:
    """Raise QuestionError if the question is blank or too long."""
    if not text.strip():
        raise QuestionError("question: is empty", field="question")
    if len(text) > settings.max_question_chars:
        raise QuestionTooLong(
            f"question: {len(text)} characters, at most {settings.max_question_chars} are allowed",
            field="question",
        )
