"""An HTTP server on loopback that answers as a test specifies, and can fail as servers on the web do."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Request:
    """A request as it was received."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Message
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    """A response. If it is truncated, only half of the announced body is sent."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    is_truncated: bool = False


Fault = Callable[[Request, Reply], Reply]
"""Replaces the reply to a request."""


def status(code: int, **headers: str) -> Fault:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda *_: Reply(b'{"message": "refused"}', code, named)


def hang(_request: Request, reply: Reply) -> Reply:
    return Reply(reply.body, reply.status, reply.headers, delay_s=60)


def half(_request: Request, reply: Reply) -> Reply:
    return Reply(reply.body, reply.status, reply.headers, is_truncated=True)


class ScriptedServer:
    """Answers with `reply`. `fault` replaces the next `fault_count` replies to paths that contain `fault_path`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.url = ""
        self.fault: Fault | None = None
        self.fault_path = ""
        self.fault_count = 0
        self.stopping = threading.Event()

    def reply(self, request: Request) -> Reply:
        """Return the response to `request`."""
        raise NotImplementedError

    def fail(self, fault: Fault, path: str = "", count: int = 1_000) -> None:
        """Replace the next `count` replies to requests whose path contains `path`."""
        self.fault, self.fault_path, self.fault_count = fault, path, count

    def answer(self, request: Request) -> Reply:
        """Record `request`, and return its response or the fault that replaces it."""
        self.requests.append(request)
        reply = self.reply(request)
        if self.fault and self.fault_count and self.fault_path in request.path:
            self.fault_count -= 1
            return self.fault(request, reply)
        return reply

    def paths(self) -> list[str]:
        """Return the paths that were requested since the last call, in order."""
        paths = [request.path for request in self.requests]
        self.requests.clear()
        return paths


ServerT = TypeVar("ServerT", bound=ScriptedServer)


@contextmanager
def serving(server: ServerT) -> Iterator[ServerT]:
    """Serve on a free port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = dict(parse_qsl(parts.query))
            request = Request(self.command, parts.path, query, self.headers, body)
            reply = server.answer(request)
            until = time.monotonic() + reply.delay_s
            while time.monotonic() < until and not server.stopping.wait(0.05):
                pass
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            half = len(reply.body) // 2
            self.wfile.write(reply.body[:half] if reply.is_truncated else reply.body)

        do_GET = do_POST = do_HEAD = handle_one  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.stopping.set()
        http.shutdown()
        http.server_close()
