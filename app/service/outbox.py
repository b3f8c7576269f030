"""The outbox: records in a local file until the database has them, so that a kill loses none.

Appending is one write to a file. The operating system keeps it if the process dies, and the database
may be slow or down meanwhile. Each process has its own files, and holds a lock next to them. Files
whose lock is free belong to a process that has ended: the next process that sees them delivers them.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout
from pydantic import ValidationError

from ingestion.store.client import batches
from schemas.record import QuestionRecord

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
