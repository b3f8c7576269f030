"""Slots: how much may go on at once; who comes when all are taken waits in line."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """A number of slots, taken in order of arrival; of one process, and one event loop."""

    def __init__(self, size: int) -> None:
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
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._free.release()

    async def _take(self, seconds: float) -> None:
        if not self._free.locked():
            await self._free.acquire()  # at once
            return
        self._waiting += 1
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                await self._free.acquire()
        finally:
            self._waiting -= 1
