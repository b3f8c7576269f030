"""Models and functions shared by chat completions and responses, with OpenAI's field names."""

import time
from collections.abc import Iterable
from typing import Literal, Protocol

from litestar.response.sse import ServerSentEventMessage
from pydantic import BaseModel, ConfigDict, JsonValue

from app.api.markdown import source_link, source_name
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


def unix_time() -> int:
    """Return the current Unix time in seconds."""
    return int(time.time())


class StreamBuilder(Protocol):
    """Builds the messages of a stream."""

    def start(self) -> Iterable[ServerSentEventMessage]:
        """Return the messages before the text."""

    def text(self, text: str) -> ServerSentEventMessage:
        """Return the message that adds `text`."""

    def end(self, text: str, answer: Answer) -> Iterable[ServerSentEventMessage]:
        """Return the messages after the complete `text` of `answer`."""

    def error(self, error: Exception) -> ServerSentEventMessage:
        """Return the message for an error, which ends the stream."""


def answer_details(answer: Answer) -> dict[str, JsonValue]:
    """Return the CHAT_FIELDS of the answer as `POST /ask` serializes them."""
    return answer.model_dump(mode="json", by_alias=True, include=set(CHAT_FIELDS))


def url_citations(text: str, answer: Answer) -> list[UrlCitation]:
    """Return the source links at the end of `text` with their positions."""
    citations = []
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
            citations.append(citation)
    return citations
