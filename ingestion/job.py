"""One ingestion run at a time, also across processes.
The ingestion job: one run at a time, each with a report that stays.
"""

import asyncio
import hashlib
import json
import logging
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout
from langchain_core.embeddings import Embeddings
from structlog.contextvars import bound_contextvars

from ingestion.embedder import ChunkEmbedder
from ingestion.platform_config import read_platform
from ingestion.providers import open_embeddings
from ingestion.runs import IngestionRunStore
from ingestion.store.collection import Collection
from ingestion.sync import SourceReader, Sync
from schemas.errors import ApideskError, IngestionRunning, IngestionStopped
from schemas.ingestion import IngestionOptions, IngestionRun, RunState, Trigger
from schemas.settings import Settings
from schemas.source import SourceLimits


@contextmanager
def run_lock(settings: Settings, run: IngestionRun) -> Iterator[None]:
    """Hold the lock of the collection in Settings; the system frees it when the process dies.

    Raises IngestionRunning that says who holds it.
    """
    path = _lock_file(settings)
    holder = path.with_suffix(".json")
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise _running(path) from None
    try:
        holder.write_text(run.model_dump_json(by_alias=False), encoding="utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def check_free(settings: Settings) -> None:
    """Raises IngestionRunning that says who holds the lock, when somebody does."""
    path = _lock_file(settings)
    try:
        with FileLock(path, timeout=0):
            pass
    except Timeout:
        raise _running(path) from None


def _running(path: Path) -> IngestionRunning:
    return IngestionRunning(f"another ingestion is under way: {_holder(path)}")


def _lock_file(settings: Settings) -> Path:
    """A file that every process on this machine finds for the same collection."""
    name = hashlib.sha256(settings.collection_id.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"apidesk-{name}.lock"


def _holder(path: Path) -> str:
    try:
        run = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        since = run["started_at"][:19].replace("T", " ")
        return f"process {run['pid']} on {run['host']}, begun by {run['trigger']} at {since} UTC"
    except (OSError, ValueError, KeyError):
        return "a process that has just begun"


SAVE_EVERY = 1.0
"""Seconds after which the report of a run that goes on is saved again."""

IngestionProgress = Callable[[IngestionRun], None]

log = logging.getLogger(__name__)


class IngestionJob:
    """Brings a collection in step with platform.toml, which is read anew for each run."""

    def __init__(
        self,
        settings: Settings,
        collection: Collection,
        embeddings: Embeddings | None,
        runs: IngestionRunStore,
    ) -> None:
        self.collection = collection
        self.embeddings = embeddings
        self.runs = runs
        self._settings = settings
        self._embedder = ChunkEmbedder(embeddings, settings) if embeddings else None
        self._reader = SourceReader(SourceLimits.from_settings(settings), settings.chunk_tokens)
        self._stopping = threading.Event()

    @classmethod
    def connect(cls, settings: Settings) -> "IngestionJob":
        """The job over the stores in Settings.

        Raises ConfigurationError, StoreLocked or StoreUnavailable.
        """
        embeddings = open_embeddings(settings)
        return cls(
            settings, Collection.connect(settings), embeddings, IngestionRunStore.open(settings)
        )

    def close(self) -> None:
        """Close the stores."""
        self.collection.close()
        self.runs.close()

    def new_run(self, trigger: Trigger, options: IngestionOptions | None = None) -> IngestionRun:
        """A run that has not begun."""
        return IngestionRun(
            id=uuid4().hex,
            trigger=trigger,
            options=options or IngestionOptions(),
            started_at=datetime.now(UTC),
            host=socket.gethostname(),
            pid=os.getpid(),
        )

    def stop(self) -> None:
        """End the run that goes on at its next document, and every later one."""
        self._stopping.set()

    def run(
        self, run: IngestionRun, progress: IngestionProgress = lambda run: None
    ) -> IngestionRun:
        """Do `run` to its end and keep its report; `progress` is called when it has begun,
        after each document, and at the end.

        Raises IngestionRunning when another run goes on, and what made the run fail: ConfigurationError
        for platform.toml, ModelError, StoreError, DeletesRefused.
        """
        with run_lock(self._settings, run), bound_contextvars(ingestion=run.id):
            self.runs.fail_orphaned_runs()
            report = _Reporting(run, self.runs, progress, self._stopping)
            try:
                self._sync(run, report)
            except BaseException as error:
                run.error = _said(error)
                report.end("failed")
                raise
            report.end("partial" if run.refused else "succeeded")
        return run

    def _sync(self, run: IngestionRun, report: "_Reporting") -> None:
        platform = read_platform(self._settings.platform)
        sync = Sync(self.collection, self._embedder, self._reader, run.options, report.step)
        run.sources = sync.reports
        sync.run(platform.sources)


async def run_in_thread(
    job: IngestionJob, run: IngestionRun, progress: IngestionProgress = lambda run: None
) -> IngestionRun:
    """Do `run` in a worker thread; when cancelled, stop `job` and wait for its next document.

    Raises what `IngestionJob.run` does.
    """
    running = asyncio.ensure_future(asyncio.to_thread(job.run, run, progress))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        job.stop()
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # the report has it
        raise


def _said(error: BaseException) -> str:
    """One line for the report; what nobody foresaw goes to the log whole, since nobody may see it else."""
    if isinstance(error, ApideskError):
        return str(error)
    log.error("an ingestion failed", exc_info=error)
    return type(error).__name__


class _Reporting:
    """Shows and keeps a run's report while it goes on."""

    def __init__(
        self,
        run: IngestionRun,
        runs: IngestionRunStore,
        progress: IngestionProgress,
        stopping: threading.Event,
    ) -> None:
        self._run = run
        self._runs = runs
        self._progress = progress
        self._stopping = stopping
        self._started = self._saved = time.monotonic()
        runs.save(run)
        progress(run)

    def step(self) -> None:
        """Raises IngestionStopped when the run is to end."""
        if self._stopping.is_set():
            raise IngestionStopped(
                "the run was stopped before its end; the next one goes on from there"
            )
        self._progress(self._run)
        if time.monotonic() - self._saved > SAVE_EVERY:
            self._save()

    def end(self, state: RunState) -> None:
        """Say how the run ended."""
        self._run.state = state
        self._run.finished_at = datetime.now(UTC)
        self._save()
        self._progress(self._run)

    def _save(self) -> None:
        self._saved = time.monotonic()
        self._run.seconds = round(self._saved - self._started, 3)
        self._runs.save(self._run)
