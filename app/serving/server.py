"""The server's process: opens the desk, serves it, and leaves its address for other commands."""

import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import uvicorn

from app.desk import open_desk
from app.main import create_app
from app.serving.local_server import announced
from app.telemetry.ingestion_log import log_run
from app.telemetry.logs import configure_logging, is_json
from app.terminal.progress import ingestion_progress
from ingestion.job import Progress
from schemas.settings import Settings


async def run_server(settings: Settings, host: str, port: int) -> None:
    """Serve until a signal comes. Raises ApideskError when the desk cannot be opened."""
    configure_logging(settings.log_level, settings.log_format)
    # uvicorn stops, then raises the signal again: as an exit, so that what follows is still done.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    async with AsyncExitStack() as stack:
        with _progress(settings) as progress:
            desk = await stack.enter_async_context(open_desk(settings, progress))
        # Each request has a line of our own: app/telemetry/request_log.py
        config = uvicorn.Config(create_app(desk), host, port, log_config=None, access_log=False)
        await _AnnouncedServer(config, settings, stack).serve()


@contextmanager
def _progress(settings: Settings) -> Iterator[Progress]:
    """How a first ingestion shows: as `apidesk ingest` does, or as a line of a log for programs."""
    if not is_json(settings.log_format, sys.stderr):
        with ingestion_progress() as progress:
            yield progress
        return
    yield log_run


class _AnnouncedServer(uvicorn.Server):
    """Leaves its address once it listens: then a port of 0 has become a real one."""

    def __init__(self, config: uvicorn.Config, settings: Settings, stack: AsyncExitStack) -> None:
        super().__init__(config)
        self._settings = settings
        self._stack = stack

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then announce; the stack takes the address away again."""
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        self._stack.enter_context(announced(self._settings, host, port))
