"""The routes under /v1: chat completions, responses and the models.

Each answer mode is offered as a model: `pipeline` as `apidesk`, and `tools` as `apidesk-tools`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from litestar import Request, Router, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import FromPath, JSONBody
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage

from app.api.event_stream import HEARTBEAT, Events, stream_response
from app.api.markdown import render_markdown
from app.api.openai.answer_text import PageNumbering, StreamedText
from app.api.openai.protocol import (
    OPENAI_EXCEPTION_HANDLERS,
    OPENAI_PREFIX,
    RESPONSES_PATH,
    read_conversation,
)
from app.api.openai.replies import ChatRequest, CompletionBuilder, ResponseBuilder, ResponsesRequest
from app.security.api_keys import Caller
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer, AskCommand
from app.telemetry.run_observer import TokenMeter
from schemas.answer import Answer
from schemas.errors import UnknownModel
from schemas.question import AnswerMode

MODEL_MODES: Mapping[str, AnswerMode] = {"apidesk": "pipeline", "apidesk-tools": "tools"}
"""The answer mode of each model."""

ReplyBuilder = CompletionBuilder | ResponseBuilder
"""Builds the reply to one request, at once or as the messages of a stream."""


def model_names(answer_service: AnswerService) -> list[str]:
    """Return the names of the available models. `apidesk-tools` is available only with a chat model."""
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
def list_models(answer_service: NamedDependency[AnswerService]) -> dict[str, Any]:
    """List the models: `apidesk`, and `apidesk-tools` if a chat model is configured."""
    return {"object": "list", "data": list(map(_model, model_names(answer_service)))}


@get(
    "/models/{model:str}",
    include_in_schema=False,  # OpenAI documents this endpoint
    sync_to_thread=False,
    needs="ask",
)
def get_model(
    model: FromPath[str], answer_service: NamedDependency[AnswerService]
) -> dict[str, Any]:
    """Return one model, or 404 if no model has this name."""
    model_mode(model, answer_service)
    return _model(model)


def _model(name: str) -> dict[str, Any]:
    """Return OpenAI's description of a model. `created` is 0, because no creation time is known."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "apidesk"}


@dataclass
class ChatResponder:
    """Responds to one request of a chat client."""

    request: Request[Any, Any, Any]
    answerer: NamedDependency[Answerer]
    answer_service: NamedDependency[AnswerService]
    caller: NamedDependency[Caller]
    meter: TokenMeter = field(default_factory=TokenMeter, init=False)
    """Counts the tokens of the answer."""

    async def respond(
        self, data: ChatRequest | ResponsesRequest, field: str, builder: ReplyBuilder
    ) -> dict[str, Any] | ServerSentEvent:
        """Answer the last question in the messages, with the earlier messages as history.

        `field` is the name of the request field that contains the messages; errors mention this name.
        Raises UnknownModel, QuestionError and the errors of `Answerer.ask`. After the first event or
        heartbeat of a stream, an error is sent in the stream.
        """
        mode = model_mode(data.model, self.answer_service)
        question, history = await asyncio.to_thread(
            read_conversation, data.messages, self.answer_service.settings, field
        )
        command = AskCommand(
            question,
            mode=mode,
            owner=self.caller.id,
            account=self.caller.account,
            fresh="no-cache" in self.request.headers.get("cache-control", "").lower(),
            history=history,
            callbacks=(self.meter,),
        )
        if data.stream:
            to_messages = partial(_stream_messages, builder=builder)
            ask = partial(self.answerer.ask, command)
            return await stream_response(ask, self.request, to_messages)
        answer = PageNumbering().renumber_answer(await self.answerer.ask(command))
        return builder.complete(render_markdown(answer), answer)


@post(
    "/chat/completions",
    status_code=200,
    include_in_schema=False,  # OpenAI documents this endpoint
    needs="ask",
)
async def complete_chat(
    data: JSONBody[ChatRequest], responder: NamedDependency[ChatResponder]
) -> dict[str, Any] | ServerSentEvent:
    """Answer the last user message from the documentation, with the earlier messages as history.

    Unknown parameters are ignored. System messages are also ignored, because apidesk has its own
    instructions.
    """
    builder = CompletionBuilder(data.model, responder.meter, data.includes_usage)
    return await responder.respond(data, "messages", builder)


@post(
    RESPONSES_PATH,
    status_code=200,
    include_in_schema=False,  # OpenAI documents this endpoint
    needs="ask",
)
async def create_response(
    data: JSONBody[ResponsesRequest], responder: NamedDependency[ChatResponder]
) -> dict[str, Any] | ServerSentEvent:
    """Answer the last user message from the documentation, as `complete_chat` does."""
    builder = ResponseBuilder(data.model, responder.meter)
    return await responder.respond(data, "input", builder)


async def _stream_messages(
    events: Events, builder: ReplyBuilder
) -> AsyncGenerator[ServerSentEventMessage]:
    """Yield the messages that `builder` builds from `events`, and close `events` at the end."""
    streamed, numbers = StreamedText(), PageNumbering()
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


def openai_router() -> Router:
    """Return the router of all routes under /v1."""
    return Router(
        OPENAI_PREFIX,
        route_handlers=[complete_chat, create_response, list_models, get_model],
        dependencies={"responder": Provide(ChatResponder, sync_to_thread=False)},
        exception_handlers=OPENAI_EXCEPTION_HANDLERS,
    )
