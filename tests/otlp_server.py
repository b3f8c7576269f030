"""An OpenTelemetry collector on loopback: keeps the spans that it is sent over OTLP/HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector(ThreadingHTTPServer):
    """Takes spans at `/v1/traces`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Span] = []
        self.resources: set[tuple[str, str]] = set()
        """What the senders say of themselves."""
        self.sent = b""
        """All bodies."""
        self.refuse = 0
        """A status that every request gets."""

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def tree(self, span: Span | None = None, depth: int = 0) -> str:
        """The names of all spans, or of those from `span` on, indented, in the order of their start."""
        parent = span.span_id if span else b""
        below = (each for each in self.spans if each.parent_span_id == parent)
        lines = [f"{'  ' * depth}{span.name}"] if span else []
        started = sorted(below, key=lambda each: (each.start_time_unix_nano, each.name))
        return "\n".join([*lines, *(self.tree(each, depth + bool(span)) for each in started)])

    def find(self, name: str) -> list[Span]:
        """All spans that are called `name`."""
        return [span for span in self.spans if span.name == name]

    def take(self, body: bytes) -> None:
        """Keep the spans in `body`."""
        self.sent += body
        for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
            fields = sent.resource.attributes
            self.resources |= {(each.key, each.value.string_value) for each in fields}
            for scope in sent.scope_spans:
                self.spans.extend(scope.spans)


def attributes(span: Span) -> dict[str, Any]:
    """The span's attributes."""
    values = ((each.key, each.value) for each in span.attributes)
    return {key: getattr(value, value.WhichOneof("value") or "") for key, value in values}


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == "/v1/traces"
        if not self.server.refuse:
            self.server.take(body)
        self.send_response(self.server.refuse or 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector that runs."""
    with Collector() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
