"""Tracks answers in progress: they have a timeout, and callers with the same question share one answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from schemas.answer import Answer, Event, EventSink
from schemas.errors import ModelTimeout, ServerStopping


class InFlight:
    """Limits the time of the answers in progress, and stops them. For use on one event loop."""

    def __init__(self) -> None:
        self._timeouts: set[asyncio.Timeout] = set()
        self._stopped = False

    @asynccontextmanager
    async def track(self, timeout_s: float) -> AsyncIterator[None]:
        """Limit the block to `timeout_s` seconds, and end it earlier if `stop` is called.

        Raises ModelTimeout after the timeout, and ServerStopping after `stop`.
        """
        try:
            async with asyncio.timeout(0 if self._stopped else timeout_s) as timeout:
                self._timeouts.add(timeout)
                try:
                    yield
                finally:
                    self._timeouts.discard(timeout)
        except TimeoutError:
            if self._stopped:
                raise ServerStopping("the server is stopping: ask again") from None
            raise ModelTimeout("the question took longer than APIDESK_REQUEST_TIMEOUT") from None

    def stop(self) -> None:
        """End all tracked blocks with ServerStopping, also those that start later."""
        self._stopped = True
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(0)


StartAnswer = Callable[[EventSink | None], Coroutine[Any, Any, Answer]]
StoreAnswer = Callable[[Answer], Coroutine[Any, Any, None]]


class SingleFlight:
    """Shares the answers in progress in this process between callers with the same key."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}

    async def join(
        self, key: str, start: StartAnswer, store: StoreAnswer, on_event: EventSink | None
    ) -> tuple[Answer, bool]:
        """Return the answer, and whether an earlier caller started it.

        The first caller with a key runs `start`. Later callers wait for the same answer.
        `store` then stores the complete answer. A caller that arrives while `store` runs waits for it to
        end, and then starts or joins a new flight.

        `on_event` receives all events of the answer. It receives none if the first caller passed no
        `on_event`, because the reply of the model is then not streamed. Raises the errors of `start`. If
        all callers that wait for an answer are cancelled, the work is cancelled.
        """
        while (flight := self._flights.get(key)) and flight.store_task:
            await asyncio.wait([flight.store_task])
        if flight is not None and not flight.has_failed:
            return await flight.wait(on_event), True
        flight = self._flights[key] = _Flight(start, streamed=on_event is not None)
        flight.task.add_done_callback(lambda _: self._finish(key, flight, store))
        return await flight.wait(on_event), False

    def _finish(self, key: str, flight: "_Flight", store: StoreAnswer) -> None:
        if flight.has_failed:
            self._remove(key, flight)
        else:
            flight.store_task = asyncio.create_task(store(flight.task.result()))
            flight.store_task.add_done_callback(lambda _: self._remove(key, flight))

    def _remove(self, key: str, flight: "_Flight") -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


class _Flight:
    """One answer in progress, and the callers that wait for it."""

    def __init__(self, start: StartAnswer, streamed: bool) -> None:
        self._events: list[Event] = []
        self._sinks: list[EventSink] = []
        self._waiting = 0
        self.task = asyncio.create_task(start(self._emit if streamed else None))
        self.store_task: asyncio.Task[None] | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the work has failed or was cancelled."""
        if self.task.done():
            return self.task.cancelled() or self.task.exception() is not None
        return bool(self.task.cancelling())

    async def wait(self, on_event: EventSink | None) -> Answer:
        """Wait for the answer. The last caller to leave cancels the work."""
        self._waiting += 1
        try:
            if on_event is not None:
                await self._replay_events(on_event)
                self._sinks.append(on_event)
            return await asyncio.shield(self.task)
        finally:
            self._waiting -= 1
            if on_event in self._sinks:
                self._sinks.remove(on_event)
            if not self._waiting:
                self.task.cancel()

    async def _emit(self, event: Event) -> None:
        self._events.append(event)
        for sink in list(self._sinks):
            await sink(event)

    async def _replay_events(self, on_event: EventSink) -> None:
        sent = 0
        while sent < len(self._events):  # more events may arrive while this one is sent
            await on_event(self._events[sent])
            sent += 1
