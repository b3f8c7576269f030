"""Stores the reports of ingestion runs and starts runs on a schedule."""

import asyncio
import hashlib
import logging
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from filelock import FileLock
from sqlalchemy import Connection, select, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError
from tenacity import AsyncRetrying, retry_if_not_exception_type, stop_after_attempt, wait_fixed

from ingestion.database.engine import database_errors, open_engine
from ingestion.database.tables import ingestion_runs_table as runs_table
from schemas.errors import (
    ConfigurationError,
    IngestionRunning,
    IngestionStopped,
    StoreUnavailable,
)
from schemas.ingestion import IngestionRun
from schemas.platform import IngestionSchedule
from schemas.settings import Settings

if TYPE_CHECKING:
    from cronsim import CronSim

MAX_LISTED_RUNS = 50
"""Number of runs that are listed by default. Older runs stay in the database."""

_COUNT_LOCKS = text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND ((CAST(classid AS bigint) << 32) | CAST(objid AS bigint)) = :key"
)
"""Counts the holders of an advisory lock. PostgreSQL stores the lock's key as two 32-bit halves."""

MAX_SLEEP_S = 30.0
"""Maximum number of seconds per sleep, so that a change of the system clock takes effect soon."""

ORPHANED = "the process ended before the run finished"
"""The error that is reported for a run whose process has ended during the run."""

log = logging.getLogger(__name__)


def lock_path(collection: str) -> Path:
    """Return the path of the lock file of the collection with this id (`Settings.collection_id`).

    The file is in the temporary folder, which all processes of a machine usually share.
    """
    name = hashlib.sha256(collection.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"apidesk-{name}.lock"


class IngestionRunStore:
    """Stores the runs of one collection. Its methods block; call them in a worker thread.

    Methods that use the database raise StoreUnavailable if the database cannot be used. If the process of a
    run has died, the stored state is still `running`, but the run is returned as `failed`.
    """

    def __init__(self, engine: Engine, collection: str) -> None:
        self.engine = engine
        """The database. Other stores, such as that of the sessions, may use the same engine."""
        self._collection = collection
        self._thread = ThreadPoolExecutor(1, "runs")
        self._read: Future[list[IngestionRun]] | None = None
        """The read that concurrent calls of `latest_within` share."""

    @classmethod
    def open(cls, settings: Settings, engine: Engine | None = None) -> "IngestionRunStore":
        """Return the store of the runs in `engine`. If `engine` is None, open the database of `settings`.

        Raises the same errors as `open_engine`.
        """
        return cls(engine or open_engine(settings), settings.collection_id)

    def close(self) -> None:
        """Close all database connections."""
        self._thread.shutdown(wait=False)
        self.engine.dispose()

    def save(self, run: IngestionRun) -> None:
        """Insert or update `run`."""
        row = {"started_at": run.started_at, "report": run.model_dump_json()}
        is_run = runs_table.c.id == run.id
        with database_errors(), self.engine.begin() as connection:
            if not connection.execute(runs_table.update().where(is_run).values(row)).rowcount:
                connection.execute(
                    runs_table.insert().values(id=run.id, collection=self._collection, **row)
                )

    def get(self, run_id: str) -> IngestionRun | None:
        """Return the run with this id, or None if there is none."""
        runs = self._select_checked(runs_table.c.id == run_id)
        return runs[0] if runs else None

    def latest(self, count: int = MAX_LISTED_RUNS) -> list[IngestionRun]:
        """Return the latest `count` runs, newest first."""
        return self._select_checked(limit=count)

    async def latest_within(self, timeout_s: float) -> list[IngestionRun]:
        """Return the latest runs. Raises StoreUnavailable after `timeout_s` seconds.

        Callers share one read, so that a database that does not answer blocks only one thread.
        """
        if self._read is None or self._read.done():
            self._read = self._thread.submit(self.latest)
        read = asyncio.wrap_future(self._read)
        # After a timeout, nothing awaits the read. Without this callback, asyncio would log its error.
        read.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(read)
        except TimeoutError:
            raise StoreUnavailable("the database does not answer in time") from None

    def fail_orphaned_runs(self) -> None:
        """Mark runs as failed if their process ended during the run.

        Call this method only while holding the ingestion lock, and before a new run is saved: it marks all
        recent runs that have the state `running`.
        """
        for run in self._select(limit=MAX_LISTED_RUNS):
            if run.state == "running":
                run.state, run.error = "failed", ORPHANED
                self.save(run)

    @contextmanager
    def exclusive_run(self) -> Iterator[None]:
        """Hold the collection's ingestion lock in PostgreSQL, which all machines with this database share.

        The server releases the lock if the process ends or loses its connection. Raises IngestionRunning if
        another run holds the lock.

        With SQLite, this method does nothing: `run_lock` (ingestion/job.py) suffices on one machine.
        """
        if self.engine.dialect.name != "postgresql":
            yield
            return
        key = {"key": self._lock_key}
        with ExitStack() as stack:
            with database_errors():
                connection = stack.enter_context(self.engine.connect())
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
                if not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), key):
                    raise IngestionRunning(
                        f"another ingestion is running: {self._describe_running()}"
                    )
            stack.callback(_unlock, connection, key)
            yield

    @property
    def _lock_key(self) -> int:
        """The key of the collection's advisory lock in PostgreSQL."""
        digest = hashlib.sha256(f"ingestion {self._collection}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)

    def _has_ended(self, run: IngestionRun) -> bool:
        """Return whether no process holds the lock of `run`, whose state is `running`.

        With SQLite, the lock is a file. For a run on another machine, the result is therefore always False.
        """
        if self.engine.dialect.name == "postgresql":
            with database_errors(), self.engine.connect() as connection:
                return not connection.scalar(_COUNT_LOCKS, {"key": self._lock_key})
        path = lock_path(self._collection)
        # If the file is missing, the run's process may use another temporary folder.
        if run.host == socket.gethostname() and path.exists():
            with suppress(OSError), FileLock(path, timeout=0):
                return True
        return False

    def _describe_running(self) -> str:
        running = next((run for run in self.latest() if run.state == "running"), None)
        return running.describe() if running else "no details are available"

    def _select_checked(self, *where: object, limit: int = 1) -> list[IngestionRun]:
        """Return the selected runs, newest first. Runs whose process has died are returned as `failed`.

        A run that ends normally stores its final state before it releases the lock. Therefore, if the lock
        is free, the runs are read again. A run that has the state `running` even in this second reading did
        not end normally.
        """
        runs = self._select(*where, limit=limit)
        ended = {run.id for run in runs if run.state == "running" and self._has_ended(run)}
        if not ended:
            return runs
        runs = self._select(*where, limit=limit)
        for run in runs:
            if run.state == "running" and run.id in ended:
                run.state, run.error = "failed", ORPHANED
        return runs

    def _select(self, *where: object, limit: int) -> list[IngestionRun]:
        query = (
            select(runs_table.c.report)
            .where(runs_table.c.collection == self._collection, *where)  # type: ignore[arg-type]
            .order_by(runs_table.c.started_at.desc())
            .limit(limit)
        )
        with database_errors(), self.engine.connect() as connection:
            return [
                IngestionRun.model_validate_json(row.report) for row in connection.execute(query)
            ]


def _unlock(connection: Connection, key: dict[str, int]) -> None:
    with suppress(SQLAlchemyError):  # a server that lost the connection has released the lock
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)


def scheduled_times(schedule: IngestionSchedule, after: datetime) -> "CronSim":
    """Return an iterator over the scheduled times after `after`.

    Raises ConfigurationError for an invalid expression or time zone.
    """
    from cronsim import CronSim, CronSimError

    try:
        zone = ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(
            f"ingestion.timezone: unknown time zone {schedule.timezone!r}"
        ) from None
    try:
        return CronSim(schedule.schedule or "", after.astimezone(zone))
    except CronSimError as error:
        raise ConfigurationError(f"ingestion.schedule: {schedule.schedule!r}: {error}") from None


async def run_on_schedule(
    schedule: IngestionSchedule, run: Callable[[], Awaitable[object]]
) -> None:
    """Await `run` at each scheduled time, until cancelled. Retry a failed run as `schedule` specifies.

    Scheduled times that pass during a run or its retries are skipped.
    """
    while True:
        await _sleep_until(next(scheduled_times(schedule, datetime.now(UTC))))
        await _run_with_retries(schedule, run)


async def _sleep_until(moment: datetime) -> None:
    while (seconds := (moment - datetime.now(UTC)).total_seconds()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(seconds, MAX_SLEEP_S))


async def _run_with_retries(
    schedule: IngestionSchedule, run: Callable[[], Awaitable[object]]
) -> None:
    retrying = AsyncRetrying(
        retry=retry_if_not_exception_type(
            (asyncio.CancelledError, IngestionRunning, IngestionStopped)
        ),
        wait=wait_fixed(schedule.retry_seconds),
        stop=stop_after_attempt(1 + schedule.retries),
        reraise=True,
    )

    async def attempt() -> None:  # tenacity awaits only coroutine functions
        await run()

    try:
        await retrying(attempt)
    except IngestionRunning as error:
        log.info("skipped a scheduled ingestion: %s", error)
    except IngestionStopped as error:
        log.info("stopped a scheduled ingestion: %s", error)
    except Exception as error:
        # The next scheduled run starts as usual.
        log.error("a scheduled ingestion failed: %s", error)
