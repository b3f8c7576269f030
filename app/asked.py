"""A question with all that its caller said about it."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from runnables.listener import EventSink
from schemas.answer import Answer
from schemas.conversation import Turn
from schemas.errors import QuestionError, QuestionTooLong
from schemas.language import Language
from schemas.question import AnswerMode, Filters
from schemas.settings import Settings

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler


@dataclass(frozen=True)
class AskCommand:
    """What reaches the desk; all but `text` may be left out."""

    text: str
    k: int | None = None
    language: Language | None = None
    filters: Filters | None = None
    mode: AnswerMode = "pipeline"
    session: str | None = None
    owner: str = ""
    """The id of the API key that asks; empty where there are no keys."""
    account: str = ""
    """What the tokens that it takes are charged to."""
    fresh: bool = False
    """Whether an answer that was given before will not do."""
    history: tuple[Turn, ...] = ()
    """What was said before in the session, oldest first."""
    callbacks: "tuple[BaseCallbackHandler, ...]" = field(default=(), repr=False)
    """They hear of every step and call."""


@runtime_checkable
class Answerer(Protocol):
    """Whoever answers: the desk, or something around it that answers by it."""

    def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Awaitable[Answer]:
        """The answer; `listener` is told how it comes about. Raises ApideskError."""


def check_question(text: str, settings: Settings) -> None:
    """Raises QuestionError for a question that is blank or too long."""
    if not text.strip():
        raise QuestionError("question: is empty", field="question")
    if len(text) > settings.max_question_chars:
        raise QuestionTooLong(
            f"question: {len(text)} characters, at most {settings.max_question_chars} are taken",
            field="question",
        )
