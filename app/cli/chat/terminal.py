"""Terminal features of the chat: interrupting an answer and copying to the clipboard."""

import asyncio
import base64
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from rich.console import Console

T = TypeVar("T")


async def cancel_on_interrupt(work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of `work`, or None if SIGINT cancelled it. Call it in the main thread."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    previous = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(task.cancel))
    try:
        return await task
    except asyncio.CancelledError:
        if _is_caller_cancelled():
            raise
        return None
    finally:
        signal.signal(signal.SIGINT, previous)


def _is_caller_cancelled() -> bool:
    """Whether the current task itself is being cancelled, and not only its work."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def copy_to_clipboard(text: str, console: Console) -> bool:
    """Send `text` to the terminal's clipboard with OSC 52; return False if there is no terminal.

    OSC 52 also works over SSH. Terminals do not report whether they support it.
    """
    if not console.is_terminal:
        return False
    encoded = base64.b64encode(text.encode()).decode()
    console.file.write(f"\x1b]52;c;{encoded}\x07")
    console.file.flush()
    return True
