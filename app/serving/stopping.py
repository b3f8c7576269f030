"""What a signal to stop means for a desk: its ingestion ends soon, its answers when their time is up.

uvicorn does the rest: it closes the port at once, waits for the connections, and ends.
"""

import asyncio
import math
import signal
from types import FrameType
from typing import Any

from app.answer_service import AnswerService
from schemas.settings import Settings

GRACE_SECONDS = 5
"""How long uvicorn waits longer than answers have: for their last bytes, and for what is no answer."""


def graceful_seconds(settings: Settings) -> int:
    """What uvicorn takes as `timeout_graceful_shutdown`."""
    return math.ceil(settings.shutdown_timeout) + GRACE_SECONDS


def stop_on_signals(answer_service: AnswerService) -> None:
    """From now on SIGTERM and SIGINT also stop what `desk` does; the second one does so at once.

    Call it on the event loop, once uvicorn has put its own handlers in place: they are called too,
    and uvicorn takes these away with them.
    """
    stop = _Stop(answer_service)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


class _Stop:
    """A signal handler around uvicorn's."""

    def __init__(self, answer_service: AnswerService) -> None:
        self._answer_service = answer_service
        self._loop = asyncio.get_running_loop()
        self._uvicorn: Any = signal.getsignal(signal.SIGINT)
        self._stopping = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        seconds = 0.0 if self._stopping else self._answer_service.settings.shutdown_timeout
        self._loop.call_soon_threadsafe(self._begin, seconds)
        # uvicorn takes a second SIGINT, and only that, for the wish to stop at once.
        self._uvicorn(signal.SIGINT if self._stopping else number, frame)
        self._stopping = True

    def _begin(self, seconds: float) -> None:
        self._answer_service.job.stop()
        self._loop.call_later(seconds, self._answer_service.running.end)
