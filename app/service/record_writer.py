"""Writes question records to an outbox, and delivers them from the outbox to the database.

The outbox consists of local files, so a record is not lost if the process is killed or the database is
down. Each process has its own files in the outbox folder: record files, and a file that the process locks
while it runs. If that lock is free, the process has ended, and another process delivers its records.
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
from schemas.insights import Feedback, QuestionRecord
from schemas.settings import Settings

MAX_OUTBOX_BYTES = 256_000_000
"""Maximum total size of the record files of one process, in bytes, so that they do not fill the disk."""

BATCH_SIZE = 500
"""Maximum number of records that are delivered at a time."""

DELIVERY_INTERVAL_S = 0.5
"""Minimum seconds between two deliveries, so that a busy server writes many records per transaction."""

RETRY_INTERVAL_S = 5.0
"""Seconds between attempts to deliver records while the database is down."""

TAKE_OVER_INTERVAL_S = 60.0
"""Seconds after which an idle process looks for records of processes that have ended."""

SWEEP_INTERVAL_S = 600.0
"""Seconds between deletions of expired records."""

ARRIVAL_TIMEOUT_S = 2.0
"""Seconds that feedback waits for the record of its answer, which may still be in an outbox."""

WriteBatch = Callable[[Sequence[QuestionRecord]], None]
"""Writes records to the database."""

UNWRITABLE = "questions cannot be recorded: see the log and APIDESK_SPOOL"
"""The detail of the check `records` in `/health/ready` if the outbox cannot be written."""

DATABASE_DOWN = "records wait in the outbox, because the database cannot be used"
"""The detail of the check `records` if the database cannot be used."""

UNDELIVERABLE = "the records in the outbox cannot be delivered: see the log"
"""The detail of the check `records` if a file of the outbox cannot be read, locked or deleted."""

log = logging.getLogger(__name__)


class Outbox:
    """Stores the records of this process in a folder that several processes share. Thread-safe.

    If the outbox cannot be opened, for example because the folder is not writable, records are lost and
    errors are logged.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_OUTBOX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._name = uuid4().hex
        self._append_lock = threading.Lock()
        self._drain_lock = threading.Lock()
        self._file: int | None = None
        self._file_number = 0
        self._closed_bytes = 0
        """Total size of this process's earlier files, measured when the current file was opened."""
        self._process_lock = FileLock(folder / f"{self._name}.lock", thread_local=False)
        self.problem: str | None = None
        """Why the outbox could not be opened, or the last record could not be appended; otherwise None."""
        self._is_open = self._open()

    def append(self, record: QuestionRecord) -> bool:
        """Append `record` to the outbox, and return whether this succeeded.

        A failure is only logged: the user still gets the answer. A lasting failure is logged once.
        """
        line = record.model_dump_json().encode() + b"\n"
        try:
            with self._append_lock:
                if self._file is None:
                    self._file = self._next_file()
                size = os.fstat(self._file).st_size
                if self._closed_bytes + size + len(line) > self._max_bytes:
                    raise OSError("the outbox is full")
                if os.write(self._file, line) < len(line):
                    # Remove the incomplete line. Otherwise, the next record would continue this line.
                    os.ftruncate(self._file, size)
                    raise OSError("no space is left on the disk")
        except OSError as error:
            if self.problem is None:
                log.error("question not recorded: %s", error.strerror or error)
            self.problem = UNWRITABLE
            return False
        if self.problem:
            log.info("the recording of questions has resumed")
            self.problem = None
        return True

    def drain(self, write_batch: WriteBatch) -> None:
        """Deliver the records of this process and of ended processes by calling `write_batch`.

        This method blocks: call it in a worker thread. A file is deleted after all of its records have been
        written. Raises the errors of `write_batch`, and OSError if a file cannot be read, locked or
        deleted.
        """
        with self._drain_lock:
            _drain_files(self._rotate(), write_batch)
            self._drain_ended_processes(write_batch)

    def close(self) -> None:
        """Close the current file and release the lock. Other processes may deliver remaining records."""
        if self._is_open:
            if not self._rotate():
                Path(self._process_lock.lock_file).unlink(missing_ok=True)
            self._process_lock.release()

    def _open(self) -> bool:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._process_lock.acquire(timeout=0)
        except (OSError, Timeout) as error:
            log.error("questions cannot be recorded: %s: %s", self._folder, error)
            self.problem = UNWRITABLE
            return False
        return True

    def _next_file(self) -> int:
        if not self._is_open:
            raise OSError(f"the outbox in {self._folder} could not be opened")
        self._closed_bytes = sum(map(_size, self._files_of(self._name)))
        self._file_number += 1
        path = self._folder / f"{self._name}.{self._file_number:09d}.jsonl"
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _rotate(self) -> list[Path]:
        """Close the current file, and return all files of this process, which are now complete."""
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


def _size(path: Path) -> int:
    """Return the size of a file in bytes, or 0 if the file has just been delivered and deleted."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _drain_files(files: Iterable[Path], write_batch: WriteBatch) -> None:
    for path in files:
        for records in batches(_read_records(path), BATCH_SIZE):
            write_batch(records)
        path.unlink(missing_ok=True)


def _read_records(path: Path) -> Iterator[QuestionRecord]:
    """Yield the records in a file. An unreadable line, for example after a power failure, is skipped."""
    for line in path.read_bytes().splitlines():
        try:
            yield QuestionRecord.model_validate_json(line)
        except ValidationError:
            log.warning("skipped an unreadable record in the outbox: %s", path.name)


class RecordWriter:
    """Writes the question records of a server, and deletes expired ones.

    With APIDESK_KEEP_QUESTIONS=false, nothing is written, but expired records are still deleted. `on_loss`
    is called for each record that is lost because it could not be written to the outbox.
    """

    def __init__(
        self, engine: Engine, settings: Settings, on_loss: Callable[[], None] = lambda: None
    ) -> None:
        self._store = RecordStore(engine)
        self.folder = _outbox_folder(settings.spool, engine) if settings.keep_questions else None
        """The outbox folder; None if questions are not recorded."""
        self._outbox = Outbox(self.folder) if self.folder else None
        self._max_age_days = settings.keep_days
        self._max_delay_s = settings.request_timeout + TAKE_OVER_INTERVAL_S
        """Seconds after a question within which its record normally reaches the database."""
        self._has_records = asyncio.Event()
        self._delivery_problem: str | None = None
        self._on_loss = on_loss

    @property
    def problem(self) -> str | None:
        """Why records are lost, or wait in the outbox; None if neither is the case."""
        return (self._outbox and self._outbox.problem) or self._delivery_problem

    def write(self, record: QuestionRecord) -> None:
        """Append `record` to the outbox, if questions are recorded. Fast, and raises no errors."""
        if self._outbox:
            if not self._outbox.append(record):
                self._on_loss()
            self._has_records.set()

    async def rate(self, owner: str, answer_id: UUID, feedback: Feedback) -> bool:
        """Store the feedback on an answer, and return whether `owner` has an answer with this id.

        If questions are not recorded, return False. Raises StoreUnavailable.
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
        """Within the block, deliver records to the database, and delete expired ones from it.

        When the block ends, deliver the remaining records. If that fails, another process delivers them
        later.
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
        """Return whether the record of an answer may still be in an outbox.

        The id of an answer is a UUID of version 7, which contains its creation time. If the clocks of
        machines differ, the time may be in the future.
        """
        age_s = time.time() - (answer_id.int >> 80) / 1_000
        return answer_id.version == 7 and abs(age_s) < self._max_delay_s

    async def _deliver(self, outbox: Outbox) -> None:
        while True:
            is_delivered = await self._drain(outbox)
            await asyncio.sleep(DELIVERY_INTERVAL_S if is_delivered else RETRY_INTERVAL_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(TAKE_OVER_INTERVAL_S):
                    await self._has_records.wait()

    async def _drain(self, outbox: Outbox) -> bool:
        """Deliver the records that `outbox.drain` finds, and return whether this succeeded."""
        self._has_records.clear()
        problem, reason = None, ""
        try:
            await asyncio.to_thread(outbox.drain, self._store.add)
        except StoreUnavailable as error:
            self._has_records.set()
            problem, reason = DATABASE_DOWN, str(error)
        except OSError as error:
            problem, reason = UNDELIVERABLE, str(error)
        if problem and problem != self._delivery_problem:
            log.error("records wait in the outbox: %s", reason)
        elif self._delivery_problem and not problem:
            log.info("the delivery of records has resumed")
        self._delivery_problem = problem
        return problem is None

    async def _sweep(self) -> None:
        while True:
            with suppress(StoreUnavailable):
                await asyncio.to_thread(self._store.delete_older_than, self._max_age_days)
            await asyncio.sleep(SWEEP_INTERVAL_S)


def _outbox_folder(spool: Path, engine: Engine) -> Path:
    """Return the outbox folder of a database.

    Each database has its own folder, so that records are not delivered to another installation.
    """
    url = engine.url.render_as_string(hide_password=True)
    return spool / hashlib.sha256(url.encode()).hexdigest()[:16]
