"""Records on their way to the database: in a file of this process, where a kill does not lose them.

Appending is one write to a file, which the system keeps when the process dies; the database may be slow
or down meanwhile. Each process has its own file and holds a lock beside it. A file whose lock is free
was left by a process that has ended: whoever finds it takes it over.
Keeps questions: at once in the spool, soon in the database, and no longer than they may be.
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


PAUSE_SECONDS = 5.0
"""Between attempts while the database is down."""

TAKE_OVER_SECONDS = 60.0
"""After which a process without questions of its own looks for what others left."""

SWEEP_SECONDS = 600.0
"""How long what is too old may stay."""

ARRIVAL_SECONDS = 2.0
"""How long a record may be under way, in this process or in another, when its feedback is there."""


class RecordWriter:
    """The questions of a server. Where Settings keep none, none is written; what was kept expires."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._store = RecordStore(engine)
        self.folder = _folder(settings.spool, engine) if settings.keep_questions else None
        """Where the spools of this installation lie."""
        self._spool = Outbox(self.folder) if self.folder else None
        self._days = settings.keep_days
        self._longest = settings.request_timeout + TAKE_OVER_SECONDS
        self._arrived = asyncio.Event()

    def keep(self, record: QuestionRecord) -> None:
        """Keep `record`, come what may to this process. Takes microseconds, raises nothing."""
        if self._spool:
            self._spool.append(record)
            self._arrived.set()

    async def rate(self, owner: str, answer_id: UUID, feedback: Feedback) -> bool:
        """Keep what `owner` thought of an answer; whether there is such an answer of theirs.

        Raises StoreUnavailable.
        """
        if not self._spool:
            return False
        attempts = AsyncRetrying(
            retry=retry_if_result(lambda found: not found),
            wait=wait_fixed(0.2),
            stop=stop_after_delay(ARRIVAL_SECONDS if self._under_way(answer_id) else 0),
        )
        try:
            return await attempts(
                asyncio.to_thread, self._store.rate, owner, str(answer_id), feedback
            )
        except RetryError:
            return False

    def _under_way(self, answer_id: UUID) -> bool:
        """Whether the record may not have arrived yet, by the time that a UUID of version 7 holds."""
        age = time.time() - (answer_id.int >> 80) / 1_000
        return answer_id.version == 7 and abs(age) < self._longest

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within the block records move to the database, and leave it when they are too old; at its end
        all that there are have moved.
        """
        tasks = [asyncio.create_task(self._sweep())]
        if self._spool:
            tasks.append(asyncio.create_task(self._move(self._spool)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._spool:
                await self._drain(self._spool)
                self._spool.close()

    async def _move(self, spool: Outbox) -> None:
        while True:
            moved = await self._drain(spool)
            await asyncio.sleep(0 if moved else PAUSE_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(TAKE_OVER_SECONDS):
                    await self._arrived.wait()

    async def _drain(self, spool: Outbox) -> bool:
        """Whether the database took everything."""
        self._arrived.clear()
        try:
            await asyncio.to_thread(spool.drain, self._store.add)
        except StoreUnavailable:
            self._arrived.set()  # what is left is still to be moved
            return False
        except OSError as error:
            log.error("the spool of questions cannot be read: %s", error)
            return False
        return True

    async def _sweep(self) -> None:
        while True:
            with suppress(StoreUnavailable):
                await asyncio.to_thread(self._store.forget, self._days)
            await asyncio.sleep(SWEEP_SECONDS)


def _folder(spool: Path, engine: Engine) -> Path:
    """One for each database: records that were meant for another would be lost in this one."""
    url = engine.url.render_as_string(hide_password=True)
    return spool / hashlib.sha256(url.encode()).hexdigest()[:16]
