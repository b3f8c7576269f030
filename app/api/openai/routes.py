"""The routes under /v1: chat completions, the models, and errors in OpenAI's format.

There is one model per answer mode.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import Any

from litestar import Request, Response, get, post
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException, ValidationException
from litestar.params import FromPath, JSONBody
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage
from litestar.types import ExceptionHandlersMap
from pydantic import BaseModel

from app.api.event_stream import EVENT_STREAM, HEARTBEAT, first_event, stream_answer
from app.api.openai.request import ChatRequest, StreamedText, read_conversation
from app.api.openai.response import (
    ChunkChoice,
    Completion,
    CompletionChunk,
    Delta,
    ModelInfo,
    ModelList,
    Usage,
    answer_details,
    new_completion_id,
    unix_time,
    url_annotations,
)
from app.api.problems import to_problem
from app.security.api_keys import Caller
from app.security.rate_limits import TokenMeter
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer, AskCommand
from schemas.answer import Answer, Event
from schemas.errors import ApideskError, QuestionError, UnknownModel
from schemas.question import AnswerMode

OPENAI_PREFIX = "/v1/"

MODEL_MODES: Mapping[str, AnswerMode] = {"apidesk": "pipeline", "apidesk-tools": "tools"}
"""The answer mode of each model."""

ERROR_TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}

DONE_MESSAGE = ServerSentEventMessage(data="[DONE]")


class ErrorBody(BaseModel):
    """The message of an error and the parameter that caused it."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorResponse(BaseModel):
    """The body of every error response under /v1."""

    error: ErrorBody


def error_response(error: Exception) -> ErrorResponse:
    """Return the body of an error response. A stream that has started sends it as an event."""
    return _describe_error(error)[0]


def _handle(request: Request[Any, Any, Any], error: Exception) -> Response[ErrorResponse]:
    body, status, headers = _describe_error(error)
    return Response(body, status_code=status, headers=headers, media_type="application/json")


OPENAI_EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    ApideskError: _handle,
    HTTPException: _handle,
    Exception: _handle,
}
"""Exception handlers for the routes under /v1."""


def handle_unrouted(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    """Return the response to an unknown path or method, in OpenAI's format for paths under /v1."""
    if request.scope["path"].startswith(OPENAI_PREFIX):
        return _handle(request, error)
    return to_problem(error).to_response(request)


def _describe_error(error: Exception) -> tuple[ErrorResponse, int, dict[str, str] | None]:
    """Return the body, the status and the headers of the response to an error."""
    problem = to_problem(error)
    body = ErrorBody(
        message=problem.detail,
        type=_error_type(problem.status_code),
        param=_error_param(error),
        code=dict(problem.extra or {})["code"],
    )
    return ErrorResponse(error=body), problem.status_code, problem.headers


def _error_type(status: int) -> str:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "server_error"
    return ERROR_TYPES.get(HTTPStatus(status), "invalid_request_error")


def _error_param(error: Exception) -> str | None:
    """Return OpenAI's name for the invalid parameter, or None. OpenAI names the question `messages`."""
    if isinstance(error, QuestionError):
        return "messages" if error.field == "question" else error.field
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        return str(error.extra[0].get("key")).partition(".")[0]
    return None


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
