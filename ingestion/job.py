"""Runs ingestions. A lock allows one run of a collection at a time, and every run stores a report.

The lock is a file, which excludes other runs on the same machine. With PostgreSQL, a lock in the database
also excludes runs on other machines.
"""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout
from langchain_core.embeddings import Embeddings
from sqlalchemy.engine import Engine
from structlog.contextvars import bound_contextvars

from ingestion.embeddings import ChunkEmbedder, SavedVectors, open_embeddings
from ingestion.platform_config import read_platform
from ingestion.runs import IngestionRunStore, lock_path
from ingestion.source_reading import ReadOptions
from ingestion.store.collection import Collection
from ingestion.sync import Sync
from schemas.errors import ApideskError, IngestionRunning, IngestionStopped
from schemas.ingestion import IngestionOptions, IngestionRun, RunState, Trigger
from schemas.platform import SourceLimits
from schemas.settings import Settings

SAVE_INTERVAL_S = 1.0
"""Minimum number of seconds between two saves of the report during a run."""

LOCK_TIMEOUT_S = 0.2
"""Seconds that a run waits for the lock.

A process that reads the reports also takes the lock for a moment, to check whether the process of a run has
died.
"""

SCHEDULE_POLL_S = 30.0
"""Seconds between two attempts of a process to take over the schedule from another process."""

ProgressCallback = Callable[[IngestionRun], None]
"""Callback that receives the report when a run begins, after each document or batch, and when it ends."""

log = logging.getLogger(__name__)


class IngestionJob:
    """Updates a collection to match platform.toml, which is read at the start of each run."""

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
        saved = SavedVectors.next_to_snapshot(settings)
        self._embedder = ChunkEmbedder(embeddings, settings, saved) if embeddings else None
        self._read_options = ReadOptions(
            SourceLimits.from_settings(settings), settings.chunk_tokens
        )
        self._stopping = threading.Event()

    @classmethod
    def connect(
        cls, settings: Settings, engine: Engine | None = None, *, long_lived: bool = False
    ) -> "IngestionJob":
        """Connect to the stores in `settings` and return a job. This method blocks.

        `engine` is the database of `settings` if the caller has opened it already. `long_lived` must be
        true if this process continues after a run, so that the memory of the run is freed. Raises
        ConfigurationError or StoreUnavailable.
        """
        embeddings = open_embeddings(settings)
        collection = Collection.connect(settings, long_lived=long_lived)
        # The collection may have the default name of earlier versions: see `Settings.former_collection`.
        settings = settings.model_copy(update={"collection": collection.alias})
        runs = IngestionRunStore.open(settings, engine)
        return cls(settings, collection, embeddings, runs)

    def close(self) -> None:
        """Close the stores."""
        self.collection.close()
        self.runs.close()

    def new_run(self, trigger: Trigger, options: IngestionOptions | None = None) -> IngestionRun:
        """Return a new run; an `IngestionRun` is also the report of the run."""
        return IngestionRun(
            id=uuid4().hex,
            trigger=trigger,
            options=options or IngestionOptions(),
            started_at=datetime.now(UTC),
            host=socket.gethostname(),
            pid=os.getpid(),
        )

    def stop(self) -> None:
        """Stop the current run after its current document or batch. Later runs of this job stop as well."""
        self._stopping.set()

    @asynccontextmanager
    async def scheduling(self) -> AsyncIterator[None]:
        """Wait until no other process on this machine schedules runs of the collection, then run the block.

        Therefore, only one worker process of a server starts scheduled runs. If this process dies, another
        one takes over.
        """
        path = lock_path(self._settings.collection_id).with_suffix(".schedule")
        lock = FileLock(path, timeout=0, thread_local=False)
        while not lock.is_locked:
            try:
                lock.acquire()
            except Timeout:
                await asyncio.sleep(SCHEDULE_POLL_S)
        try:
            yield
        finally:
            lock.release()

    def run(self, run: IngestionRun, progress: ProgressCallback = lambda run: None) -> IngestionRun:
        """Execute `run` and return it. This method blocks until the run ends.

        `run` is also the report: it is updated during the run, and saved at the beginning, regularly, and
        at the end. Raises:

        - IngestionRunning if another run is in progress
        - IngestionStopped after `stop`
        - ConfigurationError if platform.toml is invalid, or if documents are stored but none is from a
          source in platform.toml
        - CollectionMismatch if the collection was built with settings that differ from the current ones,
          for example with another embedding model
        - DeletionsRefused if a rebuild would lose documents
        - ModelError or StoreError if the embedding model or a store fails
        """
        with (
            run_lock(self._settings, run),
            self.runs.exclusive_run(),
            bound_contextvars(ingestion=run.id),
        ):
            self.runs.fail_orphaned_runs()
            reporter = _RunReporter(run, self.runs, progress, self._stopping)
            try:
                self._sync(run, reporter)
            except BaseException as error:
                run.error = _error_line(error)
                reporter.end("failed")
                raise
            reporter.end("partial" if run.refused else "succeeded")
        return run

    def _sync(self, run: IngestionRun, reporter: "_RunReporter") -> None:
        platform = read_platform(self._settings.platform)
        sync = Sync(
            self.collection, self._embedder, self._read_options, run.options, reporter.update
        )
        run.sources = sync.reports
        sync.run(platform.sources, str(self._settings.platform))
        if self._embedder is not None and not run.options.dry_run:
            self._embedder.discard_saved_vectors()


async def run_in_thread(
    job: IngestionJob, run: IngestionRun, progress: ProgressCallback = lambda run: None
) -> IngestionRun:
    """Execute `run` in a worker thread. If this task is cancelled, stop `job` and wait for the run to end.

    Raises the same errors as `IngestionJob.run`.
    """
    task = asyncio.ensure_future(asyncio.to_thread(job.run, run, progress))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        job.stop()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # otherwise, asyncio would log the error; the report contains it
        raise


@contextmanager
def run_lock(settings: Settings, run: IngestionRun) -> Iterator[None]:
    """Hold the file lock of the collection in `settings` during the block.

    If the process dies, the operating system releases the lock. Raises IngestionRunning if another run
    holds the lock; the message describes that run if possible.
    """
    path = lock_path(settings.collection_id)
    holder_path = path.with_suffix(".json")
    lock = FileLock(path, timeout=LOCK_TIMEOUT_S, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise IngestionRunning(
            f"another ingestion is running: {_describe_holder(holder_path)}"
        ) from None
    try:
        with suppress(OSError):  # the file only describes the run to other processes
            holder_path.write_text(run.model_dump_json(by_alias=False), encoding="utf-8")
        yield
    finally:
        holder_path.unlink(missing_ok=True)
        lock.release()


def _describe_holder(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
        return IngestionRun.model_validate_json(text, by_name=True).describe()
    except (OSError, ValueError):
        return "no details are available"


class _RunReporter:
    """Updates and saves the report of a run, and passes it to the `progress` callback."""

    def __init__(
        self,
        run: IngestionRun,
        runs: IngestionRunStore,
        progress: ProgressCallback,
        stopping: threading.Event,
    ) -> None:
        self._run = run
        self._runs = runs
        self._progress = progress
        self._stopping = stopping
        self._started_at = self._saved_at = time.monotonic()
        runs.save(run)
        progress(run)

    def update(self) -> None:
        """Report progress. Raises IngestionStopped if the job was stopped."""
        if self._stopping.is_set():
            raise IngestionStopped(
                "the run was stopped before it finished; the next run continues it"
            )
        self._progress(self._run)
        if time.monotonic() - self._saved_at > SAVE_INTERVAL_S:
            self._save()

    def end(self, state: RunState) -> None:
        """Store the final state of the run."""
        self._run.state = state
        self._run.finished_at = datetime.now(UTC)
        self._save()
        self._progress(self._run)

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        self._run.seconds = round(self._saved_at - self._started_at, 3)
        self._runs.save(self._run)


def _error_line(error: BaseException) -> str:
    """Return a description of `error` for the report. Log unexpected errors with their stack trace."""
    if isinstance(error, ApideskError):
        return str(error)
    log.error("an ingestion failed", exc_info=error)
    return type(error).__name__
