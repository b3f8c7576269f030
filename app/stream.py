"""An answer as events: what happens while it is made, then the answer itself."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

from runnables.listener import Listener
from schemas.answer import Answer
from schemas.events import Event, Sources, Step

HEARTBEAT_SECONDS = 10.0
"""Silence after which a sign of life is due: proxies cut connections that say nothing."""


async def stream_answer(
    asking: Callable[[Listener], Awaitable[Answer]],
) -> AsyncGenerator[Event | None]:
    """The events of `asking`, the last of them `answer`; None when nothing happened for a while.

    Raises what `asking` raises. Closing the stream cancels it, and with it the model's call.
    """
    happened: asyncio.Queue[Event | None] = asyncio.Queue()
    understood = False
    told: list[str] = []

    async def listen(event: Event) -> None:
        nonlocal understood
        understood = understood or event.name == "structured"
        if isinstance(event.data, Sources):
            told.clear()
        elif isinstance(event.data, Step):
            told.append(event.data.text)
        await happened.put(event)

    async def ask() -> Answer:
        try:
            return await asking(listen)
        finally:
            happened.put_nowait(None)

    task = asyncio.create_task(ask())
    try:
        async for event in _until_none(happened):
            yield event
        answer = await task
        if not understood:
            yield Event("structured", answer.structured)
        if told != answer.answer:
            for event in _steps(answer):
                yield event
        yield Event("answer", answer)
    finally:
        task.cancel()


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
    """The steps of an answer that was not told as it came, or that came out otherwise in the end."""
    yield Event("sources", Sources(sources=answer.sources))
    for number, text in enumerate(answer.answer, 1):
        facts = [fact for fact in answer.unverified if fact in text]
        supported = number not in answer.unsupported
        yield Event("step", Step(number=number, text=text, unverified=facts, supported=supported))
