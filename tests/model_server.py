"""A scripted model server on loopback that speaks OpenAI's HTTP protocol, for tests.

    with ModelServer() as server:
        server.reply("hello", {"answer": 42}, Reply(status=429, headers={"retry-after": "1"}))
        client = OpenAI(base_url=server.base_url, api_key="any")

Script -> OpenAI objects -> wire: `ModelServer` picks a `Reply`, `render` makes a `Response` of it,
`Connection` sends that, as badly as the reply asks for.
"""

import asyncio
import base64
import json
import math
import socket
import struct
import threading
import time
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import responses
from itertools import pairwise
from typing import Any, AnyStr, Literal, Self
from uuid import uuid4

import h11
from pydantic import BaseModel

MODELS = ("scripted-chat", "scripted-embedding")
CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
THREADS = 64
"""Callables of the script that may block at the same time, however few processors there are."""
PIECE = 4
"""Characters in one streamed delta."""

Json = dict[str, Any]
Text = str | Mapping[str, Any] | BaseModel
"""Content of a reply; mappings and models are sent as JSON."""


# --- the script ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for; `arguments` as a string go out as they are, valid or not."""

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
    """Estimated if not given."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    """Added to the response's own; a `content-type` here replaces the right one."""
    body: bytes | None = None
    """Sent in place of the body that the fields above would make."""

    delay: float = 0
    """Seconds before the first byte."""
    chunk_size: int | None = None
    """Bytes per piece of the body; otherwise the body goes out whole, a stream event by event."""
    chunk_delay: float = 0
    """Seconds between two pieces."""
    action: Literal["reset", "close", "stall"] | None = None
    """How the reply is aborted: TCP reset, early end, or silence until the client disconnects."""
    reset_after: int | None = None
    """Bytes of the body before `action`, 0 for headers alone; without it nothing is sent at all."""


@dataclass(frozen=True)
class Recorded:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: Any
    """The parsed JSON, or None."""
    raw: bytes
    at: float
    """`time.monotonic()` once it was read."""
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
    """`text` as it stands on the wire; models by alias, as their schema names the fields."""
    if isinstance(text, BaseModel):
        return text.model_dump_json(by_alias=True)
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


# --- OpenAI's objects ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Response:
    """A reply ready to be sent."""

    reply: Reply
    """Says in which manner."""
    headers: dict[str, str]
    pieces: list[bytes]


def reason(status: int) -> str:
    """The phrase that goes with `status`, standard or not."""
    return responses.get(status, "Unknown")


def encoded(value: Json) -> bytes:
    """JSON with its characters unescaped, so that UTF-8 really crosses the wire."""
    return json.dumps(value, ensure_ascii=False).encode()


def split(whole: AnyStr, size: int) -> list[AnyStr]:
    """`whole` in pieces of `size`."""
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def render(reply: Reply, request: Recorded) -> Response:
    """The response that carries `reply`: an error, raw bytes, a stream, or a completion."""
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
    """The body, in the pieces that a model would send."""
    if reply.body is not None:
        yield reply.body
    elif reply.status >= 400:
        yield encoded(error(reply))
    elif streamed:
        yield from events(reply, request)
    else:
        yield encoded(completion(reply, request))


def error(reply: Reply) -> Json:
    """The body of a refused request."""
    message = written(reply.text) if reply.text is not None else reason(reply.status)
    kind = "server_error" if reply.status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def head(kind: str, request: Recorded) -> Json:
    """The fields that completions and their chunks begin with."""
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
    """Token counts, estimated at four bytes a token."""
    if reply.usage is not None:
        return dict(reply.usage)
    prompt, answer = len(request.raw) // 4, len((content(reply) or "").encode()) // 4
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
    }


def tool_call(call: ToolCall, arguments: str) -> Json:
    """A tool call as messages and deltas have it."""
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def completion(reply: Reply, request: Recorded) -> Json:
    """The whole answer in one object."""
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
    """The answer as server-sent events."""
    for chunk in chunks(reply, request):
        yield b"data: " + encoded(chunk) + b"\n\n"
    yield b"data: [DONE]\n\n"


def chunks(reply: Reply, request: Recorded) -> Iterator[Json]:
    """The answer in chunks: the deltas, the finish, and the usage if it was asked for."""
    shared = head("chat.completion.chunk", request)
    for delta in deltas(reply):
        yield shared | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    finish = {"index": 0, "delta": {}, "finish_reason": finish_reason(reply)}
    yield shared | {"choices": [finish]}
    if (request.body.get("stream_options") or {}).get("include_usage"):
        yield shared | {"choices": [], "usage": usage(reply, request)}


def deltas(reply: Reply) -> Iterator[Json]:
    """What each chunk adds to the message: the role first."""
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
    """The list of models; any other name is accepted just as well."""
    listed = [{"id": m, "object": "model", "created": 0, "owned_by": "tests"} for m in MODELS]
    return {"object": "list", "data": listed}


# --- embeddings ---------------------------------------------------------------------------------


def bigram_embedding(text: str, dimension: int = 64) -> list[float]:
    """A unit vector of hashed, signed character bigrams: similar texts get similar vectors."""
    vector = [1e-6, *[0.0] * (dimension - 1)]  # never all zeros, which has no direction
    for pair in pairwise(f" {' '.join(text.casefold().split())} "):
        digest = zlib.crc32("".join(pair).encode())
        vector[(digest >> 1) % dimension] += 1 if digest & 1 else -1
    norm = math.hypot(*vector)
    return [value / norm for value in vector]


def embedding_inputs(value: Any) -> list[str]:
    """The texts of an embedding request's `input`; tokens are read as words. Empty if malformed."""
    if isinstance(value, str) or is_tokens(value):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(i, str) or is_tokens(i) for i in value):
        return []
    return [item if isinstance(item, str) else " ".join(map(str, item)) for item in value]


def is_tokens(value: Any) -> bool:
    """Whether `value` is a list of token numbers."""
    return isinstance(value, list) and bool(value) and all(isinstance(n, int) for n in value)


def packed(vector: list[float]) -> str:
    """The vector as base64 of little-endian 32-bit floats."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def embedding_list(vectors: list[list[float]], request: Recorded) -> Json:
    """The answer to an embedding request, in the encoding that it asks for."""
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


# --- the wire -----------------------------------------------------------------------------------


def cut(pieces: Sequence[bytes], size: int) -> Iterator[bytes]:
    """The first `size` bytes of `pieces`."""
    for piece in pieces:
        if size <= 0:
            return
        yield piece[:size]
        size -= len(piece)


class Connection:
    """One client's connection: HTTP/1.1 by h11, and misbehaviour where a reply asks for it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: threading.Event
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._left = left
        self._http = h11.Connection(h11.SERVER)
        writer.transport.set_write_buffer_limits(high=0)  # drained means: the kernel has it
        # asyncio does so by itself only where a socket names its protocol; without it each reply
        # waits 40 ms for the client to acknowledge the head.
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def receive(self) -> Recorded | None:
        """Return the next request, or None at the end of the connection."""
        if not self._ready():
            return None
        request, raw = await self._event(), b""
        if not isinstance(request, h11.Request):
            return None
        while isinstance(data := await self._event(), h11.Data):
            raw += data.data
        return recorded(request, raw)

    async def send(self, response: Response) -> None:
        """Send `response` in the manner of its reply."""
        reply = response.reply
        await asyncio.sleep(reply.delay)
        if reply.action is None:
            await self._send_head(response)
            await self._send_pieces(response.pieces, reply.chunk_delay)
            await self._send(h11.EndOfMessage())
            return
        if reply.reset_after is not None:
            await self._send_head(response)
            await self._send_pieces(cut(response.pieces, reply.reset_after), reply.chunk_delay)
        await self._misbehave(reply.action)

    def _ready(self) -> bool:
        """Whether another request may come; a reply cut short leaves the connection unusable."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        return self._http.our_state is h11.IDLE

    async def _event(self) -> object:
        """What the client sends next."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._reader.read(65536))
        return event

    async def _send_head(self, response: Response) -> None:
        headers = list(response.headers.items())
        status = response.reply.status
        await self._send(h11.Response(status_code=status, headers=headers, reason=reason(status)))

    async def _send_pieces(self, pieces: Sequence[bytes] | Iterator[bytes], pause: float) -> None:
        for index, piece in enumerate(pieces):
            if index:
                await asyncio.sleep(pause)
            await self._send(h11.Data(data=piece))

    async def _send(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()

    async def _misbehave(self, action: Literal["reset", "close", "stall"]) -> None:
        """Leave the response unfinished; the connection closes once this returns."""
        if action == "reset":
            lingering = struct.pack("ii", 1, 0)  # closing now sends RST in place of FIN
            connection: socket.socket = self._writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingering)
        elif action == "stall":
            while await self._reader.read(65536):
                pass
            self._left.set()


def recorded(request: h11.Request, raw: bytes) -> Recorded:
    """The request that h11 has read, for the record."""
    return Recorded(
        path=request.target.decode().partition("?")[0],
        headers={name.decode(): value.decode("latin-1") for name, value in request.headers},
        body=parsed(raw),
        raw=raw,
        at=time.monotonic(),
        method=request.method.decode(),
        query=request.target.decode().partition("?")[2],
    )


def parsed(raw: bytes) -> Any:
    """The JSON in `raw`, or None."""
    try:
        return json.loads(raw)
    except ValueError:
        return None


# --- the server ---------------------------------------------------------------------------------


_used_ports: set[int] = set()
"""Ports of all servers of this process."""


def _listen_on_new_port() -> socket.socket:
    """Listen on a port that no earlier server of this process had.

    LangChain keeps the connections to each address, and those of an event loop that has ended fail.
    """
    while True:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        if port not in _used_ports:
            _used_ports.add(port)
            return listener
        listener.close()


class ModelServer:
    """Answers from a script and records what it is asked.

    A chat request is answered by the first route that matches, else by the next of `replies`,
    else by `default`. Callables in the script run in threads of their own and may block;
    predicates may not.
    """

    def __init__(self, *, default: Scripted | None = None, dimension: int = 64) -> None:
        self.replies: deque[Scripted] = deque()
        self.default = default
        self.embed: Callable[[str], list[float]] = partial(bigram_embedding, dimension=dimension)
        self.embedding_delay = 0.0
        self.embedding_reply: Reply | Callable[[Recorded], Reply | None] | None = None
        """Answers embedding requests; a callable may return None for the vectors after all."""
        self.requests: list[Recorded] = []
        self.connections = 0
        """Number of connections that clients opened."""
        self.faults: list[str] = []
        """Faults of the script itself: it ran out, or it raised."""
        self.abandoned = threading.Event()
        """Set once a client has left a reply that stalls."""
        self._routes: list[tuple[Predicate, Scripted]] = []
        self._endpoints: dict[str, tuple[str, Callable[[Recorded], Awaitable[Reply]]]] = {
            CHAT: ("POST", self._chat),
            EMBEDDINGS: ("POST", self._embeddings),
            "/v1/models": ("GET", self._models),
        }
        self._listener = _listen_on_new_port()
        self._port: int = self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(THREADS, "model-server-script"))
        self._stopping = asyncio.Event()
        self._conversations: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)

    @property
    def base_url(self) -> str:
        """The `base_url` for clients."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def chat_requests(self) -> list[Recorded]:
        """The requests for completions, in the order of their arrival."""
        return [request for request in self.requests if request.path == CHAT]

    @property
    def embedding_requests(self) -> list[Recorded]:
        """The requests for embeddings, in the order of their arrival."""
        return [request for request in self.requests if request.path == EMBEDDINGS]

    def reply(self, *replies: Scripted) -> None:
        """Queue replies for the chat requests to come."""
        self.replies.extend(replies)

    def route(self, predicate: Predicate, reply: Scripted) -> None:
        """Answer every chat request that `predicate` holds for; the earliest such route counts."""
        self._routes.append((predicate, reply))

    # choosing the reply

    async def _respond(self, request: Recorded) -> Response:
        """The response to any request at all; a script that raises gets a 500."""
        try:
            return render(await self._choose(request), request)
        except Exception as raised:
            return render(self._fault(f"the script raised {raised!r}"), request)

    async def _choose(self, request: Recorded) -> Reply:
        """The endpoint's reply, or what is wrong with the request."""
        if request.path not in self._endpoints:
            return Reply(f"no such path: {request.path}", status=404)
        method, endpoint = self._endpoints[request.path]
        if request.method != method:
            return Reply(f"use {method}", status=405, headers={"allow": method})
        if method == "POST" and not isinstance(request.body, dict):
            return Reply("the body is not a JSON object", status=400)
        return await endpoint(request)

    async def _chat(self, request: Recorded) -> Reply:
        scripted = self._next(request)
        if scripted is None:
            return self._fault("the script has run out: no reply is left for this request")
        answer = await asyncio.to_thread(scripted, request) if callable(scripted) else scripted
        return answer if isinstance(answer, Reply) else Reply(answer)

    def _next(self, request: Recorded) -> Scripted | None:
        """What the script has for `request`; it is taken on the loop, so in order of arrival."""
        for predicate, scripted in self._routes:
            if predicate(request):
                return scripted
        try:
            return self.replies.popleft()
        except IndexError:
            return self.default

    def _fault(self, message: str) -> Reply:
        """Note a fault in the script, and answer with it; clients are told not to retry."""
        self.faults.append(message)
        return Reply(message, status=500, headers={"x-should-retry": "false"})

    async def _embeddings(self, request: Recorded) -> Reply:
        scripted = self.embedding_reply
        reply = await asyncio.to_thread(scripted, request) if callable(scripted) else scripted
        if reply is None:
            reply = await asyncio.to_thread(self._vectors, request)
        return reply

    def _vectors(self, request: Recorded) -> Reply:
        texts = embedding_inputs(request.body.get("input"))
        if not texts:
            return Reply("`input` is neither text nor tokens", status=400)
        listed = embedding_list([self.embed(text) for text in texts], request)
        return Reply(body=encoded(listed), delay=self.embedding_delay)

    async def _models(self, request: Recorded) -> Reply:
        return Reply(body=encoded(models()))

    # running

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(timeout=5)
        if self._thread.is_alive():
            raise RuntimeError("the model server does not stop: a predicate must be blocking it")

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        """Serve until stopped, then close all connections."""
        server = await asyncio.start_server(self._connected, sock=self._listener)
        await self._stopping.wait()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for conversation in self._conversations:
                conversation.cancel()
            await asyncio.wait(others)  # some of them are asyncio's own, accepting a connection
        server.close()  # last: asyncio fails to accept what a closed server has begun to

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection and close it."""
        self.connections += 1
        conversation = asyncio.create_task(
            self._converse(Connection(reader, writer, self.abandoned))
        )
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)
        conversation.add_done_callback(lambda _: writer.transport.abort())

    async def _converse(self, connection: Connection) -> None:
        """Answer one client's requests until it leaves, or a reply has broken the connection."""
        with suppress(
            ConnectionError, h11.RemoteProtocolError
        ):  # it disconnected, or does not use HTTP
            while request := await connection.receive():
                self.requests.append(request)
                await connection.send(await self._respond(request))
