"""Questions that are asked while the same one is being answered: they wait for that answer."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from runnables.listener import EventSink
from schemas.answer import Answer
from schemas.events import Event

StartAnswer = Callable[[EventSink | None], Coroutine[Any, Any, Answer]]
KeepAnswer = Callable[[Answer], Coroutine[Any, Any, None]]


class SingleFlight:
    """Answers under way in this process, by key."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}

    async def join(
        self, key: str, start: StartAnswer, keep: KeepAnswer, listener: EventSink | None
    ) -> tuple[Answer, bool]:
        """The answer of `start`, or of the one that is under way under `key`, and whether it was.

        Nobody waits until the answer is kept but who comes meanwhile, and then begins anew.

        `listener` is told everything, from the beginning; nothing where the one who began it does not
        listen, since following a model's reply costs more than all the rest. Raises what `start` raises.
        The work is cancelled when everybody who waits for it has left.
        """
        while (flight := self._flights.get(key)) and flight.keeping:
            await asyncio.wait([flight.keeping])
        if flight is not None and not flight.over:
            return await flight.wait(listener), True
        flight = self._flights[key] = _Flight(start, listener is not None)
        flight.task.add_done_callback(lambda _: self._arrived(key, flight, keep))
        return await flight.wait(listener), False

    def _arrived(self, key: str, flight: "_Flight", keep: KeepAnswer) -> None:
        if flight.over:
            self._land(key, flight)
        else:
            flight.keeping = asyncio.create_task(keep(flight.task.result()))
            flight.keeping.add_done_callback(lambda _: self._land(key, flight))

    def _land(self, key: str, flight: "_Flight") -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


class _Flight:
    def __init__(self, start: StartAnswer, followed: bool) -> None:
        self._events: list[Event] = []
        self._listeners: list[EventSink] = []
        self._waiting = 0
        self.task = asyncio.create_task(start(self._tell if followed else None))
        self.keeping: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether it has no answer and will have none."""
        if self.task.done():
            return self.task.cancelled() or self.task.exception() is not None
        return bool(self.task.cancelling())

    async def wait(self, listener: EventSink | None) -> Answer:
        self._waiting += 1
        try:
            if listener is not None:
                await self._catch_up(listener)
                self._listeners.append(listener)
            return await asyncio.shield(self.task)
        finally:
            self._waiting -= 1
            if listener in self._listeners:
                self._listeners.remove(listener)
            if not self._waiting:
                self.task.cancel()

    async def _tell(self, event: Event) -> None:
        self._events.append(event)
        for listener in list(self._listeners):
            await listener(event)

    async def _catch_up(self, listener: EventSink) -> None:
        told = 0
        while told < len(self._events):  # more may come meanwhile
            await listener(self._events[told])
            told += 1
