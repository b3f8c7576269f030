"""`apidesk serve --workers`: processes that answer on one port, and the one that keeps them running."""

import asyncio
import signal
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from multiprocessing import parent_process
from socket import socket
from typing import Any, cast

import uvicorn
from litestar.types import ASGIApp, Receive, Scope, Send
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess

from app.main import create_app
from app.service.answer_service import AnswerService, open_answer_service
from app.serving.gc_tuning import keep_what_is_there
from app.serving.server import check_doors, first_ingestion, stop_on_signals, uvicorn_options
from app.telemetry.logs import configure_logging
from app.telemetry.metrics import forget_process
from schemas.errors import ApideskError, ConfigurationError, StoreUnavailable
from schemas.settings import PREFIX, Settings, variable_if_unset

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Where prometheus-client finds what the other processes counted, by its own variable."""

START_SECONDS = 30
"""How long a worker may take to start, or not answer, until it counts as dead."""

STORE_SECONDS = 300
"""How long a worker that takes the place of a dead one waits for a store that is away."""


def run_workers(settings: Settings, host: str, port: int) -> None:
    """Serve by `settings.workers` processes until a signal comes; what is wrong comes out before.

    Raises ConfigurationError for an embedded store and for an address that others reach while no key
    is configured, ApideskError when the desk cannot be opened, or a worker could not.
    """
    configure_logging(settings.log_level, settings.log_format)
    if settings.embedded:
        raise ConfigurationError(
            f"{PREFIX}WORKERS={settings.workers}: the embedded store serves one process, "
            f"name a Milvus server in {PREFIX}MILVUS_URI"
        )
    check_doors(settings, host)
    asyncio.run(_prepare(settings))
    config = uvicorn.Config(
        partial(worker_app, settings),
        host,
        port,
        factory=True,
        workers=settings.workers,
        lifespan="on",
        timeout_worker_healthcheck=START_SECONDS,
        **uvicorn_options(settings),
    )
    with _metrics_folder():
        workers = _Workers(config, [config.bind_socket()])
        workers.run()
    if workers.failed_to_start:
        raise ApideskError("a worker could not start: the log says why")


async def _prepare(settings: Settings) -> None:
    """Index what never was, and find out what is wrong with the settings, once for all workers."""
    with first_ingestion(settings) as progress:
        async with open_answer_service(settings, progress):
            pass


def worker_app(settings: Settings) -> ASGIApp:
    """The application of one worker, which opens its desk when it starts."""
    configure_logging(settings.log_level, settings.log_format)
    return _WorkerApp(settings)


class _WorkerApp:
    """ASGI: the desk's application, open as long as its lifespan."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":  # type: ignore[comparison-overlap]  # Litestar's Scope has no such
            await self._live(scope, receive, send)
        else:
            assert self._app is not None, "a request comes after the start"
            await self._app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with AsyncExitStack() as stack:
                answer_service = await _opened(self._settings, stack)
                self._app = create_app(answer_service)
                keep_what_is_there()
                stop_on_signals(answer_service)
                _leave_signals_to_the_parent()
                await self._app(scope, receive, send)
        except ApideskError as error:
            failed: Any = {"type": "lifespan.startup.failed", "message": str(error)}
            await send(failed)


def _leave_signals_to_the_parent() -> None:
    """Ctrl-C is the parent's to hear; should that be killed, stop well and hold the port for nobody."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent, loop = parent_process(), asyncio.get_running_loop()
    assert parent is not None, "a worker has one"

    def died() -> None:
        loop.remove_reader(parent.sentinel)
        signal.raise_signal(signal.SIGTERM)

    loop.add_reader(parent.sentinel, died)


async def _opened(settings: Settings, stack: AsyncExitStack) -> AnswerService:
    """The desk of a worker; who takes the place of a dead one may find the store away for a while."""
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=wait_fixed(1),
        stop=stop_after_delay(STORE_SECONDS),
        reraise=True,
    ):
        with attempt:
            answer_service = await stack.enter_async_context(open_answer_service(settings))
    return answer_service


@contextmanager
def _metrics_folder() -> Iterator[None]:
    """A fresh folder for what workers count, where none is named."""
    with (
        tempfile.TemporaryDirectory(prefix="apidesk-metrics-") as folder,
        variable_if_unset(METRICS_FOLDER, folder),
    ):
        yield


class _Workers(Multiprocess):
    """uvicorn's supervisor; it leaves the port when it stops, and a second signal stops at once."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket]) -> None:
        super().__init__(config, sockets)
        self._known: set[int | None] = set()

    @property
    def failed_to_start(self) -> bool:
        """Whether it ended because a worker could not begin."""
        return any(worker.exitcode == STARTUP_FAILURE for worker in self.processes)

    def keep_subprocess_alive(self) -> None:
        """Replace dead workers, and drop the gauges of those that are no more."""
        super().keep_subprocess_alive()
        living = {worker.pid for worker in self.processes}
        for pid in self._known - living:
            forget_process(cast(int, pid))
        self._known = living

    def terminate_all(self) -> None:
        """Tell the workers to stop; whoever comes now is refused rather than kept waiting."""
        super().terminate_all()
        for listening in self.sockets:
            listening.close()

    def join_all(self) -> None:
        """Wait for the workers to finish what they do."""
        for worker in self.processes:
            while worker.process.is_alive():
                worker.process.join(timeout=0.1)
                if {signal.SIGINT, signal.SIGTERM} & set(self.signal_queue):
                    worker.process.kill()
