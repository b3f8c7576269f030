"""Whoever answers at the terminal: the server that holds the embedded store, or a desk of this process."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

from app.asked import Answerer, AskCommand
from app.serving.local_server import LocalServer, local_server, running_server
from app.terminal.remote_desk import RemoteAnswerer
from schemas.answer import Source
from schemas.errors import StoreLocked
from schemas.settings import Settings

PATIENCE = 5.0
"""Seconds beyond those that an answer may take, for what comes before and after it."""


class TerminalAnswerer(Answerer, Protocol):
    """Answers, in sessions too, and retrieves."""

    async def retrieve(self, asked: AskCommand) -> list[Source]:
        """The k best chunks, without asking a model. Raises ApideskError."""


@asynccontextmanager
async def open_terminal_answerer(
    settings: Settings, other_model: bool = False
) -> AsyncIterator[TerminalAnswerer]:
    """The server's desk, where one holds the embedded store; else one of this process.

    With `other_model` the settings name another model than the server's, which cannot serve then.

    Raises ApideskError.
    """
    async with AsyncExitStack() as stack:
        found: TerminalAnswerer
        server = running_server(settings)
        if server is None:
            try:
                found = await stack.enter_async_context(_own(settings))
            except StoreLocked:  # by a server that has just begun
                server = local_server(settings)
                if server is None:
                    raise
        if server is not None:
            if other_model:
                raise _has_its_own_model(server) from None
            seconds = settings.request_timeout + PATIENCE
            found = await stack.enter_async_context(RemoteAnswerer.connected(server, seconds))
        yield found


def _own(settings: Settings) -> AbstractAsyncContextManager[TerminalAnswerer]:
    # Imported here: it takes two seconds, which a question to a server need not wait.
    from app.terminal.local_desk import open_local_answerer

    return open_local_answerer(settings)


def _has_its_own_model(server: LocalServer) -> StoreLocked:
    return StoreLocked(
        f"the server at {server.url} holds the store and has its own model: stop it to try another"
    )
