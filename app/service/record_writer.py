"""Writes question records: at once to the outbox, soon after to the database, and deletes old ones."""

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

from app.service.outbox import Outbox
from app.service.record_store import RecordStore
from schemas.errors import StoreUnavailable
from schemas.record import Feedback, QuestionRecord
from schemas.settings import Settings

RETRY_INTERVAL_S = 5.0
"""The time between attempts while the database is down."""

TAKE_OVER_INTERVAL_S = 60.0
"""How often an idle process looks for the records of processes that have ended."""

SWEEP_INTERVAL_S = 600.0
"""The time between deletions of expired records."""

ARRIVAL_TIMEOUT_S = 2.0
"""How long feedback waits for its record, which may still be in the outbox of some process."""

log = logging.getLogger(__name__)


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
