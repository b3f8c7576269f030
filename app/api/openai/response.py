"""Models of the responses under /v1, with OpenAI's field names."""

import time
from typing import Any, Literal
from uuid import uuid4

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from app.api.markdown import render_markdown, source_link, source_name
from app.security.rate_limits import TokenMeter
from schemas.answer import CHAT_FIELDS, Answer


class ResponseModel(BaseModel):
    """The base class of the response models."""

    model_config = ConfigDict(frozen=True)


class ModelInfo(ResponseModel):
    """An answer mode, presented as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    """Always 0: the models have no creation time."""
    owned_by: str = "apidesk"


class ModelList(ResponseModel):
    """The available models."""

    object: Literal["list"] = "list"
    data: list[ModelInfo]


class Usage(ResponseModel):
    """The tokens used for an answer; zero for extractive and cached answers."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    @classmethod
    def of(cls, meter: TokenMeter) -> "Usage":
        """Return the tokens that `meter` counted."""
        prompt, completion = meter.prompt_tokens, meter.completion_tokens
        return cls(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=prompt + completion,
        )


class UrlCitation(ResponseModel):
    """A link to a page in the text, with its position in characters."""

    start_index: int
    end_index: int
    title: str
    url: str


class Annotation(ResponseModel):
    """A source in the format that OpenAI's clients read."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


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


def unix_time() -> int:
    """Return the current Unix time in seconds."""
    return int(time.time())


class Completion(ResponseModel):
    """A complete answer."""

    id: str = Field(default_factory=new_completion_id)
    object: Literal["chat.completion"] = "chat.completion"
    created: int = Field(default_factory=unix_time)
    model: str
    choices: list[CompletionChoice]
    usage: Usage

    @classmethod
    def of(cls, model: str, answer: Answer, usage: Usage) -> "Completion":
        """Return the completion for an answer of `model`."""
        text = render_markdown(answer)
        message = AnswerMessage(
            content=text,
            annotations=url_annotations(text, answer),
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


def answer_details(answer: Answer) -> dict[str, JsonValue]:
    """Return the CHAT_FIELDS of the answer as `POST /ask` serializes them."""
    return answer.model_dump(mode="json", by_alias=True, include=set(CHAT_FIELDS))


def url_annotations(text: str, answer: Answer) -> list[Annotation]:
    """Return annotations with the positions of the source links at the end of `text`."""
    annotations = []
    for source in answer.sources:
        link = source_link(source)
        start = text.rfind(link)
        if source.page_url and start >= 0:
            citation = UrlCitation(
                start_index=start,
                end_index=start + len(link),
                title=source_name(source),
                url=source.page_url,
            )
            annotations.append(Annotation(url_citation=citation))
    return annotations
