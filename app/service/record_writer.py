"""The outbox: records in a local file until the database has them, so that a kill loses none.

Appending is one write to a file. The operating system keeps it if the process dies, and the database
may be slow or down meanwhile. Each process has its own files, and holds a lock next to them. Files
whose lock is free belong to a process that has ended: the next process that sees them delivers them.
Writes question records: at once to the outbox, soon after to the database, and deletes old ones.
"""

import asyncio
import hashlib
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import UUID, uuid4

from filelock import FileLock, Timeout
from pydantic import ValidationError
from sqlalchemy.engine import Engine
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from app.service.records import RecordStore
from ingestion.store.client import batches
from schemas.errors import StoreUnavailable
from schemas.record import Feedback, QuestionRecord
from schemas.settings import Settings

MAX_FILE_BYTES = 256_000_000
"""An undelivered file stops growing at this size, to leave room on the disk."""

BATCH_SIZE = 500
"""The number of records that are delivered at a time."""

WriteBatch = Callable[[Sequence[QuestionRecord]], None]

log = logging.getLogger(__name__)


class Outbox:
    """The records of this process in a folder that processes share. Safe to use from several threads.

    If the folder is not writable, records are lost; the log says so.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = uuid4().hex
        self._append_lock = threading.Lock()
        self._drain_lock = threading.Lock()
        self._file: int | None = None
        self._file_number = 0
        self._lock = FileLock(folder / f"{self._name}.lock", thread_local=False)
        self._is_open = self._open()

    def append(self, record: QuestionRecord) -> None:
        """Append `record` to the file. A failure is logged: it must not cost the caller the answer."""
        line = record.model_dump_json().encode() + b"\n"
        try:
            with self._append_lock:
                if self._file is None:
                    self._file = self._next_file()
                if os.fstat(self._file).st_size + len(line) > MAX_FILE_BYTES:
                    raise OSError("the outbox is full")
                os.write(self._file, line)
        except OSError as error:
            log.error("question not recorded: %s", error.strerror or error)

    def drain(self, write_batch: WriteBatch) -> None:
        """Pass this process's records, and those of processes that have ended, to `write_batch`.

        A file is deleted once all of it was written. It blocks, and raises what `write_batch` raises.
        """
        with self._drain_lock:
            _drain_files(self._rotate(), write_batch)
            self._drain_ended_processes(write_batch)

    def close(self) -> None:
        """Release the lock, so that other processes deliver what is left."""
        if self._is_open:
            if not self._rotate():
                Path(self._lock.lock_file).unlink(missing_ok=True)
            self._lock.release()

    def _open(self) -> bool:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock.acquire(timeout=0)
        except (OSError, Timeout) as error:
            log.error("questions cannot be recorded: %s: %s", self._folder, error)
            return False
        return True

    def _next_file(self) -> int:
        if not self._is_open:
            raise OSError(f"{self._folder} is not writable")
        self._file_number += 1
        path = self._folder / f"{self._name}.{self._file_number:09d}.jsonl"
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _rotate(self) -> list[Path]:
        """Close the current file, and return all files of this process: none is written to any more."""
        with self._append_lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            return self._files_of(self._name)

    def _drain_ended_processes(self, write_batch: WriteBatch) -> None:
        for lock in self._folder.glob("*.lock"):
            if lock.stem == self._name:
                continue
            with suppress(Timeout), FileLock(lock, timeout=0, thread_local=False):
                _drain_files(self._files_of(lock.stem), write_batch)
                lock.unlink(missing_ok=True)

    def _files_of(self, name: str) -> list[Path]:
        return sorted(self._folder.glob(f"{name}.*.jsonl"))


def _drain_files(files: Iterable[Path], write_batch: WriteBatch) -> None:
    for path in files:
        for records in batches(_read_records(path), BATCH_SIZE):
            write_batch(records)
        path.unlink(missing_ok=True)


def _read_records(path: Path) -> Iterator[QuestionRecord]:
    """Skips lines that a power failure has truncated."""
    for line in path.read_bytes().splitlines():
        try:
            yield QuestionRecord.model_validate_json(line)
        except ValidationError:
            log.warning("skipped an unreadable record in the outbox: %s", path.name)


RETRY_INTERVAL_S = 5.0
"""The time between attempts while the database is down."""

TAKE_OVER_INTERVAL_S = 60.0
"""How often an idle process looks for the records of processes that have ended."""

SWEEP_INTERVAL_S = 600.0
"""The time between deletions of expired records."""

ARRIVAL_TIMEOUT_S = 2.0
"""How long feedback waits for its record, which may still be in the outbox of some process."""


class RecordWriter:
    """Writes the records of a server.

    With APIDESK_KEEP_QUESTIONS=false nothing is written, but older records still expire.
    """

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._store = RecordStore(engine)
        self.folder = _outbox_folder(settings.spool, engine) if settings.keep_questions else None
        """The folder with the outboxes of this installation."""
        self._outbox = Outbox(self.folder) if self.folder else None
        self._max_age_days = settings.keep_days
        self._max_delay_s = settings.request_timeout + TAKE_OVER_INTERVAL_S
        self._has_records = asyncio.Event()

    def write(self, record: QuestionRecord) -> None:
        """Write `record` so that it survives this process. Takes microseconds, raises nothing."""
        if self._outbox:
            self._outbox.append(record)
            self._has_records.set()

    async def rate(self, owner: str, answer_id: UUID, feedback: Feedback) -> bool:
        """Store the feedback on an answer, and return whether `owner` has an answer with this id.

        Raises StoreUnavailable.
        """
        if not self._outbox:
            return False
        timeout_s = ARRIVAL_TIMEOUT_S if self._may_be_undelivered(answer_id) else 0
        attempts = AsyncRetrying(
            retry=retry_if_result(lambda has_record: not has_record),
            wait=wait_fixed(0.2),
            stop=stop_after_delay(timeout_s),
        )
        try:
            return await attempts(
                asyncio.to_thread, self._store.rate, owner, str(answer_id), feedback
            )
        except RetryError:
            return False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within the block, move records to the database and delete expired ones.

        At its end, the remaining records are moved.
        """
        tasks = [asyncio.create_task(self._sweep())]
        if self._outbox:
            tasks.append(asyncio.create_task(self._deliver(self._outbox)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._outbox:
                await self._drain(self._outbox)
                self._outbox.close()

    def _may_be_undelivered(self, answer_id: UUID) -> bool:
        """Whether the answer is recent, by the time in its UUID of version 7."""
        age_s = time.time() - (answer_id.int >> 80) / 1_000
        return answer_id.version == 7 and abs(age_s) < self._max_delay_s

    async def _deliver(self, outbox: Outbox) -> None:
        while True:
            is_delivered = await self._drain(outbox)
            await asyncio.sleep(0 if is_delivered else RETRY_INTERVAL_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(TAKE_OVER_INTERVAL_S):
                    await self._has_records.wait()

    async def _drain(self, outbox: Outbox) -> bool:
        """Return whether the database has all records."""
        self._has_records.clear()
        try:
            await asyncio.to_thread(outbox.drain, self._store.add)
        except StoreUnavailable:
            self._has_records.set()
            return False
        except OSError as error:
            log.error("the outbox cannot be read: %s", error)
            return False
        return True

    async def _sweep(self) -> None:
        while True:
            with suppress(StoreUnavailable):
                await asyncio.to_thread(self._store.delete_older_than, self._max_age_days)
            await asyncio.sleep(SWEEP_INTERVAL_S)


def _outbox_folder(spool: Path, engine: Engine) -> Path:
    """One folder for each database, so that records never reach another installation's database."""
    url = engine.url.render_as_string(hide_password=True)
    return spool / hashlib.sha256(url.encode()).hexdigest()[:16]
