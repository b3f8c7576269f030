"""The objects of OpenAI's HTTP API that `ModelServer` sends: completions, streams, embeddings and errors."""

import base64
import json
import math
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import responses
from itertools import pairwise
from typing import Any, AnyStr
from uuid import uuid4

from tests.model_script import Json, Recorded, Reply, ToolCall, written

MODELS = ("scripted-chat", "scripted-embedding")

PIECE = 4
"""Number of characters in one streamed delta."""


@dataclass(frozen=True)
class Response:
    """A reply ready to be sent."""

    reply: Reply
    """Defines the status, the delays and the fault of the response."""
    headers: dict[str, str]
    pieces: list[bytes]


def reason(status: int) -> str:
    """Return the reason phrase of `status`, or "Unknown" if it is not a standard status."""
    return responses.get(status, "Unknown")


def encoded(value: Json) -> bytes:
    """Return `value` as JSON without escapes, so that clients have to decode UTF-8."""
    return json.dumps(value, ensure_ascii=False).encode()


def split(whole: AnyStr, size: int) -> list[AnyStr]:
    """Return `whole` in pieces of `size` characters or bytes."""
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def render(reply: Reply, request: Recorded) -> Response:
    """Return the response for `reply`: an error, raw bytes, a stream or a completion."""
    streamed = reply.status < 400 and isinstance(request.body, dict) and request.body.get("stream")
    pieces = list(body_pieces(reply, request, bool(streamed)))
    if reply.chunk_size:
        pieces = split(b"".join(pieces), reply.chunk_size)
    headers = {"content-type": "text/event-stream" if streamed else "application/json"}
    headers |= {name.lower(): value for name, value in reply.headers.items()}
    if streamed:
        headers["transfer-encoding"] = "chunked"
    else:
        headers["content-length"] = str(sum(map(len, pieces)))
    return Response(reply, headers, pieces)


def body_pieces(reply: Reply, request: Recorded, streamed: bool) -> Iterator[bytes]:
    """Yield the body in the pieces that a model would send."""
    if reply.body is not None:
        yield reply.body
    elif reply.status >= 400:
        yield encoded(error(reply))
    elif streamed:
        yield from events(reply, request)
    else:
        yield encoded(completion(reply, request))


def error(reply: Reply) -> Json:
    """Return the body of an error response."""
    message = written(reply.text) if reply.text is not None else reason(reply.status)
    kind = "server_error" if reply.status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def head(kind: str, request: Recorded) -> Json:
    """Return the first fields of a completion or of a chunk."""
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": request.body.get("model", MODELS[0]),
    }


def content(reply: Reply) -> str | None:
    """Return the content of the message, or None."""
    return None if reply.text is None else written(reply.text)


def finish_reason(reply: Reply) -> str:
    """Return the finish reason."""
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def usage(reply: Reply, request: Recorded) -> Json:
    """Return the token counts of the reply; by default, estimates of four bytes per token."""
    if reply.usage is not None:
        return dict(reply.usage)
    prompt, answer = len(request.raw) // 4, len((content(reply) or "").encode()) // 4
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
    }


def tool_call(call: ToolCall, arguments: str) -> Json:
    """Return a tool call in the format of messages and deltas."""
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def completion(reply: Reply, request: Recorded) -> Json:
    """Return the whole answer as one object."""
    message: Json = {"role": "assistant", "content": content(reply), "refusal": reply.refusal}
    if reply.tool_calls:
        message["tool_calls"] = [tool_call(c, written(c.arguments)) for c in reply.tool_calls]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": finish_reason(reply),
    }
    return head("chat.completion", request) | {
        "choices": [choice],
        "usage": usage(reply, request),
    }


def events(reply: Reply, request: Recorded) -> Iterator[bytes]:
    """Yield the answer as server-sent events."""
    for chunk in chunks(reply, request):
        yield b"data: " + encoded(chunk) + b"\n\n"
    yield b"data: [DONE]\n\n"


def chunks(reply: Reply, request: Recorded) -> Iterator[Json]:
    """Yield the chunks of the answer: the deltas, the finish reason and, if requested, the usage."""
    shared = head("chat.completion.chunk", request)
    for delta in deltas(reply):
        yield shared | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    finish = {"index": 0, "delta": {}, "finish_reason": finish_reason(reply)}
    yield shared | {"choices": [finish]}
    if (request.body.get("stream_options") or {}).get("include_usage"):
        yield shared | {"choices": [], "usage": usage(reply, request)}


def deltas(reply: Reply) -> Iterator[Json]:
    """Yield the deltas of the message. The first one contains the role."""
    yield {"role": "assistant", "content": None if reply.text is None else ""}
    for piece in split(content(reply) or "", PIECE):
        yield {"content": piece}
    for piece in split(reply.refusal or "", PIECE):
        yield {"refusal": piece}
    for index, call in enumerate(reply.tool_calls):
        yield {"tool_calls": [{"index": index} | tool_call(call, "")]}
        for piece in split(written(call.arguments), PIECE):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def models() -> Json:
    """Return the list of models. Requests with other names are accepted, too."""
    listed = [{"id": m, "object": "model", "created": 0, "owned_by": "tests"} for m in MODELS]
    return {"object": "list", "data": listed}


DIMENSION = 64
"""Number of dimensions of an embedding."""


def bigram_embedding(text: str) -> list[float]:
    """Return a unit vector of hashed, signed character bigrams; similar texts have similar vectors."""
    vector = [1e-6, *[0.0] * (DIMENSION - 1)]  # not zero, because a zero vector has no direction
    for pair in pairwise(f" {' '.join(text.casefold().split())} "):
        digest = zlib.crc32("".join(pair).encode())
        vector[(digest >> 1) % DIMENSION] += 1 if digest & 1 else -1
    norm = math.hypot(*vector)
    return [value / norm for value in vector]


def embedding_inputs(value: Any) -> list[str]:
    """Return the texts in `input` of an embedding request; empty if it is malformed.

    Token numbers are read as words.
    """
    if isinstance(value, str) or is_tokens(value):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(i, str) or is_tokens(i) for i in value):
        return []
    return [item if isinstance(item, str) else " ".join(map(str, item)) for item in value]


def is_tokens(value: Any) -> bool:
    """Return whether `value` is a list of token numbers."""
    return isinstance(value, list) and bool(value) and all(isinstance(n, int) for n in value)


def packed(vector: list[float]) -> str:
    """Return the vector as base64 of little-endian 32-bit floats."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def embedding_list(vectors: list[list[float]], request: Recorded) -> Json:
    """Return the response to an embedding request, in the encoding that the request asks for."""
    as_base64 = request.body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": packed(v) if as_base64 else v}
        for index, v in enumerate(vectors)
    ]
    tokens = len(request.raw) // 4
    return {
        "object": "list",
        "data": data,
        "model": request.body.get("model", MODELS[1]),
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
