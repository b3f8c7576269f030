"""POST /v1/chat/completions"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from litestar import Request, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage

from app.answer_service import AnswerService
from app.asked import Answerer, AskCommand
from app.description.ask import EVENTS
from app.openai.errors import error_response
from app.openai.models import mode_of
from app.openai.request import ChatRequest, read_conversation
from app.openai.response import Completion, CompletionChunk, Usage
from app.openai.streaming import stream_chunks
from app.routes.ask import HEARTBEAT
from app.routes.first_event import first_event
from app.security.keyring import Caller
from app.security.token_meter import TokenMeter
from app.stream import stream_answer
from schemas.events import Event

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
