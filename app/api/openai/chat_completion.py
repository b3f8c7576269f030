"""`POST /v1/chat/completions`: the request, and the builder of the completion and of its stream."""

import time
from collections.abc import Iterator
from typing import Any, Literal
from uuid import uuid4

from litestar.response.sse import ServerSentEventMessage
from litestar.serialization import encode_json

from app.api.openai.answer_text import answer_details, url_citations
from app.api.openai.errors import stream_error
from app.api.openai.request import (
    ChatMessage,
    CommonParameters,
    RequestModel,
    TextFormat,
    TokenLimit,
)
from app.telemetry.run_observer import TokenMeter
from schemas.answer import Answer


class StreamOptions(RequestModel):
    """Options of a streamed completion."""

    include_usage: bool | None = False


class ChatRequest(CommonParameters):
    """The body of `POST /v1/chat/completions`."""

    messages: list[ChatMessage]
    response_format: TextFormat | None = None
    max_tokens: TokenLimit = None
    max_completion_tokens: TokenLimit = None
    logprobs: Literal[False] | None = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    """The number of completions; only one is supported."""

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with the token usage."""
        return bool(self.stream_options and self.stream_options.include_usage)


class CompletionBuilder:
    """Builds one completion, at once or as a stream of chunks."""

    def __init__(self, model: str, meter: TokenMeter, stream_ends_with_usage: bool) -> None:
        """`meter` counts the tokens of the answer; its counts are final when the answer is complete."""
        self._model = model
        self._meter = meter
        self._stream_ends_with_usage = stream_ends_with_usage
        self._id = f"chatcmpl-{uuid4().hex}"
        self._created = int(time.time())

    def complete(self, text: str, answer: Answer) -> dict[str, Any]:
        """Return the whole completion."""
        message = {
            "role": "assistant",
            "content": text,
            "refusal": None,
            "annotations": _annotations(text, answer),
            "apidesk": answer_details(answer),
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return self._completion("chat.completion", [choice], self._usage())

    def start(self) -> Iterator[ServerSentEventMessage]:
        """Yield the first chunk, which names the role."""
        yield self._delta({"role": "assistant", "content": ""})

    def text(self, text: str) -> ServerSentEventMessage:
        """Return the chunk that adds `text`."""
        return self._delta({"content": text})

    def end(self, text: str, answer: Answer) -> Iterator[ServerSentEventMessage]:
        """Yield the annotations and fields of the answer, the token usage if requested, and `[DONE]`."""
        details = {"annotations": _annotations(text, answer), "apidesk": answer_details(answer)}
        yield self._delta(details, finish_reason="stop")
        if self._stream_ends_with_usage:
            yield self._chunk([], self._usage())
        yield ServerSentEventMessage(data="[DONE]")

    def error(self, error: Exception) -> ServerSentEventMessage:
        """Return the message for an error, which ends the stream."""
        return _message({"error": stream_error(error)})

    def _delta(
        self, fields: dict[str, Any], finish_reason: str | None = None
    ) -> ServerSentEventMessage:
        """Return the chunk that adds `fields` to the message."""
        return self._chunk([{"index": 0, "delta": fields, "finish_reason": finish_reason}])

    def _chunk(
        self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None
    ) -> ServerSentEventMessage:
        return _message(self._completion("chat.completion.chunk", choices, usage))

    def _completion(
        self, object_name: str, choices: list[dict[str, Any]], usage: dict[str, int] | None
    ) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": object_name,
            "created": self._created,
            "model": self._model,
            "choices": choices,
            "usage": usage,
        }

    def _usage(self) -> dict[str, int]:
        """Return the tokens used so far; zero for extractive and cached answers."""
        return {
            "prompt_tokens": self._meter.prompt_tokens,
            "completion_tokens": self._meter.completion_tokens,
            "total_tokens": self._meter.tokens,
        }


def _annotations(text: str, answer: Answer) -> list[dict[str, Any]]:
    citations = url_citations(text, answer)
    return [{"type": "url_citation", "url_citation": citation} for citation in citations]


def _message(data: object) -> ServerSentEventMessage:
    return ServerSentEventMessage(data=encode_json(data).decode())
