"""Slots: how much may go on at once; who comes when all are taken waits in line."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class ConcurrencyLimiter:
    """A number of slots, taken in order of arrival; of one process, and one event loop."""

    def __init__(
        self, size: int, changed: "Callable[[ConcurrencyLimiter], None]" = lambda slots: None
    ) -> None:
        """`changed` is told whenever the counts below are others."""
        self._changed = changed
        self._free = asyncio.Semaphore(size)
        self._running = 0
        self._waiting = 0

    @property
    def running(self) -> int:
        """How many are taken."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return self._waiting

    @asynccontextmanager
    async def taken(self, seconds: float) -> AsyncIterator[None]:
        """Within the block a slot is held. Raises TimeoutError when none came free in `seconds`."""
        await self._take(seconds)
        self._count(running=1)
        try:
            yield
        finally:
            self._count(running=-1)
            self._free.release()

    async def _take(self, seconds: float) -> None:
        if not self._free.locked():
            await self._free.acquire()  # at once
            return
        self._count(waiting=1)
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                await self._free.acquire()
        finally:
            self._count(waiting=-1)

    def _count(self, running: int = 0, waiting: int = 0) -> None:
        self._running += running
        self._waiting += waiting
        self._changed(self)
