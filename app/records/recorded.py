"""Answering that leaves a record, whatever comes of it."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from app.asked import Answerer, AskCommand
from app.records.keeper import RecordWriter
from app.records.record import failed_record, record_of
from runnables.listener import EventSink
from schemas.answer import Answer
from schemas.errors import ApideskError
from schemas.record import QuestionRecord

ABANDONED = "abandoned"
"""What the record of a question says whose caller left before the answer."""

log = logging.getLogger(__name__)


class RecordingAnswerer:
    """Answers by `answerer`; each question is kept before its answer goes out."""

    def __init__(self, answerer: Answerer, keeper: RecordWriter) -> None:
        self._answerer = answerer
        self._keeper = keeper

    async def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Answer:
        """As `answerer` answers. Raises ApideskError."""
        started = time.monotonic()
        try:
            answer = await self._answerer.ask(asked, listener)
        except BaseException as error:
            self._keep(partial(failed_record, asked, _code(error)), started)
            raise
        self._keep(partial(record_of, asked, answer), started)
        return answer

    def _keep(self, record: Callable[[int], QuestionRecord], started: float) -> None:
        """An answer goes out with or without its record."""
        milliseconds = round((time.monotonic() - started) * 1000)
        try:
            self._keeper.keep(record(milliseconds))
        except Exception as error:  # its words and its stack may hold the question
            log.error("a question is not kept: %s", type(error).__name__)


def _code(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return ABANDONED
    return error.code if isinstance(error, ApideskError) else ApideskError.code
