"""A limit on concurrent work, with waiting callers served in order of arrival."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class ConcurrencyLimiter:
    """A semaphore that counts running and waiting callers, for one event loop."""

    def __init__(
        self, size: int, on_change: "Callable[[ConcurrencyLimiter], None]" = lambda limiter: None
    ) -> None:
        """Allow `size` concurrent callers, and call `on_change` when `running` or `waiting` changes."""
        self._on_change = on_change
        self._semaphore = asyncio.Semaphore(size)
        self._running = 0
        self._waiting = 0

    @property
    def running(self) -> int:
        """Number of callers in the block of `acquire`."""
        return self._running

    @property
    def waiting(self) -> int:
        """Number of callers that wait to enter the block of `acquire`."""
        return self._waiting

    @asynccontextmanager
    async def acquire(self, timeout_s: float) -> AsyncIterator[None]:
        """Wait until fewer than `size` callers run, then run the block.

        Raises TimeoutError after waiting for `timeout_s` seconds. The block itself has no timeout.
        """
        await self._acquire(timeout_s)
        self._count(running=1)
        try:
            yield
        finally:
            self._count(running=-1)
            self._semaphore.release()

    async def _acquire(self, timeout_s: float) -> None:
        if not self._semaphore.locked():
            await self._semaphore.acquire()  # without waiting
            return
        self._count(waiting=1)
        try:
            async with asyncio.timeout(None if math.isinf(timeout_s) else timeout_s):
                await self._semaphore.acquire()
        finally:
            self._count(waiting=-1)

    def _count(self, running: int = 0, waiting: int = 0) -> None:
        self._running += running
        self._waiting += waiting
        self._on_change(self)
