"""The routes under /v1: chat completions, responses and the models.

There is one model per answer mode.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from litestar import Request, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage

from app.api.event_stream import EVENT_STREAM, HEARTBEAT, first_event, stream_answer
from app.api.markdown import render_markdown
from app.api.openai.chat_completion import ChunkBuilder, Completion
from app.api.openai.errors import RESPONSES_PATH
from app.api.openai.page_numbers import PageNumbers
from app.api.openai.request import ChatMessage, ChatRequest, StreamedText, read_conversation
from app.api.openai.response import ModelInfo, ModelList, StreamBuilder, Usage
from app.api.openai.responses import ResponseBuilder, ResponsesRequest
from app.security.api_keys import Caller
from app.security.rate_limits import TokenMeter
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer, AskCommand
from schemas.answer import Answer, Event
from schemas.errors import UnknownModel
from schemas.question import AnswerMode

MODEL_MODES: Mapping[str, AnswerMode] = {"apidesk": "pipeline", "apidesk-tools": "tools"}
"""The answer mode of each model."""


def model_names(answer_service: AnswerService) -> list[str]:
    """Return the names of the available models; `apidesk-tools` requires a chat model."""
    return [
        name for name, mode in MODEL_MODES.items() if mode == "pipeline" or answer_service.models
    ]


def model_mode(name: str, answer_service: AnswerService) -> AnswerMode:
    """Return the answer mode of the model `name`. Raises UnknownModel."""
    names = model_names(answer_service)
    if name not in names:
        raise UnknownModel(f"model: {name[:100]} does not exist; available: {', '.join(names)}")
    return MODEL_MODES[name]


@get(
    "/models",
    include_in_schema=False,  # OpenAI documents this endpoint
    sync_to_thread=False,
    needs="ask",
)
def list_models(answer_service: NamedDependency[AnswerService]) -> ModelList:
    """List the models: `apidesk`, and `apidesk-tools` if a chat model is configured."""
    return ModelList(data=[ModelInfo(id=name) for name in model_names(answer_service)])


@get(
    "/models/{model:str}",
    include_in_schema=False,  # OpenAI documents this endpoint
    sync_to_thread=False,
    needs="ask",
)
def get_model(model: FromPath[str], answer_service: NamedDependency[AnswerService]) -> ModelInfo:
    """Return one model, or 404 if no model has this name."""
    model_mode(model, answer_service)
    return ModelInfo(id=model)


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

    System messages are ignored, because apidesk uses its own instructions. So are unknown parameters.
    """
    asking = Asking(request, answerer, answer_service, caller, TokenMeter())
    command = await asking.command(data.model, data.messages, "messages")
    if data.stream:
        usage = asking.usage if data.includes_usage else None
        return await asking.stream(command, ChunkBuilder(data.model, usage))
    answer = await asking.answer(command)
    return Completion.of(data.model, answer, render_markdown(answer), asking.usage())


@post(
    RESPONSES_PATH,
    status_code=200,
    include_in_schema=False,  # OpenAI documents this endpoint
    needs="ask",
)
async def create_response(
    request: Request[Any, Any, Any],
    data: JSONBody[ResponsesRequest],
    answerer: NamedDependency[Answerer],
    answer_service: NamedDependency[AnswerService],
    caller: NamedDependency[Caller],
) -> dict[str, Any] | ServerSentEvent:
    """Answer the last user message from the documentation, as `complete_chat` does."""
    asking = Asking(request, answerer, answer_service, caller, TokenMeter())
    command = await asking.command(data.model, data.messages, "input")
    builder = ResponseBuilder(data.model, asking.usage)
    if data.stream:
        return await asking.stream(command, builder)
    answer = await asking.answer(command)
    return builder.response(render_markdown(answer), answer)


@dataclass(frozen=True)
class Asking:
    """Answers the question of one request, at once or as a stream."""

    request: Request[Any, Any, Any]
    answerer: Answerer
    answer_service: AnswerService
    caller: Caller
    meter: TokenMeter

    async def command(self, model: str, messages: list[ChatMessage], field: str) -> AskCommand:
        """Return the command that asks the last question in `messages`, with the earlier ones as history.

        `field` is the name of the messages in the request, for error messages. Raises UnknownModel and
        QuestionError.
        """
        mode = model_mode(model, self.answer_service)
        question, history = await asyncio.to_thread(
            read_conversation, messages, self.answer_service.settings, field
        )
        return AskCommand(
            question,
            mode=mode,
            owner=self.caller.id,
            account=self.caller.account,
            fresh="no-cache" in self.request.headers.get("cache-control", "").lower(),
            history=history,
            callbacks=(self.meter,),
        )

    async def answer(self, command: AskCommand) -> Answer:
        """Return the answer, with citations numbered by page."""
        return PageNumbers().answer(await self.answerer.ask(command))

    async def stream(self, command: AskCommand, builder: StreamBuilder) -> ServerSentEvent:
        """Return the answer as a stream. An error before the first event is raised instead."""
        events = stream_answer(partial(self.answerer.ask, command))
        first = await first_event(events, self.request)
        messages = stream_messages(_prepend(first, events), builder)
        return ServerSentEvent(messages, headers={"Content-Type": EVENT_STREAM})

    def usage(self) -> Usage:
        """Return the tokens used so far."""
        return Usage.of(self.meter)


async def stream_messages(
    events: AsyncGenerator[Event | None], builder: StreamBuilder
) -> AsyncGenerator[ServerSentEventMessage]:
    """Yield the messages of an answer, which `builder` builds. `events` are closed at the end."""
    streamed, numbers = StreamedText(), PageNumbers()
    async with aclosing(events):
        for message in builder.start():
            yield message
        try:
            async for event in events:
                if event is None:
                    yield HEARTBEAT
                    continue
                numbered = numbers.apply(event)
                if text := streamed.add(numbered):
                    yield builder.text(text)
                if isinstance(numbered.data, Answer):
                    for message in builder.end(streamed.text, numbered.data):
                        yield message
        except Exception as error:
            yield builder.error(error)


async def _prepend(
    first: Event | None, events: AsyncGenerator[Event | None]
) -> AsyncGenerator[Event | None]:
    async with aclosing(events):
        yield first
        async for event in events:
            yield event
