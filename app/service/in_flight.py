"""The answers in progress: each has a timeout, and all of them end when the server stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from schemas.errors import ModelTimeout, ServerStopping


class InFlight:
    """The answers in progress on one event loop."""

    def __init__(self) -> None:
        self._timeouts: set[asyncio.Timeout] = set()
        self._stopped = False

    @asynccontextmanager
    async def track(self, timeout_s: float) -> AsyncIterator[None]:
        """Limit the block to `timeout_s` seconds, or less if `stop` is called meanwhile.

        Raises ModelTimeout, or ServerStopping after `stop`.
        """
        try:
            async with asyncio.timeout(0 if self._stopped else timeout_s) as timeout:
                self._timeouts.add(timeout)
                try:
                    yield
                finally:
                    self._timeouts.discard(timeout)
        except TimeoutError:
            if self._stopped:
                raise ServerStopping("the server is stopping: ask again") from None
            raise ModelTimeout("the question took longer than APIDESK_REQUEST_TIMEOUT") from None

    def stop(self) -> None:
        """End every tracked block with ServerStopping, now and from now on."""
        self._stopped = True
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(0)
