"""An OpenTelemetry collector on the loopback interface, which stores the spans it receives."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector(ThreadingHTTPServer):
    """Receives spans over OTLP/HTTP at `/v1/traces`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Span] = []
        self.resources: set[tuple[str, str]] = set()
        """The resource attributes of the senders."""
        self.sent = b""
        """The bodies of all requests."""
        self.refuse = 0
        """The status of every response, if not 0."""

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def tree(self, span: Span | None = None, depth: int = 0) -> str:
        """Return the indented names of all spans, or of `span` and its descendants, in the order of their start."""
        parent = span.span_id if span else b""
        below = (each for each in self.spans if each.parent_span_id == parent)
        lines = [f"{'  ' * depth}{span.name}"] if span else []
        started = sorted(below, key=lambda each: (each.start_time_unix_nano, each.name))
        return "\n".join([*lines, *(self.tree(each, depth + bool(span)) for each in started)])

    def find(self, name: str) -> list[Span]:
        """Return all spans with this name."""
        return [span for span in self.spans if span.name == name]

    def store(self, body: bytes) -> None:
        """Store the spans in `body`."""
        self.sent += body
        for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
            fields = resource_spans.resource.attributes
            self.resources |= {(each.key, each.value.string_value) for each in fields}
            for scope in resource_spans.scope_spans:
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
            self.server.store(body)
        self.send_response(self.server.refuse or 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a collector."""
    with Collector() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
