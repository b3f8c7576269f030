"""A scripted model server on loopback that speaks OpenAI's HTTP protocol, for tests.

    with ModelServer() as server:
        server.reply("hello", {"answer": 42}, Reply(status=429, headers={"retry-after": "1"}))
        client = OpenAI(base_url=server.base_url, api_key="any")

`ModelServer` chooses a `Reply` from the script, `render` turns the reply into a `Response` with OpenAI's
objects, and `Connection` sends the response, with the faults that the reply asks for.
"""

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Self

import h11
from pydantic import SecretStr

from tests.model_connection import Connection
from tests.model_script import Predicate, Recorded, Reply, Scripted
from tests.openai_objects import (
    MODELS,
    Response,
    bigram_embedding,
    embedding_inputs,
    embedding_list,
    encoded,
    models,
    render,
)

CHAT = "/v1/chat/completions"

EMBEDDINGS = "/v1/embeddings"

THREADS = 64
"""Maximum number of callables of the script that run at the same time, on any number of processors."""

_used_ports: set[int] = set()
"""Ports of all servers of this process."""


def _listen_on_new_port() -> socket.socket:
    """Listen on a port that no earlier server of this process had.

    LangChain keeps the connections to each address. A kept connection of an event loop that has ended would
    fail.
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

    A chat request is answered by the first route that matches, otherwise by the next of `replies`, and if
    there is none, by `default`. Callables in the script run in their own threads and may block; predicates
    must not block.
    """

    def __init__(self, *, default: Scripted | None = None) -> None:
        self.replies: deque[Scripted] = deque()
        self.default = default
        self.embed: Callable[[str], list[float]] = bigram_embedding
        self.embedding_delay = 0.0
        self.embedding_reply: Reply | Callable[[Recorded], Reply | None] | None = None
        """The reply to embedding requests, or a callable that returns it. None means vectors of the texts."""
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
    def settings(self) -> dict[str, object]:
        """The settings of a service whose chat model is this server."""
        return {
            "chat_model": f"openai:{MODELS[0]}",
            "chat_base_url": self.base_url,
            "chat_api_key": SecretStr("test-key"),
        }

    @property
    def chat_requests(self) -> list[Recorded]:
        """The requests for completions, in the order of their arrival."""
        return [request for request in self.requests if request.path == CHAT]

    @property
    def embedding_requests(self) -> list[Recorded]:
        """The requests for embeddings, in the order of their arrival."""
        return [request for request in self.requests if request.path == EMBEDDINGS]

    def reply(self, *replies: Scripted) -> None:
        """Queue replies for the next chat requests."""
        self.replies.extend(replies)

    def route(self, predicate: Predicate, reply: Scripted) -> None:
        """Answer every chat request for which `predicate` is true, unless an earlier route matches."""
        self._routes.append((predicate, reply))

    # choosing the reply

    async def _respond(self, request: Recorded) -> Response:
        """Return the response to a request; status 500 if the script raises an error."""
        try:
            return render(await self._choose(request), request)
        except Exception as raised:
            return render(self._fault(f"the script raised {raised!r}"), request)

    async def _choose(self, request: Recorded) -> Reply:
        """Return the reply of the endpoint, or an error reply if the request is invalid."""
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
        """Take the next item of the script for `request`.

        This runs on the event loop, so requests are served in the order of their arrival.
        """
        for predicate, scripted in self._routes:
            if predicate(request):
                return scripted
        try:
            return self.replies.popleft()
        except IndexError:
            return self.default

    def _fault(self, message: str) -> Reply:
        """Record a fault in the script, and return it as a reply that tells clients not to retry."""
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
            await asyncio.wait(others)  # some tasks are those of asyncio that accept connections
        server.close()  # last, because asyncio fails if a server is closed while it accepts a connection

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
