"""A server for the scripted model, with OpenAI's protocol, fixed latencies and a log of calls.

    python -m benchmarks.performance.model_server

It prints its address. `POST /pace` sets the latencies. `GET /calls` returns the log, which contains the
times at which each call started and ended, and clears it.

The server shares the machine with the measured systems, so it does little work: it caches vectors, and
reads requests by Content-Length only, which every client sends.
"""

import asyncio
import base64
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from json.encoder import encode_basestring as quoted
from typing import Any, NamedTuple

from benchmarks.performance.calls import Call, Latencies
from benchmarks.performance.scripted_model import Kind, ScriptedReply, reply_to
from benchmarks.performance.word_vectors import vector

MAX_HEADER_BYTES = 65_536
"""Maximum size of a request's headers."""

DISCONNECT_CHECK_S = 0.05
"""Seconds within which a disconnect is noticed."""


class ModelServer:
    """Answers chat completions, streamed or whole, and embeddings."""

    def __init__(self, pace: Latencies) -> None:
        self._pace = pace
        self._calls: list[Call] = []
        self._bodies: dict[str, str] = {}
        """The unchanged body of the last request of each kind."""
        self._vectors: dict[str, bytes] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until the client disconnects."""
        connection = _Connection(reader, writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(_length(head))
                await self._answer(head.split(b" ", 2)[1].decode(), body, connection)
        writer.close()

    async def _answer(self, path: str, body: bytes, connection: "_Connection") -> None:
        if path == "/calls":
            log = {"calls": self._calls, "bodies": self._bodies}
            self._calls = []
            connection.send(_whole(json.dumps(log).encode()))
        elif path == "/pace":
            self._pace = Latencies(**json.loads(body))
            connection.send(_whole(b"{}"))
        else:
            await self._call(path, body, connection)

    async def _call(self, path: str, body: bytes, connection: "_Connection") -> None:
        """Answer one model call with its latency."""
        began, request = time.monotonic(), json.loads(body)
        kind: Kind = "embedding"
        try:
            if path.endswith("/embeddings"):
                embedded = self._embedded(request)
                await connection.until(began + self._pace.embedding)
                connection.send(embedded)
            else:
                reply = reply_to(request)
                kind = reply.kind
                self._bodies[kind] = body.decode()
                await self._chat(request, reply, began, connection)
        finally:
            self._calls.append(Call(kind, began, time.monotonic()))

    async def _chat(
        self, request: dict[str, Any], reply: ScriptedReply, began: float, connection: "_Connection"
    ) -> None:
        pace, due = self._pace, began + self._pace.first
        if not request.get("stream"):
            await connection.until(due + len(reply.tokens) * pace.token)
            connection.send(_whole(_completion(reply)))
            return
        connection.send(STREAM_HEAD)
        events = list(_events(request, reply))
        for event in events if pace.token else [b"".join(events)]:
            await connection.until(due)
            connection.send(event)
            due += pace.token

    def _embedded(self, request: dict[str, Any]) -> bytes:
        texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
        for text in texts:
            if text not in self._vectors:
                self._vectors[text] = vector(text)
        packed = request.get("encoding_format") == "base64"
        data = b",".join(
            b'{"object":"embedding","index":%d,"embedding":%b}'
            % (index, _packed(self._vectors[text]) if packed else _listed(self._vectors[text]))
            for index, text in enumerate(texts)
        )
        return _whole(
            b'{"object":"list","model":"scripted","data":[%b],'
            b'"usage":{"prompt_tokens":0,"total_tokens":0}}' % data
        )


class _Connection(NamedTuple):
    """A connection to a client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def until(self, due: float) -> None:
        """Wait until `due` (`time.monotonic`). Raises ConnectionError if the client disconnects first."""
        while (wait := due - time.monotonic()) > 0:
            await asyncio.sleep(min(wait, DISCONNECT_CHECK_S))
            if self.reader.at_eof():
                raise ConnectionError

    def send(self, data: bytes) -> None:
        """Send immediately."""
        self.writer.write(data)


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0] or 0)


def _whole(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)

_COMMON_FIELDS = '"id":"scripted","created":0,"model":"scripted-chat"'


def _completion(reply: ScriptedReply) -> bytes:
    message = {"role": "assistant", "content": reply.text}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    usage = json.dumps(_usage(reply))
    return (
        f'{{{_COMMON_FIELDS},"object":"chat.completion","choices":{json.dumps(choices)},"usage":{usage}}}'
    ).encode()


def _events(request: dict[str, Any], reply: ScriptedReply) -> Iterator[bytes]:
    """Yield an event per token, and one that ends the stream."""
    for token in reply.tokens:
        yield _event(f'[{{"index":0,"delta":{{"role":"assistant","content":{quoted(token)}}}}}]')
    last = _event('[{"index":0,"delta":{},"finish_reason":"stop"}]')
    if (request.get("stream_options") or {}).get("include_usage"):
        last += _event("[]", f',"usage":{json.dumps(_usage(reply))}')
    yield last + _chunk(b"data: [DONE]\n\n") + _chunk(b"")


def _event(choices: str, more: str = "") -> bytes:
    event = (
        f'data: {{{_COMMON_FIELDS},"object":"chat.completion.chunk","choices":{choices}{more}}}\n\n'
    )
    return _chunk(event.encode())


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _usage(reply: ScriptedReply) -> dict[str, int]:
    count = len(reply.tokens)
    return {"prompt_tokens": 0, "completion_tokens": count, "total_tokens": count}


def _packed(floats: bytes) -> bytes:
    return b'"%b"' % base64.b64encode(floats)


def _listed(floats: bytes) -> bytes:
    return json.dumps(memoryview(floats).cast("f").tolist()).encode()


async def main() -> None:
    """Serve on a free port of loopback until the input ends."""
    model = ModelServer(Latencies())
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0, limit=MAX_HEADER_BYTES)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
