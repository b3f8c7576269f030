"""Runs the server in several processes that share a port, for `apidesk serve --workers`."""

import asyncio
import logging
import signal
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from multiprocessing import parent_process
from socket import socket
from typing import Any

import uvicorn
from litestar.types import ASGIApp, Receive, Scope, Send
from sqlalchemy.engine import Engine
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from app.main import create_app
from app.service.answer_service import AnswerService, open_answer_service
from app.serving.gc_tuning import freeze_objects
from app.serving.server import (
    NO_KEY_MESSAGE,
    check_bind_address,
    first_ingestion_progress,
    install_signal_handlers,
    uvicorn_options,
    warn_of_unknown_settings,
)
from app.telemetry.logs import configure_logging
from app.telemetry.metrics import remove_process_gauges
from ingestion.database.engine import open_engine
from schemas.errors import ApideskError, StoreUnavailable
from schemas.settings import Settings, variable_if_unset

METRICS_DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of prometheus-client for the directory in which processes share their metrics."""

HEALTH_CHECK_TIMEOUT_S = 30
"""Seconds after which uvicorn kills a worker process that does not answer its ping.

The ping is a message from the parent process, not an HTTP request. A worker answers it even while it opens
its answer service.
"""

STORE_TIMEOUT_S = 300
"""Seconds that a starting worker waits for a store that is not available."""

log = logging.getLogger(__name__)


def run_workers(settings: Settings, host: str, port: int) -> None:
    """Serve with `settings.workers` processes until a signal stops them.

    Raises ConfigurationError if `host` is not a loopback address and no API key is configured, and
    ApideskError if the answer service cannot be opened or a worker cannot start.
    """
    configure_logging(settings.log_level, settings.log_format)
    warn_of_unknown_settings()
    engine = open_engine(settings)
    has_key = check_bind_address(settings, engine, host)
    asyncio.run(_open_once(settings, engine))
    if not has_key:
        log.info(NO_KEY_MESSAGE)
    config = uvicorn.Config(
        partial(create_worker_app, settings),
        host,
        port,
        factory=True,
        workers=settings.workers,
        lifespan="on",
        timeout_worker_healthcheck=HEALTH_CHECK_TIMEOUT_S,
        **uvicorn_options(settings),
    )
    with _metrics_directory():
        supervisor = _Supervisor(config, [config.bind_socket()])
        supervisor.run()
    if supervisor.has_failed_worker:
        raise ApideskError("a worker could not start: see the log")


def create_worker_app(settings: Settings) -> ASGIApp:
    """Return the application of one worker, which opens its answer service on startup."""
    configure_logging(settings.log_level, settings.log_format)
    return _WorkerApp(settings)


async def _open_once(settings: Settings, engine: Engine) -> None:
    """Open and close the answer service before the workers start.

    This indexes a platform that has never been indexed, and reports errors in the settings once instead of
    in each worker.
    """
    with first_ingestion_progress(settings) as progress:
        async with open_answer_service(settings, progress, engine, long_lived=True):
            pass


@contextmanager
def _metrics_directory() -> Iterator[None]:
    """Share metrics in a temporary directory, unless PROMETHEUS_MULTIPROC_DIR names another directory."""
    with (
        tempfile.TemporaryDirectory(prefix="apidesk-metrics-") as directory,
        variable_if_unset(METRICS_DIRECTORY_VARIABLE, directory),
    ):
        yield


class _WorkerApp:
    """ASGI application that opens the answer service for its lifespan."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":  # type: ignore[comparison-overlap]  # not in Litestar's Scope
            await self._run_lifespan(scope, receive, send)
        else:
            assert self._app is not None, "requests come after startup"
            await self._app(scope, receive, send)

    async def _run_lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with AsyncExitStack() as stack:
                answer_service = await _open_with_retries(self._settings, stack)
                self._app = create_app(answer_service)
                freeze_objects()
                install_signal_handlers(answer_service)
                _follow_parent()
                await self._app(scope, receive, send)
        except ApideskError as error:
            failed: Any = {"type": "lifespan.startup.failed", "message": str(error)}
            await send(failed)


async def _open_with_retries(settings: Settings, stack: AsyncExitStack) -> AnswerService:
    """Open the answer service, and retry while the store is unavailable.

    A worker that replaces a dead one may start while the store is down.
    """
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=wait_fixed(1),
        stop=stop_after_delay(STORE_TIMEOUT_S),
        reraise=True,
    ):
        with attempt:
            answer_service = await stack.enter_async_context(
                open_answer_service(settings, long_lived=True)
            )
    return answer_service


def _follow_parent() -> None:
    """Ignore Ctrl-C, which the parent handles. If the parent is killed, stop, so that the port is freed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent, loop = parent_process(), asyncio.get_running_loop()
    assert parent is not None, "a worker has a parent"

    def stop() -> None:
        loop.remove_reader(parent.sentinel)
        signal.raise_signal(signal.SIGTERM)

    loop.add_reader(parent.sentinel, stop)


class _Supervisor(Multiprocess):
    """A uvicorn supervisor that closes the port when it stops, and kills workers on a second signal.

    This class relies on methods and attributes that uvicorn does not document. tests/test_workers.py tests
    the shutdown and the replacement of a dead worker.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket]) -> None:
        super().__init__(config, sockets)
        self._worker_ids: set[int] = set()

    @property
    def has_failed_worker(self) -> bool:
        """Whether a worker could not start."""
        return any(worker.exitcode == STARTUP_FAILURE for worker in self.processes)

    def restart_all(self) -> None:
        """Replace the workers.

        If a new worker cannot start, uvicorn logs only that the worker was not ready in time. This method
        then also logs that it could not start, and that the old workers continue.
        """
        before = list(self.processes)
        super().restart_all()
        if not self.should_exit.is_set() and set(before) & set(self.processes):
            log.error(
                "a new worker could not start, for the reason that is logged above; the remaining old "
                "workers continue"
            )

    def keep_subprocess_alive(self) -> None:
        """Replace dead workers, and remove their gauges from the metrics."""
        super().keep_subprocess_alive()
        worker_ids = {worker.pid for worker in self.processes if worker.pid is not None}
        for pid in self._worker_ids - worker_ids:
            remove_process_gauges(pid)
        self._worker_ids = worker_ids

    def terminate_all(self) -> None:
        """Stop the workers and close the port, so that new connections are refused at once."""
        super().terminate_all()
        for listener in self.sockets:
            listener.close()

    def join_all(self) -> None:
        """Wait until the workers end, and kill them on a second signal."""
        for worker in self.processes:
            while worker.process.is_alive():
                worker.process.join(timeout=0.1)
                if {signal.SIGINT, signal.SIGTERM} & set(self.signal_queue):
                    worker.process.kill()
