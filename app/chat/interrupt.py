"""Ctrl-C ends what is being done, not the program."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def until_interrupted(work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` gives; None when SIGINT cancelled it. For the main thread."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    before = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(task.cancel))
    try:
        return await task
    except asyncio.CancelledError:
        if _is_being_cancelled():
            raise
        return None
    finally:
        signal.signal(signal.SIGINT, before)


def _is_being_cancelled() -> bool:
    """Whether it is the caller that is to end, and not only its work."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0
