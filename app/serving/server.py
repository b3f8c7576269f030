"""Runs the server in one process: opens the answer service, serves it, and stops it on a signal."""

import asyncio
import logging
import math
import secrets
import signal
import socket
import sys
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from types import FrameType
from typing import Any

import uvicorn
from sqlalchemy.engine import Engine

from app.main import create_app
from app.security.access import CREATE_KEY_HINT, is_loopback
from app.security.api_keys import ApiKeyStore, Keyring
from app.service.answer_service import AnswerService, open_answer_service
from app.service.ingestion_service import log_ingestion_run
from app.serving.gc_tuning import freeze_objects
from app.serving.local_server import announce_server
from app.telemetry.logs import configure_logging, is_json
from app.telemetry.progress import ingestion_progress
from ingestion.database.engine import open_engine
from ingestion.job import ProgressCallback
from schemas.errors import ConfigurationError
from schemas.settings import Settings, unknown_settings

SHUTDOWN_MARGIN_S = 5
"""Seconds after APIDESK_SHUTDOWN_TIMEOUT in which uvicorn can finish sending responses."""

NO_KEY_MESSAGE = "no API key is configured: only requests from this machine are accepted"

log = logging.getLogger(__name__)


async def run_server(settings: Settings, host: str, port: int) -> None:
    """Serve in this process until a signal stops it.

    Raises ConfigurationError if `host` is not a loopback address and no API key is configured, and
    ApideskError if the answer service cannot be opened.
    """
    configure_logging(settings.log_level, settings.log_format)
    warn_of_unknown_settings()
    engine = await asyncio.to_thread(open_engine, settings)
    has_key = await asyncio.to_thread(check_bind_address, settings, engine, host)
    # After stopping, uvicorn raises the signal again. This handler turns it into SystemExit, which closes
    # the stack below.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    async with AsyncExitStack() as stack:
        with first_ingestion_progress(settings) as progress:
            answer_service = await stack.enter_async_context(
                open_answer_service(settings, progress, engine, long_lived=True)
            )
        if not has_key:
            log.info(NO_KEY_MESSAGE)
        key = secrets.token_urlsafe(32)
        config = create_uvicorn_config(answer_service, key, host, port)
        freeze_objects()
        await _AnnouncedServer(config, answer_service, stack, key).serve()


def create_uvicorn_config(
    answer_service: AnswerService, key: str, host: str, port: int
) -> uvicorn.Config:
    """Return the uvicorn configuration; `key` is the API key for local commands."""
    return uvicorn.Config(
        create_app(answer_service, key), host, port, **uvicorn_options(answer_service.settings)
    )


class _AnnouncedServer(uvicorn.Server):
    """A uvicorn server that announces its address and stops the answer service on a signal."""

    def __init__(
        self, config: uvicorn.Config, answer_service: AnswerService, stack: AsyncExitStack, key: str
    ) -> None:
        super().__init__(config)
        self._answer_service = answer_service
        self._key = key
        self._stack = stack

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then announce the address. With port 0, the port is known only after listening."""
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        settings = self._answer_service.settings
        self._stack.enter_context(announce_server(settings, host, port, self._key))
        install_signal_handlers(self._answer_service)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the server. After a forced exit, run the application's shutdown, which uvicorn skips."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()


def warn_of_unknown_settings() -> None:
    """Log a warning for each `APIDESK_` name that is not a setting."""
    for warning in unknown_settings():
        log.warning("%s", warning)


def check_bind_address(settings: Settings, engine: Engine, host: str) -> bool:
    """Check that an API key is configured or `host` is a loopback address.

    Returns whether an API key is configured. This function blocks. Raises ConfigurationError if the check
    fails, and StoreUnavailable if the database cannot be used.
    """
    if Keyring(ApiKeyStore(engine), settings.admin_key).is_key_required:
        return True
    if not is_loopback(host):
        raise ConfigurationError(
            f"--host {host}: other machines could reach this address without authentication, since "
            f"no API key is configured: {CREATE_KEY_HINT}"
        )
    return False


def uvicorn_options(settings: Settings) -> dict[str, Any]:
    """Return the options of uvicorn.Config that do not depend on the number of processes."""
    return {
        "log_config": None,
        "access_log": False,  # app.telemetry.request_log logs each request
        "proxy_headers": bool(settings.trusted_proxies),
        "forwarded_allow_ips": list(settings.trusted_proxies),
        "timeout_graceful_shutdown": graceful_timeout_s(settings),
    }


def graceful_timeout_s(settings: Settings) -> int:
    """Return the value of uvicorn's `timeout_graceful_shutdown`, in seconds."""
    return math.ceil(settings.shutdown_timeout) + SHUTDOWN_MARGIN_S


def first_ingestion_progress(settings: Settings) -> AbstractContextManager[ProgressCallback]:
    """Return a context manager that yields a callback for the first ingestion of a platform.

    The callback shows the progress or, if the log is JSON, logs the result.
    """
    if is_json(settings.log_format, sys.stderr):
        return nullcontext(log_ingestion_run)
    return ingestion_progress()


def install_signal_handlers(answer_service: AnswerService) -> None:
    """Install handlers for SIGTERM and SIGINT that stop the answer service.

    After the first signal, a running ingestion stops at its next document, and answers have
    APIDESK_SHUTDOWN_TIMEOUT seconds to finish. A second signal stops the answers at once.

    Call this function on the event loop after uvicorn has installed its own handlers. The new handlers also
    call uvicorn's handler, which closes the port, lets requests finish and exits.
    """
    handler = _SignalHandler(answer_service)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


class _SignalHandler:
    """Stops the answer service, then calls uvicorn's handler."""

    def __init__(self, answer_service: AnswerService) -> None:
        self._answer_service = answer_service
        self._loop = asyncio.get_running_loop()
        self._uvicorn_handler: Any = signal.getsignal(signal.SIGINT)
        self._is_stopping = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        timeout_s = 0.0 if self._is_stopping else self._answer_service.settings.shutdown_timeout
        self._loop.call_soon_threadsafe(self._stop, timeout_s)
        # A second signal is passed on as SIGINT, because only SIGINT makes a stopping uvicorn exit at once.
        self._uvicorn_handler(signal.SIGINT if self._is_stopping else number, frame)
        self._is_stopping = True

    def _stop(self, timeout_s: float) -> None:
        self._answer_service.job.stop()
        self._loop.call_later(timeout_s, self._answer_service.in_flight.stop)
