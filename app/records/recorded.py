"""Answering that leaves a record, whatever comes of it."""

import asyncio
import time

from app.asked import Answerer, Asked
from app.records.keeper import Keeper
from app.records.record import failed_record, record_of
from runnables.listener import Listener
from schemas.answer import Answer
from schemas.errors import ApideskError

ABANDONED = "abandoned"
"""What the record of a question says whose caller left before the answer."""


class Recorded:
    """Answers by `answerer`; each question is kept before its answer goes out."""

    def __init__(self, answerer: Answerer, keeper: Keeper) -> None:
        self._answerer = answerer
        self._keeper = keeper

    async def ask(self, asked: Asked, listener: Listener | None = None) -> Answer:
        """As `answerer` answers. Raises ApideskError."""
        started = time.monotonic()

        def milliseconds() -> int:
            return round((time.monotonic() - started) * 1000)

        try:
            answer = await self._answerer.ask(asked, listener)
        except ApideskError as error:
            self._keeper.keep(failed_record(asked, error.code, milliseconds()))
            raise
        except asyncio.CancelledError:
            self._keeper.keep(failed_record(asked, ABANDONED, milliseconds()))
            raise
        except Exception:
            self._keeper.keep(failed_record(asked, ApideskError.code, milliseconds()))
            raise
        self._keeper.keep(record_of(asked, answer, milliseconds()))
        return answer
