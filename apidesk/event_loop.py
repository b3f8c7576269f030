"""Runs coroutines on the event loop of an open `Apidesk`, from any thread and any other event loop.

The clients of models and stores belong to the event loop on which they were opened.
"""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class EventLoopRunner:
    """Runs coroutines on one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self) -> None:
        """Use the running event loop from now on."""
        self._loop = asyncio.get_running_loop()

    def detach(self) -> None:
        """Refuse further coroutines."""
        self._loop = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Block until `coroutine` has returned, and return its result.

        Raises RuntimeError if the calling thread runs the event loop itself, or if apidesk is not open.
        """
        if self._loop is not None and _running_loop() is self._loop:
            coroutine.close()
            raise RuntimeError(
                "apidesk was opened on this event loop: use the asynchronous method, such as ainvoke"
            )
        future = self._submit(coroutine)
        try:
            return future.result()
        except BaseException:  # includes KeyboardInterrupt; the result is not needed any more
            future.cancel()
            raise

    async def arun(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of `coroutine`. Raises RuntimeError if apidesk is not open."""
        if asyncio.get_running_loop() is self._loop:
            return await coroutine
        return await asyncio.wrap_future(self._submit(coroutine))

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop is None:
            coroutine.close()
            raise RuntimeError("apidesk is not open: use it within `with apidesk.open()`")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
