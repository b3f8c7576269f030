"""Scripted servers with the wire formats of Anthropic and Ollama.

They share the script, the record and the faults of `ModelServer`.
"""

from dataclasses import replace
from typing import Any, ClassVar
from uuid import uuid4

from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.openai_objects import content, encoded, reason, split

PIECE = 8
"""Number of characters in one line of a stream."""

Json = dict[str, Any]


class ProviderServer(ModelServer):
    """A server with one endpoint for chat; `wire` converts its replies to the provider's format."""

    chat_path: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self._endpoints = {self.chat_path: ("POST", self._provider_chat)}

    @property
    def base_url(self) -> str:
        """The `base_url` for clients, which add the version themselves."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def chat_requests(self) -> list[Recorded]:
        """The requests for replies, in the order of their arrival."""
        return [request for request in self.requests if request.path == self.chat_path]

    def wire(self, reply: Reply, request: Recorded) -> Reply:
        """Return `reply` with its body in the provider's format."""
        raise NotImplementedError

    async def _provider_chat(self, request: Recorded) -> Reply:
        reply = await self._chat(request)
        return reply if reply.body is not None else self.wire(reply, request)


class AnthropicServer(ProviderServer):
    """Serves `POST /v1/messages` without streaming."""

    chat_path = "/v1/messages"

    def wire(self, reply: Reply, request: Recorded) -> Reply:
        """Return a message or an error in Anthropic's format."""
        if reply.status >= 400:
            refused = {"type": error_type(reply.status), "message": message_of(reply)}
            return replace(reply, body=encoded({"type": "error", "error": refused}))
        message = {
            "id": f"msg_{uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": content(reply) or ""}],
            "model": request.body["model"],
            "stop_reason": reply.finish_reason or "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": len(request.raw) // 4, "output_tokens": 1},
        }
        return replace(reply, body=encoded(message))


class OllamaServer(ProviderServer):
    """Serves `POST /api/chat`, with replies in lines of JSON, and `GET /api/tags`."""

    chat_path = "/api/chat"

    def __init__(self) -> None:
        super().__init__()
        self._endpoints["/api/tags"] = ("GET", self._tags)

    def wire(self, reply: Reply, request: Recorded) -> Reply:
        """Return a stream of lines, of which the last has `done`, or an error."""
        if reply.status >= 400:
            return replace(reply, body=encoded({"error": message_of(reply)}))
        pieces = split(content(reply) or "", PIECE) if request.body.get("stream") else []
        lines = [line(request, piece, done=False) for piece in pieces]
        lines.append(line(request, "" if pieces else content(reply) or "", done=True))
        return replace(
            reply,
            headers={"content-type": "application/x-ndjson", **reply.headers},
            body=b"".join(encoded(each) + b"\n" for each in lines),
        )

    async def _tags(self, _: Recorded) -> Reply:
        return Reply(body=encoded({"models": [{"name": "llama-test", "model": "llama-test"}]}))


def line(request: Recorded, text: str, *, done: bool) -> Json:
    """Return one line of Ollama's stream."""
    return {
        "model": request.body["model"],
        "created_at": "2025-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": text},
        "done": done,
    } | ({"done_reason": "stop", "eval_count": 1, "prompt_eval_count": 1} if done else {})


def message_of(reply: Reply) -> str:
    """Return the message of an error."""
    return content(reply) or reason(reply.status)


def error_type(status: int) -> str:
    """Return Anthropic's error type for `status`."""
    names = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    return names.get(status, "api_error")
