"""Whoever answers at the terminal: a desk of this process, or the server that holds the store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from app.asked import Answerer, Asked
from app.conversations import Conversations
from app.desk import Desk, open_desk
from app.history import History
from app.serving.local_server import LocalServer, local_server
from app.terminal.progress import ingestion_progress
from app.terminal.remote_desk import RemoteDesk
from runnables.listener import Listener
from schemas.answer import Answer, Source
from schemas.errors import StoreLocked
from schemas.settings import Settings

PATIENCE = 5.0
"""Seconds beyond those that an answer may take, for what comes before and after it."""


class TerminalDesk(Answerer, Protocol):
    """Answers, in sessions too, and retrieves."""

    async def retrieve(self, asked: Asked) -> list[Source]:
        """The k best chunks, without asking a model. Raises ApideskError."""


@asynccontextmanager
async def open_terminal_desk(
    settings: Settings, other_model: bool = False
) -> AsyncIterator[TerminalDesk]:
    """A desk of this process; the server's, where one holds the embedded store.

    With `other_model` the settings name another model than the server's, which cannot serve then.

    Raises ApideskError.
    """
    async with AsyncExitStack() as stack:
        try:
            with ingestion_progress() as progress:
                desk = await stack.enter_async_context(open_desk(settings, progress))
            local = await asyncio.to_thread(LocalDesk, desk)
            stack.push_async_callback(asyncio.to_thread, local.close)
            found: TerminalDesk = local
        except StoreLocked:
            server = local_server(settings)
            if server is None:
                raise
            if other_model:
                raise _has_its_own_model(server) from None
            seconds = settings.request_timeout + PATIENCE
            found = await stack.enter_async_context(RemoteDesk.connected(server, seconds))
        yield found


class LocalDesk:
    """This process's own desk, and the sessions in its database. Opening it blocks."""

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


def _has_its_own_model(server: LocalServer) -> StoreLocked:
    return StoreLocked(
        f"the server at {server.url} holds the store and has its own model: stop it to try another"
    )
