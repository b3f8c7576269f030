"""This process's own desk, where no server holds the store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from app.asked import Asked
from app.conversations import Conversations
from app.desk import Desk, open_desk
from app.history import History
from app.terminal.progress import ingestion_progress
from runnables.listener import Listener
from schemas.answer import Answer, Source
from schemas.settings import Settings


class LocalDesk:
    """A desk, and the sessions in its database. Opening it blocks."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._history = History.open(desk.settings)
        self._conversations = Conversations(desk, self._history)

    async def ask(self, asked: Asked, listener: Listener | None = None) -> Answer:
        """The answer, remembered where a session is named. Raises ApideskError."""
        return await self._conversations.ask(asked, listener)

    async def retrieve(self, asked: Asked) -> list[Source]:
        """The k best chunks. Raises ApideskError."""
        return await self._desk.retrieve(asked)

    def close(self) -> None:
        """Close the sessions; the desk is closed by whoever opened it."""
        self._history.close()


@asynccontextmanager
async def open_local_desk(settings: Settings) -> AsyncIterator[LocalDesk]:
    """A desk ready to answer; a first ingestion is shown. Raises ApideskError."""
    async with AsyncExitStack() as stack:
        with ingestion_progress() as progress:
            desk = await stack.enter_async_context(open_desk(settings, progress))
        local = await asyncio.to_thread(LocalDesk, desk)
        stack.push_async_callback(asyncio.to_thread, local.close)
        yield local
