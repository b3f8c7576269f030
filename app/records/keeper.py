"""Keeps questions: at once in the spool, soon in the database, and no longer than they may be."""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import UUID

from sqlalchemy.engine import Engine
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from app.records.spool import Outbox
from app.records.store import RecordStore
from schemas.errors import StoreUnavailable
from schemas.record import Feedback, QuestionRecord
from schemas.settings import Settings

PAUSE_SECONDS = 5.0
"""Between attempts while the database is down."""

TAKE_OVER_SECONDS = 60.0
"""After which a process without questions of its own looks for what others left."""

SWEEP_SECONDS = 600.0
"""How long what is too old may stay."""

ARRIVAL_SECONDS = 2.0
"""How long a record may be under way, in this process or in another, when its feedback is there."""

log = logging.getLogger(__name__)


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
