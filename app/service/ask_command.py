"""The answers under way: each bounded in time, and all of them ended when the server has to stop.
A question with all that its caller said about it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from schemas.answer import Answer, EventSink
from schemas.choices import Language
from schemas.errors import ModelTimeout, QuestionError, QuestionTooLong, ServerStopping
from schemas.question import AnswerMode, Filters, Turn
from schemas.settings import Settings

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler


class InFlight:
    """What is being answered, on one event loop."""

    def __init__(self) -> None:
        self._limits: set[asyncio.Timeout] = set()
        self._ended = False

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """The block has `seconds`, and less when `end` is called.

        Raises ModelTimeout, or ServerStopping after `end`.
        """
        try:
            async with asyncio.timeout(0 if self._ended else seconds) as limit:
                self._limits.add(limit)
                try:
                    yield
                finally:
                    self._limits.discard(limit)
        except TimeoutError:
            if self._ended:
                raise ServerStopping("the server is stopping: ask again") from None
            raise ModelTimeout("the question took longer than APIDESK_REQUEST_TIMEOUT") from None

    def end(self) -> None:
        """Let every block raise ServerStopping now, and those to come."""
        self._ended = True
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0)


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
