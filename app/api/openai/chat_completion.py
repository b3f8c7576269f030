"""Chat completions: the models of the response, and the builder of its stream."""

from collections.abc import Callable, Iterator
from typing import Any, Literal
from uuid import uuid4

from litestar.response.sse import ServerSentEventMessage
from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from app.api.openai.errors import error_response
from app.api.openai.response import (
    ResponseModel,
    UrlCitation,
    Usage,
    answer_details,
    unix_time,
    url_citations,
)
from schemas.answer import Answer


class Annotation(ResponseModel):
    """A source in the format that OpenAI's clients read."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation

    @classmethod
    def of(cls, citation: UrlCitation) -> "Annotation":
        """Return the annotation for a link."""
        return cls(url_citation=citation)


class AnswerMessage(ResponseModel):
    """The message with the answer."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[Annotation]
    apidesk: dict[str, JsonValue]
    """The CHAT_FIELDS of the answer, named as in `POST /ask`."""


class CompletionChoice(ResponseModel):
    """The only choice of a completion."""

    index: Literal[0] = 0
    message: AnswerMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


def new_completion_id() -> str:
    """Return a new id for a completion."""
    return f"chatcmpl-{uuid4().hex}"


class Completion(ResponseModel):
    """A complete answer."""

    id: str = Field(default_factory=new_completion_id)
    object: Literal["chat.completion"] = "chat.completion"
    created: int = Field(default_factory=unix_time)
    model: str
    choices: list[CompletionChoice]
    usage: Usage

    @classmethod
    def of(cls, model: str, answer: Answer, text: str, usage: Usage) -> "Completion":
        """Return the completion for an answer of `model` and its text."""
        message = AnswerMessage(
            content=text,
            annotations=list(map(Annotation.of, url_citations(text, answer))),
            apidesk=answer_details(answer),
        )
        return cls(model=model, choices=[CompletionChoice(message=message)], usage=usage)


class Delta(ResponseModel):
    """The fields that a chunk adds to the message."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    annotations: list[Annotation] | None = None
    apidesk: dict[str, JsonValue] | None = None

    @model_serializer(mode="wrap")
    def _omit_nulls(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit unset fields, because clients would read null as a new value."""
        return {name: value for name, value in serialize(self).items() if value is not None}


class ChunkChoice(ResponseModel):
    """The only choice of a chunk."""

    index: Literal[0] = 0
    delta: Delta
    finish_reason: Literal["stop"] | None


class CompletionChunk(ResponseModel):
    """A part of a streamed answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | None = None


class ChunkBuilder:
    """Builds the stream of one completion."""

    def __init__(self, model: str, usage: Callable[[], Usage] | None) -> None:
        """If `usage` is given, the last chunk contains its result."""
        self._model = model
        self._usage = usage
        self._id = new_completion_id()
        self._created = unix_time()

    def start(self) -> Iterator[ServerSentEventMessage]:
        """Yield the first chunk, which names the role."""
        yield self._delta(Delta(role="assistant", content=""))

    def text(self, text: str) -> ServerSentEventMessage:
        """Return the chunk that adds `text`."""
        return self._delta(Delta(content=text))

    def end(self, text: str, answer: Answer) -> Iterator[ServerSentEventMessage]:
        """Yield the chunk with the annotations and the fields of the answer, and the token usage."""
        annotations = list(map(Annotation.of, url_citations(text, answer)))
        delta = Delta(annotations=annotations, apidesk=answer_details(answer))
        yield self._delta(delta, is_last=True)
        if self._usage:
            yield self._chunk([], self._usage())
        yield ServerSentEventMessage(data="[DONE]")

    def error(self, error: Exception) -> ServerSentEventMessage:
        """Return the message for an error, which ends the stream."""
        return ServerSentEventMessage(data=error_response(error).model_dump_json())

    def _delta(self, delta: Delta, is_last: bool = False) -> ServerSentEventMessage:
        return self._chunk([ChunkChoice(delta=delta, finish_reason="stop" if is_last else None)])

    def _chunk(
        self, choices: list[ChunkChoice], usage: Usage | None = None
    ) -> ServerSentEventMessage:
        chunk = CompletionChunk(
            id=self._id, created=self._created, model=self._model, choices=choices, usage=usage
        )
        return ServerSentEventMessage(data=chunk.model_dump_json(by_alias=True))
