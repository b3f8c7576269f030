"""What one process and many have in common: to whom they listen, and how.
What a signal to stop means for a desk: its ingestion ends soon, its answers when their time is up.

uvicorn does the rest: it closes the port at once, waits for the connections, and ends.
The server's process: opens the desk, serves it, and leaves its address for other commands.
"""

import asyncio
import logging
import math
import secrets
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from types import FrameType
from typing import Any

import uvicorn

from app.cli.terminal.progress import ingestion_progress
from app.main import create_app
from app.security.access import MAKE_A_KEY, is_loopback
from app.security.keyring import Keyring
from app.service.answer_service import AnswerService, open_answer_service
from app.serving.gc_tuning import keep_what_is_there
from app.serving.local_server import announced
from app.telemetry.ingestion_metrics import log_run
from app.telemetry.logs import configure_logging, is_json
from ingestion.job import IngestionProgress
from schemas.errors import ConfigurationError
from schemas.settings import Settings

log = logging.getLogger(__name__)


def check_doors(settings: Settings, host: str) -> None:
    """Refuse an address that others reach while no key is configured; say when doors are open.

    It blocks. Raises ConfigurationError, and StoreUnavailable when the database does not answer.
    """
    keyring = Keyring.open(settings)
    keyring.close()
    if keyring.required:
        return
    if not is_loopback(host):
        raise ConfigurationError(
            f"--host {host}: others would reach this address and do anything, since no API key is "
            f"configured: {MAKE_A_KEY}"
        )
    log.info("no API key is configured: only this machine is answered, and may do anything")


def uvicorn_options(settings: Settings) -> dict[str, Any]:
    """What uvicorn is told of Settings."""
    return {
        "log_config": None,
        "access_log": False,  # each request has a line of our own: app/telemetry/request_log.py
        "proxy_headers": bool(settings.trusted_proxies),
        "forwarded_allow_ips": list(settings.trusted_proxies),
        "timeout_graceful_shutdown": graceful_seconds(settings),
    }


@contextmanager
def first_ingestion(settings: Settings) -> Iterator[IngestionProgress]:
    """How a first ingestion shows: as `apidesk ingest` does, or as a line of a log for programs."""
    if not is_json(settings.log_format, sys.stderr):
        with ingestion_progress() as progress:
            yield progress
        return
    yield log_run


GRACE_SECONDS = 5
"""How long uvicorn waits longer than answers have: for their last bytes, and for what is no answer."""


def graceful_seconds(settings: Settings) -> int:
    """What uvicorn takes as `timeout_graceful_shutdown`."""
    return math.ceil(settings.shutdown_timeout) + GRACE_SECONDS


def stop_on_signals(answer_service: AnswerService) -> None:
    """From now on SIGTERM and SIGINT also stop what `desk` does; the second one does so at once.

    Call it on the event loop, once uvicorn has put its own handlers in place: they are called too,
    and uvicorn takes these away with them.
    """
    stop = _Stop(answer_service)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


class _Stop:
    """A signal handler around uvicorn's."""

    def __init__(self, answer_service: AnswerService) -> None:
        self._answer_service = answer_service
        self._loop = asyncio.get_running_loop()
        self._uvicorn: Any = signal.getsignal(signal.SIGINT)
        self._stopping = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        seconds = 0.0 if self._stopping else self._answer_service.settings.shutdown_timeout
        self._loop.call_soon_threadsafe(self._begin, seconds)
        # uvicorn takes a second SIGINT, and only that, for the wish to stop at once.
        self._uvicorn(signal.SIGINT if self._stopping else number, frame)
        self._stopping = True

    def _begin(self, seconds: float) -> None:
        self._answer_service.job.stop()
        self._loop.call_later(seconds, self._answer_service.running.end)


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
