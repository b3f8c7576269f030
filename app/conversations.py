"""Questions in a session: each is asked with what was said before, and remembered with its answer."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from langchain_core.callbacks import BaseCallbackHandler

from app.desk import Desk
from app.history import History
from runnables.listener import Listener
from schemas.answer import Answer
from schemas.conversation import Turn
from schemas.errors import StoreUnavailable
from schemas.language import Language
from schemas.question import AnswerMode, Filters

log = logging.getLogger(__name__)


class Conversations:
    """A desk that remembers, for each owner apart."""

    def __init__(self, desk: Desk, history: History) -> None:
        self._desk = desk
        self._history = history

    async def ask(
        self,
        text: str,
        session: str | None,
        *,
        owner: str = "",
        k: int | None = None,
        language: Language | None = None,
        filters: Filters | None = None,
        mode: AnswerMode = "pipeline",
        listener: Listener | None = None,
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> Answer:
        """The answer to `text`, as `Desk.ask` gives it, in `session` where one is named.

        What asked nothing about the platform is not remembered. Raises ApideskError.
        """
        turns = await self._history.read(owner, session) if session else ()
        answer = await self._desk.ask(
            text, k, language, filters, mode, turns, listener, session, callbacks
        )
        if session and answer.type != "unknown":
            await self._remember(owner, session, answer)
        return answer.model_copy(update={"session": session})

    async def _remember(self, owner: str, session: str, answer: Answer) -> None:
        """An answer that cannot be remembered is still an answer."""
        try:
            await self._history.append(owner, session, turn_of(answer))
        except StoreUnavailable as error:
            log.warning("the session will not know of an answer: %s", error)


def turn_of(answer: Answer) -> Turn:
    """What later questions need to know of `answer`."""
    structured = answer.structured
    return Turn(
        question=answer.question,
        answer="\n".join(answer.answer),
        api_name=structured.api_name,
        api_url=structured.api_url,
        asked_at=datetime.now(UTC),
    )
