"""Streams an answer as events, and waits for the first event before a response starts."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from litestar import Request
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage

from runnables.answer_events import StreamedAnswer, missing_events
from schemas.answer import Answer, Event, EventSink

EVENT_STREAM = "text/event-stream"

HEARTBEAT_INTERVAL_S = 10.0
"""Seconds without an event after which a heartbeat is sent. A heartbeat is an SSE comment.

Without heartbeats, proxies may close the connection.
"""

HEARTBEAT = ServerSentEventMessage(data=None, comment="")

Events = AsyncGenerator[Event | None]
"""The events of one answer. The last event is `answer`; None stands for a heartbeat."""


async def stream_response(
    ask: Callable[[EventSink], Awaitable[Answer]],
    request: Request[Any, Any, Any],
    to_messages: Callable[[Events], AsyncGenerator[ServerSentEventMessage]],
) -> ServerSentEvent:
    """Return a response that streams the events of one answer.

    Waits for the first event or heartbeat. If `ask` fails before that, this function raises the error, so
    that the caller can send an error response. A later error is raised in `to_messages`, when it iterates
    over the events. Closing the events cancels `ask`.

    Arguments:
        ask: answers the question, and sends events to the given sink
        request: the HTTP request; if its client disconnects, this function stops waiting
        to_messages: converts the events to messages
    """
    events = _stream_answer(ask)
    opened = _prepend(await _first_event(events, request), events)
    # Set explicitly: Litestar would send the media type of the handler, which is JSON.
    return ServerSentEvent(to_messages(opened), headers={"Content-Type": EVENT_STREAM})


async def _prepend(first: Event | None, events: Events) -> Events:
    async with aclosing(events):
        yield first
        async for event in events:
            yield event


async def _stream_answer(ask: Callable[[EventSink], Awaitable[Answer]]) -> Events:
    """Yield the events that `ask` sends, with heartbeats between them.

    When the answer is complete, yield the events that `ask` did not send, such as the steps of a cached
    answer, and finally `answer`.
    """
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
        if streamed.structured is None:
            yield Event("structured", answer.structured)
        for event in missing_events(streamed, answer):
            yield event
        yield Event("answer", answer)
    finally:
        task.cancel()


async def _with_heartbeats(queue: asyncio.Queue[Event | None]) -> Events:
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


async def _first_event(events: Events, request: Request[Any, Any, Any]) -> Event | None:
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
