"""Questions in a session: each is asked with what was said before, and remembered with its answer."""

import logging
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from app.asked import Answerer, AskCommand
from app.history import SessionStore
from app.masking.masking import mask, secrets_in
from runnables.listener import EventSink
from schemas.answer import Answer
from schemas.conversation import Turn
from schemas.errors import StoreUnavailable

log = logging.getLogger(__name__)


class SessionAnswerer:
    """Answering that remembers, for each owner apart."""

    def __init__(self, answerer: Answerer, history: SessionStore) -> None:
        self._answerer = answerer
        self._history = history

    async def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Answer:
        """As `answerer` answers, in the session where one is named.

        What asked nothing about the platform is not remembered. Raises ApideskError.
        """
        if asked.session is None:
            return await self._answerer.ask(asked, listener)
        history = await self._history.read(asked.owner, asked.session)
        answer = await self._answerer.ask(replace(asked, history=history), listener)
        if answer.type != "unknown":
            await self._remember(asked, asked.session, answer)
        return answer.model_copy(update={"session": asked.session})

    async def _remember(self, asked: AskCommand, session: str, answer: Answer) -> None:
        """An answer that cannot be remembered is still an answer."""
        try:
            await self._history.append(asked.owner, session, turn_of(asked, answer))
        except StoreUnavailable as error:
            log.warning("the session will not know of an answer: %s", error)


def turn_of(asked: AskCommand, answer: Answer) -> Turn:
    """What later questions need to know of `answer`; no secret of it or of what was asked."""
    masked = partial(mask, known=secrets_in(asked.text))
    structured = answer.structured
    return Turn(
        question=masked(answer.question),
        answer=masked("\n".join(answer.answer)),
        api_name=structured.api_name and masked(structured.api_name),
        api_url=structured.api_url and masked(structured.api_url),
        asked_at=datetime.now(UTC),
    )
