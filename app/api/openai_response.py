"""What a chat client gets: a completion, or the chunks of one."""

import time
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from app.api.markdown import markdown, source_link, source_name
from app.security.token_meter import TokenMeter
from schemas.answer import Answer, Confidence, Source
from schemas.base import ApiModel
from schemas.question import QuestionType, StructuredQuestion


class ResponseModel(BaseModel):
    """The base of what is sent: the names are OpenAI's."""

    model_config = ConfigDict(frozen=True)


class ModelInfo(ResponseModel):
    """A way of asking the desk."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    """Not known: a desk is as old as its documents."""
    owned_by: str = "apidesk"


class ModelList(ResponseModel):
    """The models that there are."""

    object: Literal["list"] = "list"
    data: list[ModelInfo]


class Usage(ResponseModel):
    """What the models took for the answer: nothing where the documents are quoted, or it was cached."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    @classmethod
    def of(cls, meter: TokenMeter) -> "Usage":
        """What `meter` has counted."""
        prompt, completion = meter.prompt_tokens, meter.completion_tokens
        return cls(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=prompt + completion,
        )


class UrlCitation(ResponseModel):
    """A page that is linked in the text, and where."""

    start_index: int
    end_index: int
    title: str
    url: str


class Annotation(ResponseModel):
    """A source, as OpenAI's clients read it."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class AnswerDetails(ApiModel):
    """What the desk knows of its answer beyond the text, as `POST /ask` names it."""

    id: str
    type: QuestionType
    confidence: Confidence
    sources: list[Source]
    related_url: list[str]
    unverified: list[str]
    structured: StructuredQuestion

    @classmethod
    def of(cls, answer: Answer) -> "AnswerDetails":
        """Those of `answer`."""
        return cls(**{name: getattr(answer, name) for name in cls.model_fields})


class AnswerMessage(ResponseModel):
    """The answer."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[Annotation]
    apidesk: AnswerDetails


class CompletionChoice(ResponseModel):
    """The only one."""

    index: Literal[0] = 0
    message: AnswerMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


def new_id() -> str:
    """An id for a completion."""
    return f"chatcmpl-{uuid4().hex}"


def now() -> int:
    """In seconds."""
    return int(time.time())


class Completion(ResponseModel):
    """An answer as a whole."""

    id: str = Field(default_factory=new_id)
    object: Literal["chat.completion"] = "chat.completion"
    created: int = Field(default_factory=now)
    model: str
    choices: list[CompletionChoice]
    usage: Usage

    @classmethod
    def of(cls, model: str, answer: Answer, usage: Usage) -> "Completion":
        """`answer`, given by `model`."""
        text = markdown(answer)
        message = AnswerMessage(
            content=text, annotations=annotations(text, answer), apidesk=AnswerDetails.of(answer)
        )
        return cls(model=model, choices=[CompletionChoice(message=message)], usage=usage)


class Delta(ResponseModel):
    """What a chunk adds to the message."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    annotations: list[Annotation] | None = None
    apidesk: AnswerDetails | None = None

    @model_serializer(mode="wrap")
    def _what_it_adds(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Nulls would say that something is taken away."""
        return {name: value for name, value in serialize(self).items() if value is not None}


class ChunkChoice(ResponseModel):
    """The only one."""

    index: Literal[0] = 0
    delta: Delta
    finish_reason: Literal["stop"] | None


class CompletionChunk(ResponseModel):
    """A piece of an answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | None = None


def annotations(text: str, answer: Answer) -> list[Annotation]:
    """The sources that `text` links at its end."""
    found = []
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
            found.append(Annotation(url_citation=citation))
    return found
