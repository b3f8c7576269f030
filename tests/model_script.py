"""The script of `ModelServer`: the replies that tests set, and the requests that it records."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel

Json = dict[str, Any]

Text = str | Mapping[str, Any] | BaseModel
"""Content of a reply; mappings and models are sent as JSON."""


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for. If `arguments` is a string, it is sent unchanged, even if invalid."""

    name: str
    arguments: Text = field(default_factory=dict)
    id: str = field(default_factory=lambda: f"call_{uuid4().hex[:12]}")


@dataclass(frozen=True)
class Reply:
    """One reply: its content, and the behaviour of the connection while it is sent."""

    text: Text | None = None
    """The content; with a status of 400 or more, the error's message."""
    tool_calls: Sequence[ToolCall] = ()
    refusal: str | None = None
    finish_reason: str | None = None
    """`stop` or `tool_calls` if not given."""
    usage: Mapping[str, int] | None = None
    """Token counts; estimated if not given."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers in addition to those of the response; a `content-type` replaces the response's own."""
    body: bytes | None = None
    """The body to send instead of one that is built from the fields above."""

    delay: float = 0
    """Seconds before the first byte."""
    chunk_size: int | None = None
    """Bytes per piece of the body. By default, a body is sent as a whole, and a stream event by event."""
    chunk_delay: float = 0
    """Seconds between two pieces."""
    action: Literal["reset", "close", "stall"] | None = None
    """How the reply is aborted: TCP reset, early end, or silence until the client disconnects."""
    reset_after: int | None = None
    """Bytes of the body that are sent before `action`; 0 sends only the headers, and None sends nothing."""


@dataclass(frozen=True)
class Recorded:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    """Headers; names are in lower case."""
    body: Any
    """The parsed JSON of the body, or None."""
    raw: bytes
    at: float
    """The value of `time.monotonic()` after the request was read."""
    method: str = "POST"
    query: str = ""

    @property
    def text(self) -> str:
        """The text of the chat messages, one per line, for predicates."""
        messages = self.body.get("messages", ()) if isinstance(self.body, dict) else ()
        return "\n".join(spoken(message.get("content")) for message in messages)


Answer = Text | Reply

Scripted = Answer | Callable[[Recorded], Answer]

Predicate = Callable[[Recorded], bool]


def spoken(content: Any) -> str:
    """The text of a message's content, which is a string or a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def written(text: Text) -> str:
    """Return `text` as it is sent. Pydantic models use their aliases, as in their schema."""
    if isinstance(text, BaseModel):
        return text.model_dump_json(by_alias=True)
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
