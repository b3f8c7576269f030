"""An answer as events: what happens while it is made, then the answer itself."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

from runnables.listener import EventSink
from schemas.answer import Answer
from schemas.events import Event, Sources, Step

HEARTBEAT_SECONDS = 10.0
"""Silence after which a sign of life is due: proxies cut connections that say nothing."""


async def stream_answer(
    asking: Callable[[EventSink], Awaitable[Answer]],
) -> AsyncGenerator[Event | None]:
    """The events of `asking`, the last of them `answer`; None when nothing happened for a while.

    Raises what `asking` raises. Closing the stream cancels it, and with it the model's call.
    """
    happened = _Happened()

    async def ask() -> Answer:
        try:
            return await asking(happened.listen)
        finally:
            happened.queue.put_nowait(None)

    task = asyncio.create_task(ask())
    try:
        async for event in _until_none(happened.queue):
            yield event
        answer = await task
        for event in happened.missing(answer):
            yield event
        yield Event("answer", answer)
    finally:
        task.cancel()


class _Happened:
    """What was told of an answer while it was made."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._understood = False
        self._steps: list[str] = []

    async def listen(self, event: Event) -> None:
        """Hear of an event."""
        if event.name == "structured":
            self._understood = True
        elif isinstance(event.data, Sources):
            self._steps.clear()
        elif isinstance(event.data, Step):
            self._steps.append(event.data.text)
        await self.queue.put(event)

    def missing(self, answer: Answer) -> Iterator[Event]:
        """What should have been told of `answer` and was not: it was known, or came out otherwise."""
        if not self._understood:
            yield Event("structured", answer.structured)
        if self._steps != answer.answer:
            yield from _steps(answer)


async def _until_none(happened: asyncio.Queue[Event | None]) -> AsyncGenerator[Event | None]:
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                event = await happened.get()
        except TimeoutError:
            yield None
            continue
        if event is None:
            return
        yield event


def _steps(answer: Answer) -> Iterator[Event]:
    yield Event("sources", Sources(sources=answer.sources))
    for number, text in enumerate(answer.answer, 1):
        facts = [fact for fact in answer.unverified if fact in text]
        supported = number not in answer.unsupported
        yield Event("step", Step(number=number, text=text, unverified=facts, supported=supported))
