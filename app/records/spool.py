"""Records on their way to the database: in a file of this process, where a kill does not lose them.

Appending is one write to a file, which the system keeps when the process dies; the database may be slow
or down meanwhile. Each process has its own file and holds a lock beside it. A file whose lock is free
was left by a process that has ended: whoever finds it takes it over.
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

from ingestion.milvus import batches
from schemas.record import QuestionRecord

MOST_BYTES = 256_000_000
"""A spool that the database has not taken for so long takes no more: the disk is others' too."""

BATCH = 500
"""Records that are handed over at a time."""

HandOver = Callable[[Sequence[QuestionRecord]], None]

log = logging.getLogger(__name__)


class Outbox:
    """Safe to use from several threads. A folder that cannot be written to loses records, and says so."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = uuid4().hex
        self._appending = threading.Lock()
        self._draining = threading.Lock()
        self._file: int | None = None
        self._part = 0
        self._lock = FileLock(folder / f"{self._name}.lock", thread_local=False)
        self._is_open = self._open()

    def append(self, record: QuestionRecord) -> None:
        """Write `record` down. Raises nothing: an answer goes out with or without its record."""
        line = record.model_dump_json().encode() + b"\n"
        try:
            with self._appending:
                if self._file is None:
                    self._file = self._next_file()
                if os.fstat(self._file).st_size + len(line) > MOST_BYTES:
                    raise OSError("the spool is full")
                os.write(self._file, line)
        except OSError as error:
            log.error("a question is not kept: %s", error.strerror or error)

    def drain(self, hand_over: HandOver) -> None:
        """Give what was appended, and what processes that have ended left, to `hand_over`; a file goes
        once all of it was taken. It blocks, and raises what `hand_over` raises.
        """
        with self._draining:
            _empty(self._rotate(), hand_over)
            self._take_over(hand_over)

    def close(self) -> None:
        """Let others take over what is left."""
        if self._is_open:
            if not self._rotate():
                Path(self._lock.lock_file).unlink(missing_ok=True)
            self._lock.release()

    def _open(self) -> bool:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock.acquire(timeout=0)
        except (OSError, Timeout) as error:
            log.error("questions are not kept: %s: %s", self._folder, error)
            return False
        return True

    def _next_file(self) -> int:
        if not self._is_open:
            raise OSError(f"{self._folder} cannot be written to")
        self._part += 1
        path = self._folder / f"{self._name}.{self._part:09d}.jsonl"
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _rotate(self) -> list[Path]:
        """The files that nobody writes to any more: what comes next goes into another."""
        with self._appending:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            return self._files_of(self._name)

    def _take_over(self, hand_over: HandOver) -> None:
        for path in self._folder.glob("*.lock"):
            if path.stem == self._name:
                continue
            with suppress(Timeout), FileLock(path, timeout=0, thread_local=False):
                _empty(self._files_of(path.stem), hand_over)
                path.unlink(missing_ok=True)

    def _files_of(self, name: str) -> list[Path]:
        return sorted(self._folder.glob(f"{name}.*.jsonl"))


def _empty(files: Iterable[Path], hand_over: HandOver) -> None:
    for path in files:
        for records in batches(_read(path), BATCH):
            hand_over(records)
        path.unlink(missing_ok=True)


def _read(path: Path) -> Iterator[QuestionRecord]:
    """The records of a file; a line that a power cut tore is left out."""
    for line in path.read_bytes().splitlines():
        try:
            yield QuestionRecord.model_validate_json(line)
        except ValidationError:
            log.warning("a record in the spool cannot be read: %s", path.name)
