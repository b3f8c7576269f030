"""Answering whose tokens are counted."""

from dataclasses import replace

from app.asked import Answerer, AskCommand
from app.security.limits import RateLimiter
from runnables.listener import EventSink
from schemas.answer import Answer


class MeteringAnswerer:
    """Answers by `answerer`, and charges what the models took to who asked, once the work has ended.

    Others may wait for the same work: they are charged nothing, and who began it pays for all of it,
    though they left before.
    """

    def __init__(self, answerer: Answerer, limits: RateLimiter) -> None:
        self._answerer = answerer
        self._limits = limits

    async def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Answer:
        """As `answerer` answers. Raises ApideskError."""
        async with self._limits.metered(asked.account) as meter:
            metered = replace(asked, callbacks=(*asked.callbacks, meter))
            return await self._answerer.ask(metered, listener)
