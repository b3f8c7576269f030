"""The requests of `/v1/chat/completions` and `/v1/responses`, and builders of replies and streams.

Responses are not stored, so clients send the conversation with each request.
"""

import time
from collections.abc import Iterator
from itertools import count
from typing import Annotated, Any, Literal
from uuid import uuid4

from litestar.response.sse import ServerSentEventMessage
from litestar.serialization import encode_json
from pydantic import BeforeValidator

from app.api.openai.answer_text import answer_details, url_citations
from app.api.openai.protocol import (
    ChatMessage,
    CommonParameters,
    MessageRole,
    Penalty,
    RequestModel,
    TextFormat,
    TokenLimit,
    accept_only,
    expect_list,
    stream_error,
)
from app.telemetry.run_observer import TokenMeter
from schemas.answer import Answer

NOT_STORED = "not supported, because responses are not stored"


class StreamOptions(RequestModel):
    """Options of a streamed completion."""

    include_usage: bool | None = False


class ChatRequest(CommonParameters):
    """The body of `POST /v1/chat/completions`."""

    messages: list[ChatMessage]
    response_format: TextFormat | None = None
    max_tokens: TokenLimit = None
    max_completion_tokens: TokenLimit = None
    presence_penalty: Penalty = None
    frequency_penalty: Penalty = None
    logprobs: Annotated[Literal[False] | None, accept_only("not supported", False)] = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    """The number of completions; only one is supported."""

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with the token usage."""
        return bool(self.stream_options and self.stream_options.include_usage)


class CompletionBuilder:
    """Builds one completion, at once or as a stream of chunks.

    Here, a chunk is a part of a streamed completion, not of a document.
    """

    def __init__(self, model: str, meter: TokenMeter, stream_ends_with_usage: bool) -> None:
        """Create the builder.

        `meter` counts the tokens of the answer; its counts are final when the answer is complete. If
        `stream_ends_with_usage` is true, a stream ends with these counts.
        """
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
        """Yield the last events of the stream.

        They contain the annotations and fields of the answer, the token usage if requested, and `[DONE]`.
        """
        details = {"annotations": _annotations(text, answer), "apidesk": answer_details(answer)}
        yield self._delta(details, finish_reason="stop")
        if self._stream_ends_with_usage:
            yield self._chunk([], self._usage())
        yield ServerSentEventMessage(data="[DONE]")

    def error(self, error: Exception) -> ServerSentEventMessage:
        """Return the event for an error, which ends the stream."""
        return _sse({"error": stream_error(error)})

    def _delta(
        self, fields: dict[str, Any], finish_reason: str | None = None
    ) -> ServerSentEventMessage:
        """Return the chunk that adds `fields` to the assistant's message."""
        return self._chunk([{"index": 0, "delta": fields, "finish_reason": finish_reason}])

    def _chunk(
        self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None
    ) -> ServerSentEventMessage:
        return _sse(self._completion("chat.completion.chunk", choices, usage))

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
        """Return the tokens used so far; zero if no model was called."""
        return {
            "prompt_tokens": self._meter.prompt_tokens,
            "completion_tokens": self._meter.completion_tokens,
            "total_tokens": self._meter.tokens,
        }


def _annotations(text: str, answer: Answer) -> list[dict[str, Any]]:
    citations = url_citations(text, answer)
    return [{"type": "url_citation", "url_citation": citation} for citation in citations]


def _sse(data: object, event: str | None = None) -> ServerSentEventMessage:
    return ServerSentEventMessage(event=event, data=encode_json(data).decode())


class InputItem(ChatMessage):
    """An item of the input. Items that are not messages, such as tool calls, have no role."""

    type: str = "message"
    role: MessageRole = ""

    @property
    def answer(self) -> str | None:
        """The text of the answer, or None if the item contains no answer.

        An `item_reference` refers to an earlier answer, which is not stored. Its text is "" instead of
        None, so that the question before the reference stays in the conversation.
        """
        return "" if self.type == "item_reference" else super().answer


def _to_items(value: object) -> object:
    """Convert a text to a list with one user message."""
    return expect_list([{"role": "user", "content": value}] if isinstance(value, str) else value)


class TextOptions(RequestModel):
    """The value of the parameter `text`."""

    format: TextFormat | None = None


class ResponsesRequest(CommonParameters):
    """The body of `POST /v1/responses`."""

    input: Annotated[list[InputItem], BeforeValidator(_to_items)]
    """A request may contain a string instead of a list."""
    text: TextOptions | None = None
    max_output_tokens: TokenLimit = None
    background: Annotated[Literal[False] | None, accept_only(NOT_STORED, False)] = None
    conversation: Annotated[None, accept_only(NOT_STORED)] = None
    previous_response_id: Annotated[None, accept_only(NOT_STORED)] = None

    @property
    def messages(self) -> list[ChatMessage]:
        """The input as a conversation."""
        return list(self.input)


class ResponseBuilder:
    """Builds one response, at once or as a stream of events."""

    def __init__(self, model: str, meter: TokenMeter) -> None:
        """Create the builder.

        `meter` counts the tokens of the answer; its counts are final when the answer is complete.
        """
        self._model = model
        self._meter = meter
        self._id = f"resp_{uuid4().hex}"
        self._item_id = f"msg_{uuid4().hex}"
        self._created = int(time.time())
        self._numbers = count()

    def complete(self, text: str, answer: Answer) -> dict[str, Any]:
        """Return the complete response."""
        message = self._output_item("completed", [self._part(text, answer)])
        return self._response("completed", [message], self._usage(), answer)

    def start(self) -> Iterator[ServerSentEventMessage]:
        """Yield the events before the text."""
        response = self._response("in_progress", [])
        yield self._event("response.created", response=response)
        yield self._event("response.in_progress", response=response)
        item = self._output_item("in_progress", [])
        yield self._event("response.output_item.added", output_index=0, item=item)
        yield self._part_event("response.content_part.added", part=self._part(""))

    def text(self, text: str) -> ServerSentEventMessage:
        """Return the event that adds `text`."""
        return self._part_event("response.output_text.delta", delta=text, logprobs=[])

    def end(self, text: str, answer: Answer) -> Iterator[ServerSentEventMessage]:
        """Yield the last events: first the annotations, then the complete text, part, item and response."""
        part = self._part(text, answer)
        for index, annotation in enumerate(part["annotations"]):
            yield self._part_event(
                "response.output_text.annotation.added",
                annotation_index=index,
                annotation=annotation,
            )
        yield self._part_event("response.output_text.done", text=text, logprobs=[])
        yield self._part_event("response.content_part.done", part=part)
        item = self._output_item("completed", [part])
        yield self._event("response.output_item.done", output_index=0, item=item)
        yield self._event("response.completed", response=self.complete(text, answer))

    def error(self, error: Exception) -> ServerSentEventMessage:
        """Return the event for an error, which ends the stream."""
        fields = stream_error(error)
        return self._event(
            "error", code=fields["code"], message=fields["message"], param=fields["param"]
        )

    def _event(self, name: str, **fields: Any) -> ServerSentEventMessage:
        data = {"type": name, "sequence_number": next(self._numbers)} | fields
        return _sse(data, name)

    def _part_event(self, name: str, **fields: Any) -> ServerSentEventMessage:
        return self._event(name, item_id=self._item_id, output_index=0, content_index=0, **fields)

    def _part(self, text: str, answer: Answer | None = None) -> dict[str, Any]:
        citations = url_citations(text, answer) if answer else []
        annotations = [{"type": "url_citation"} | citation for citation in citations]
        return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}

    def _output_item(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self._item_id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _response(
        self,
        status: str,
        output: list[dict[str, Any]],
        usage: dict[str, Any] | None = None,
        answer: Answer | None = None,
    ) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": self._model,
            "output": output,
            "usage": usage,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "store": False,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
            "apidesk": answer and answer_details(answer),
        }

    def _usage(self) -> dict[str, Any]:
        return {
            "input_tokens": self._meter.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": self._meter.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self._meter.tokens,
        }
