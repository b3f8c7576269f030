"""The server's process: opens the desk, serves it, and leaves its address for other commands."""

import asyncio
import secrets
import signal
import socket
import sys
from contextlib import AsyncExitStack

import uvicorn

from app.answer_service import AnswerService, open_answer_service
from app.main import create_app
from app.serving.garbage import keep_what_is_there
from app.serving.listening import check_doors, first_ingestion, uvicorn_options
from app.serving.local_server import announced
from app.serving.stopping import stop_on_signals
from app.telemetry.logs import configure_logging
from schemas.settings import Settings


async def run_server(settings: Settings, host: str, port: int) -> None:
    """Serve until a signal comes.

    Raises ConfigurationError for an address that others reach while no key is configured, ApideskError
    when the desk cannot be opened.
    """
    configure_logging(settings.log_level, settings.log_format)
    await asyncio.to_thread(check_doors, settings, host)
    # uvicorn stops, then raises the signal again: as an exit, so that what follows is still done.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    async with AsyncExitStack() as stack:
        with first_ingestion(settings) as progress:
            answer_service = await stack.enter_async_context(
                open_answer_service(settings, progress)
            )
        key = secrets.token_urlsafe(32)
        config = server_config(answer_service, key, host, port)
        keep_what_is_there()
        await _DeskServer(config, answer_service, stack, key).serve()


def server_config(answer_service: AnswerService, key: str, host: str, port: int) -> uvicorn.Config:
    """How uvicorn serves the desk; `key` is the one for local commands."""
    return uvicorn.Config(
        create_app(answer_service, key), host, port, **uvicorn_options(answer_service.settings)
    )


class _DeskServer(uvicorn.Server):
    """Leaves its address once it listens, when a port of 0 has become a real one; stops its desk."""

    def __init__(
        self, config: uvicorn.Config, answer_service: AnswerService, stack: AsyncExitStack, key: str
    ) -> None:
        super().__init__(config)
        self._answer_service = answer_service
        self._key = key
        self._stack = stack

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then announce; the stack takes the address away again."""
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        self._stack.enter_context(announced(self._answer_service.settings, host, port, self._key))
        stop_on_signals(self._answer_service)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; in a hurry, too, the application is told before its loop ends."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()
