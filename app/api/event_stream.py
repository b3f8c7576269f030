"""Streams an answer as events, and waits for the first event before a response starts."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from litestar import Request
from litestar.response.sse import ServerSentEventMessage

from runnables.answer_events import StreamedAnswer, missing_events
from schemas.answer import Answer, Event, EventSink

EVENT_STREAM = "text/event-stream"

HEARTBEAT_INTERVAL_S = 10.0
"""Seconds without an event after which an SSE comment is sent, because proxies close idle connections."""

HEARTBEAT = ServerSentEventMessage(data=None, comment="")


async def open_events(
    ask: Callable[[EventSink], Awaitable[Answer]], request: Request[Any, Any, Any]
) -> AsyncGenerator[Event | None]:
    """Return the events of one answer. The last event is `answer`; None stands for a heartbeat.

    Waits for the first event or heartbeat. If `ask` fails before that, this function raises the error, so
    that the caller can send an error response. The returned generator raises later errors. Closing the
    generator cancels `ask`.

    Arguments:
        ask: answers the question, and sends events to the given sink
        request: the HTTP request; if its client disconnects, this function stops waiting
    """
    events = _stream_answer(ask)
    return _prepend(await _first_event(events, request), events)


async def _prepend(
    first: Event | None, events: AsyncGenerator[Event | None]
) -> AsyncGenerator[Event | None]:
    async with aclosing(events):
        yield first
        async for event in events:
            yield event


async def _stream_answer(
    ask: Callable[[EventSink], Awaitable[Answer]],
) -> AsyncGenerator[Event | None]:
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    streamed = StreamedAnswer()

    async def on_event(event: Event) -> None:
        streamed.apply(event)
        await queue.put(event)

    async def run() -> Answer:
        try:
            return await ask(on_event)
        finally:
            queue.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        async for event in _with_heartbeats(queue):
            yield event
        answer = await task
        for event in missing_events(streamed, answer):
            yield event
        yield Event("answer", answer)
    finally:
        task.cancel()


async def _with_heartbeats(queue: asyncio.Queue[Event | None]) -> AsyncGenerator[Event | None]:
    """Yield the events of `queue`, and None after each `HEARTBEAT_INTERVAL_S` without an event.

    A None in the queue ends the stream.
    """
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT_INTERVAL_S):
                event = await queue.get()
        except TimeoutError:
            yield None
            continue
        if event is None:
            return
        yield event


async def _first_event(
    events: AsyncGenerator[Event | None], request: Request[Any, Any, Any]
) -> Event | None:
    """Return the first event, or None if a heartbeat comes first or the client disconnects."""
    event = asyncio.ensure_future(anext(events))
    disconnect = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({event, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        return event.result() if event.done() else None
    finally:
        disconnect.cancel()
        event.cancel()


async def _wait_for_disconnect(request: Request[Any, Any, Any]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
