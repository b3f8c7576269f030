"""POST /v1/chat/completions: the answer as a completion or as a stream of chunks."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from litestar import Request, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage

from app.api.event_stream import EVENT_STREAM, HEARTBEAT, first_event, stream_answer
from app.api.openai.models import error_response, model_mode
from app.api.openai.request import ChatRequest, StreamedText, read_conversation
from app.api.openai.response import (
    ChunkChoice,
    Completion,
    CompletionChunk,
    Delta,
    Usage,
    answer_details,
    new_completion_id,
    unix_time,
    url_annotations,
)
from app.security.api_keys import Caller
from app.security.token_meter import TokenMeter
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer, AskCommand
from schemas.answer import Answer, Event

DONE_MESSAGE = ServerSentEventMessage(data="[DONE]")


@post(
    "/chat/completions",
    status_code=200,
    include_in_schema=False,  # OpenAI documents this endpoint
    needs="ask",
)
async def complete_chat(
    request: Request[Any, Any, Any],
    data: JSONBody[ChatRequest],
    answerer: NamedDependency[Answerer],
    answer_service: NamedDependency[AnswerService],
    caller: NamedDependency[Caller],
) -> Completion | ServerSentEvent:
    """Answer the last user message from the documentation; earlier messages are the history.

    System messages and unknown parameters are ignored, because apidesk uses its own instructions.
    """
    mode = model_mode(data.model, answer_service)
    question, history = await asyncio.to_thread(
        read_conversation, data.messages, answer_service.settings
    )
    meter = TokenMeter()
    command = AskCommand(
        question,
        mode=mode,
        owner=caller.id,
        account=caller.account,
        fresh="no-cache" in request.headers.get("cache-control", "").lower(),
        history=history,
        callbacks=(meter,),
    )
    if not data.stream:
        return Completion.of(data.model, await answerer.ask(command), Usage.of(meter))
    events = stream_answer(partial(answerer.ask, command))
    first = await first_event(events, request)
    usage = (lambda: Usage.of(meter)) if data.includes_usage else None
    chunks = stream_chunks(_prepend(first, events), data.model, usage)
    return ServerSentEvent(_to_messages(chunks), headers={"Content-Type": EVENT_STREAM})


async def stream_chunks(
    events: AsyncGenerator[Event | None], model: str, usage: Callable[[], Usage] | None
) -> AsyncGenerator[CompletionChunk | None]:
    """Yield the chunks of an answer; None stands for a heartbeat.

    If `usage` is given, it is called at the end, and a last chunk contains its result. `events` are closed
    at the end, and their errors are raised.
    """
    chunks = ChunkBuilder(model)
    async with aclosing(events):
        yield chunks.role()
        async for event in events:
            chunk = chunks.text(event) if event else None
            if event is None or chunk is not None:
                yield chunk
            if event and isinstance(event.data, Answer):
                yield chunks.end(event.data)
    if usage:
        yield chunks.usage(usage())


class ChunkBuilder:
    """Builds the chunks of one completion."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._id = new_completion_id()
        self._created = unix_time()
        self._text = StreamedText()

    def role(self) -> CompletionChunk:
        """Return the first chunk, which names the role."""
        return self._delta(Delta(role="assistant", content=""))

    def text(self, event: Event) -> CompletionChunk | None:
        """Return the chunk with the text that `event` adds, or None if it adds none."""
        text = self._text.add(event)
        return self._delta(Delta(content=text)) if text else None

    def end(self, answer: Answer) -> CompletionChunk:
        """Return the chunk with the annotations and the fields of the answer."""
        annotations = url_annotations(self._text.text, answer)
        delta = Delta(annotations=annotations, apidesk=answer_details(answer))
        return self._delta(delta, is_last=True)

    def usage(self, usage: Usage) -> CompletionChunk:
        """Return the chunk with the token usage."""
        return self._chunk([], usage)

    def _delta(self, delta: Delta, is_last: bool = False) -> CompletionChunk:
        return self._chunk([ChunkChoice(delta=delta, finish_reason="stop" if is_last else None)])

    def _chunk(self, choices: list[ChunkChoice], usage: Usage | None = None) -> CompletionChunk:
        return CompletionChunk(
            id=self._id, created=self._created, model=self._model, choices=choices, usage=usage
        )


async def _prepend(
    first: Event | None, events: AsyncGenerator[Event | None]
) -> AsyncGenerator[Event | None]:
    async with aclosing(events):
        yield first
        async for event in events:
            yield event


async def _to_messages(
    chunks: AsyncGenerator[CompletionChunk | None],
) -> AsyncGenerator[ServerSentEventMessage]:
    async with aclosing(chunks):
        try:
            async for chunk in chunks:
                yield _to_message(chunk)
        except Exception as error:
            yield ServerSentEventMessage(data=error_response(error).model_dump_json())
            return
    yield DONE_MESSAGE


def _to_message(chunk: CompletionChunk | None) -> ServerSentEventMessage:
    if chunk is None:
        return HEARTBEAT
    return ServerSentEventMessage(data=chunk.model_dump_json(by_alias=True))
