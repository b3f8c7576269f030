"""The events of an answer -> the chunks of a completion.
POST /v1/chat/completions
"""

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

from app.api.ask import HEARTBEAT, first_event, stream_answer
from app.api.openai_messages import ChatRequest, StreamedText, read_conversation
from app.api.openai_models import error_response, mode_of
from app.api.openai_response import (
    AnswerDetails,
    ChunkChoice,
    Completion,
    CompletionChunk,
    Delta,
    Usage,
    annotations,
    new_id,
    now,
)
from app.api.openapi import EVENTS
from app.security.keyring import Caller
from app.security.token_meter import TokenMeter
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer, AskCommand
from schemas.answer import Answer, Event


class ChunkMaker:
    """Makes the chunks of one completion."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._id = new_id()
        self._created = now()
        self._telling = StreamedText()

    def first(self) -> CompletionChunk:
        """Who speaks."""
        return self._chunk(Delta(role="assistant", content=""))

    def of(self, event: Event) -> CompletionChunk | None:
        """What `event` adds to the text; None where that is nothing."""
        piece = self._telling.hear(event)
        return self._chunk(Delta(content=piece)) if piece else None

    def last(self, answer: Answer) -> CompletionChunk:
        """What there is to know of `answer` beyond its text."""
        cited = annotations(self._telling.text, answer)
        return self._chunk(Delta(annotations=cited, apidesk=AnswerDetails.of(answer)), ended=True)

    def counted(self, usage: Usage) -> CompletionChunk:
        """The tokens, for clients that asked for them."""
        return self._made([], usage)

    def _chunk(self, delta: Delta, ended: bool = False) -> CompletionChunk:
        return self._made([ChunkChoice(delta=delta, finish_reason="stop" if ended else None)])

    def _made(self, choices: list[ChunkChoice], usage: Usage | None = None) -> CompletionChunk:
        return CompletionChunk(
            id=self._id, created=self._created, model=self._model, choices=choices, usage=usage
        )


async def stream_chunks(
    events: AsyncGenerator[Event | None], model: str, count: Callable[[], Usage] | None
) -> AsyncGenerator[CompletionChunk | None]:
    """The chunks of an answer, the last of them with what `count` gives; None where nothing happened
    for a while.

    Raises what `events` raises, and closes them.
    """
    maker = ChunkMaker(model)
    async with aclosing(events):
        yield maker.first()
        async for event in events:
            chunk = maker.of(event) if event else None
            if event is None or chunk is not None:
                yield chunk
            if event and isinstance(event.data, Answer):
                yield maker.last(event.data)
    if count:
        yield maker.counted(count())


DONE = ServerSentEventMessage(data="[DONE]")


@post(
    "/chat/completions",
    status_code=200,
    include_in_schema=False,  # OpenAI describes it
    needs="ask",
)
async def complete_chat(
    request: Request[Any, Any, Any],
    data: JSONBody[ChatRequest],
    answerer: NamedDependency[Answerer],
    answer_service: NamedDependency[AnswerService],
    caller: NamedDependency[Caller],
) -> Completion | ServerSentEvent:
    """Answer the last user message from the platform's documentation; those before it are its history.

    System messages and parameters that are not named here are ignored: the desk has its own instructions.
    """
    mode = mode_of(data.model, answer_service)
    text, history = await asyncio.to_thread(
        read_conversation, data.messages, answer_service.settings
    )
    used = TokenMeter()

    asked = AskCommand(
        text,
        mode=mode,
        owner=caller.id,
        account=caller.account,
        fresh="no-cache" in request.headers.get("cache-control", "").lower(),
        history=history,
        callbacks=(used,),
    )
    if not data.stream:
        return Completion.of(data.model, await answerer.ask(asked), Usage.of(used))
    events = stream_answer(partial(answerer.ask, asked))
    first = await first_event(events, request)
    count = (lambda: Usage.of(used)) if data.counts_at_end else None
    chunks = stream_chunks(_again(first, events), data.model, count)
    return ServerSentEvent(_messages(chunks), headers={"Content-Type": EVENTS})


async def _again(
    first: Event | None, events: AsyncGenerator[Event | None]
) -> AsyncGenerator[Event | None]:
    """All events, when the first has been taken already."""
    async with aclosing(events):
        yield first
        async for event in events:
            yield event


async def _messages(
    chunks: AsyncGenerator[CompletionChunk | None],
) -> AsyncGenerator[ServerSentEventMessage]:
    """The chunks on the wire; a comment where nothing happened for a while."""
    async with aclosing(chunks):
        try:
            async for chunk in chunks:
                yield _message(chunk)
        except Exception as error:
            yield ServerSentEventMessage(data=error_response(error).model_dump_json())
            return
    yield DONE


def _message(chunk: CompletionChunk | None) -> ServerSentEventMessage:
    if chunk is None:
        return HEARTBEAT
    return ServerSentEventMessage(data=chunk.model_dump_json(by_alias=True))
