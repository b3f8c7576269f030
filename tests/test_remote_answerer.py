"""The command line as a client of a running server of another version, or of another program."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import SecretStr

from app.api.ask import EXAMPLE_ANSWER
from app.cli.terminal.answerers import RemoteAnswerer
from app.service.ask_command import AskCommand
from app.serving.local_server import LocalServer
from schemas.answer import Answer, Event, Source
from schemas.errors import ApideskError, StoreUnavailable

COMMAND = AskCommand("what does error 44203 mean?")


def with_new_fields(value: Any) -> Any:
    """Add an unknown field to every object in `value`, except to metadata and timings."""
    if isinstance(value, list):
        return [with_new_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = ("metadata", "timings", "requestParam")
    fields = {k: v if k in plain else with_new_fields(v) for k, v in value.items()}
    return fields | {"addedLater": "2026-11-02"}


BODY = with_new_fields(EXAMPLE_ANSWER.model_dump(mode="json", by_alias=True))
STEP = {"number": 1, "text": BODY["answer"][0], "unverified": [], "supported": True, "new": 1}
EVENTS: list[tuple[str, Any]] = [
    ("structured", BODY["structured"]),
    ("sources", {"sources": BODY["sources"], "new": 1}),
    ("reviewed", {"new": 1}),
    ("step", STEP),
    ("answer", BODY),
]


class _NewerServer(BaseHTTPRequestHandler):
    streams = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/retrieve":
            self._send("application/json", json.dumps({"sources": BODY["sources"]}))
        elif self.streams:
            events = (f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in EVENTS)
            self._send("text/event-stream", "".join(events))
        else:
            self._send("application/json", json.dumps(BODY))

    def _send(self, media_type: str, text: str, status: int = 200) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Suppress the log."""


class _OtherProgram(_NewerServer):
    reply = ("application/json", "{}", 200)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(*self.reply)


def newer_server(streams: bool) -> AbstractContextManager[LocalServer]:
    return serve(type("Handler", (_NewerServer,), {"streams": streams}))


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler]) -> Iterator[LocalServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, name="server").start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            yield LocalServer(url=url, platform="", key=SecretStr("key"))
        finally:
            server.shutdown()


@pytest.mark.parametrize("streams", [True, False])
def test_answer_of_a_newer_server_is_read_without_its_new_fields(streams: bool) -> None:
    events: list[Event] = []

    async def ask(server: LocalServer) -> Answer:
        async def on_event(event: Event) -> None:
            events.append(event)

        async with RemoteAnswerer.connect(server, 10) as answerer:
            return await answerer.ask(COMMAND, on_event)

    with newer_server(streams) as server:
        assert asyncio.run(ask(server)) == EXAMPLE_ANSWER
    assert [event.name for event in events] == (
        ["structured", "sources", "step"] if streams else []
    )


def test_chunks_of_a_newer_server_are_read_without_their_new_fields() -> None:
    async def retrieve(server: LocalServer) -> list[Source]:
        async with RemoteAnswerer.connect(server, 10) as answerer:
            return await answerer.retrieve(COMMAND)

    with newer_server(True) as server:
        assert asyncio.run(retrieve(server)) == EXAMPLE_ANSWER.sources


async def answer_or_chunks(server: LocalServer, method: str) -> object:
    async with RemoteAnswerer.connect(server, 10) as answerer:
        return await getattr(answerer, method)(COMMAND)


@pytest.mark.parametrize("method", ["ask", "retrieve"])
@pytest.mark.parametrize(
    "reply",
    [
        ("application/json", "{}", 200),
        ("application/json", '{"sources": null}', 200),
        ("application/json", "[]", 200),
        ("application/json", "[]", 502),
        ("application/json", '{"detail": null}', 502),
        ("text/event-stream", "event: error\ndata: {}\n\n", 200),
        ("text/event-stream", "event: error\ndata: []\n\n", 200),
        ("text/html", "<h1>Bad Gateway</h1>", 502),
    ],
)
def test_reply_of_another_program_is_not_a_valid_answer(
    method: str, reply: tuple[str, str, int]
) -> None:
    with (
        serve(type("Handler", (_OtherProgram,), {"reply": reply})) as server,
        pytest.raises(StoreUnavailable, match="did not return a valid answer"),
    ):
        asyncio.run(answer_or_chunks(server, method))


@pytest.mark.parametrize("method", ["ask", "retrieve"])
def test_reported_error_is_raised_with_its_message(method: str) -> None:
    reply = ("application/problem+json", '{"detail": "too long", "addedLater": 1}', 413)
    with (
        serve(type("Handler", (_OtherProgram,), {"reply": reply})) as server,
        pytest.raises(ApideskError, match="too long"),
    ):
        asyncio.run(answer_or_chunks(server, method))
