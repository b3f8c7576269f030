"""The answers under way: each bounded in time, and all of them ended when the server has to stop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from schemas.errors import ModelTimeout, ServerStopping


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
