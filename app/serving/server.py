"""The server's process: opens the desk, serves it, and leaves its address for other commands."""

import asyncio
import logging
import secrets
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import uvicorn

from app.desk import Desk, open_desk
from app.main import create_app
from app.security.keyring import Keyring
from app.security.loopback import MAKE_A_KEY, is_loopback
from app.serving.local_server import announced
from app.serving.stopping import graceful_seconds, stop_on_signals
from app.telemetry.ingestion_log import log_run
from app.telemetry.logs import configure_logging, is_json
from app.terminal.progress import ingestion_progress
from ingestion.job import Progress
from schemas.errors import ConfigurationError
from schemas.settings import Settings

log = logging.getLogger(__name__)


async def run_server(settings: Settings, host: str, port: int) -> None:
    """Serve until a signal comes.

    Raises ConfigurationError for an address that others reach while no key is configured, ApideskError
    when the desk cannot be opened.
    """
    configure_logging(settings.log_level, settings.log_format)
    guarded = await asyncio.to_thread(_guarded, settings, host)
    # uvicorn stops, then raises the signal again: as an exit, so that what follows is still done.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    async with AsyncExitStack() as stack:
        with _progress(settings) as progress:
            desk = await stack.enter_async_context(open_desk(settings, progress))
        if not guarded:
            log.info("no API key is configured: only this machine is answered, and may do anything")
        key = secrets.token_urlsafe(32)
        config = server_config(desk, key, host, port)
        await _DeskServer(config, desk, stack, key).serve()


def _guarded(settings: Settings, host: str) -> bool:
    """Whether callers need a key. Raises ConfigurationError where they should, and there is none."""
    keyring = Keyring.open(settings)
    keyring.close()
    if not keyring.required and not is_loopback(host):
        raise ConfigurationError(
            f"--host {host}: others would reach this address and do anything, since no API key is "
            f"configured: {MAKE_A_KEY}"
        )
    return keyring.required


def server_config(desk: Desk, key: str, host: str, port: int) -> uvicorn.Config:
    """How uvicorn serves the desk; `key` is the one for local commands."""
    return uvicorn.Config(
        create_app(desk, key),
        host,
        port,
        log_config=None,
        access_log=False,  # each request has a line of our own: app/telemetry/request_log.py
        proxy_headers=bool(desk.settings.trusted_proxies),
        forwarded_allow_ips=list(desk.settings.trusted_proxies),
        timeout_graceful_shutdown=graceful_seconds(desk.settings),
    )


@contextmanager
def _progress(settings: Settings) -> Iterator[Progress]:
    """How a first ingestion shows: as `apidesk ingest` does, or as a line of a log for programs."""
    if not is_json(settings.log_format, sys.stderr):
        with ingestion_progress() as progress:
            yield progress
        return
    yield log_run


class _DeskServer(uvicorn.Server):
    """Leaves its address once it listens, when a port of 0 has become a real one; stops its desk."""

    def __init__(self, config: uvicorn.Config, desk: Desk, stack: AsyncExitStack, key: str) -> None:
        super().__init__(config)
        self._desk = desk
        self._key = key
        self._stack = stack

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then announce; the stack takes the address away again."""
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        self._stack.enter_context(announced(self._desk.settings, host, port, self._key))
        stop_on_signals(self._desk)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; in a hurry, too, the application is told before its loop ends."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()
