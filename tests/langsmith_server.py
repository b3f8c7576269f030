"""A scripted LangSmith on the loopback interface, which stores datasets, experiments and traces."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
import zstandard
from langsmith import utils as langsmith_utils

KEY = "test-key"
PROJECT: dict[str, Any] = {
    "id": str(uuid4()),
    "tenant_id": str(uuid4()),
    "name": "default",
    "reference_dataset_id": None,
}
"""The project of the traces."""


@dataclass
class Run:
    """A run with all its fields, and its children in the order of their start."""

    fields: dict[str, Any]
    children: list["Run"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The run's name."""
        name: str = self.fields["name"]
        return name

    @property
    def metadata(self) -> dict[str, Any]:
        """The run's metadata."""
        metadata: dict[str, Any] = self.fields["extra"]["metadata"]
        return metadata

    def walk(self) -> Iterator["Run"]:
        """Yield the run and its descendants."""
        yield self
        for child in self.children:
            yield from child.walk()

    def tree(self, depth: int = 0) -> str:
        """The indented names of the run and its descendants."""
        lines = [child.tree(depth + 1) for child in self.children]
        return "\n".join([f"{'  ' * depth}{self.name}", *lines])

    def find(self, name: str) -> list["Run"]:
        """All runs with this name."""
        return [run for run in self.walk() if run.name == name]


class LangSmith(ThreadingHTTPServer):
    """Answers as LangSmith does, and records the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.datasets: list[dict[str, Any]] = []
        self.examples: list[dict[str, Any]] = []
        self.sessions: list[dict[str, Any]] = []
        self._created: dict[str, dict[str, Any]] = {}
        self._updated: dict[str, dict[str, Any]] = {}
        self.feedback: dict[str, dict[str, Any]] = {}
        """Feedback by id."""
        self.requests: list[str] = []
        self.sent = b""
        """The bodies of all requests, uncompressed."""
        self.refuse = 0
        """The status of every response, if not 0."""
        self.hang: threading.Event | None = None
        """If set, every request waits for this event."""
        self.compressed = True
        """Whether the server advertises support for compressed traces."""
        self.multipart = True
        """Whether the server advertises the multipart endpoint."""

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def runs(self) -> dict[str, dict[str, Any]]:
        """The fields of each run. Its update counts, even if it is handled before its creation."""
        runs = dict.fromkeys([*self._created, *self._updated])
        return {run: self._created.get(run, {}) | self._updated.get(run, {}) for run in runs}

    @property
    def traces(self) -> list[Run]:
        """The root runs, in the order of their start."""
        runs = {key: Run(fields) for key, fields in self.runs.items()}
        roots: list[Run] = []
        for run in sorted(runs.values(), key=lambda run: run.fields["dotted_order"]):
            parent = run.fields.get("parent_run_id")
            (runs[parent].children if parent else roots).append(run)
        return roots

    def trace(self, run_id: str) -> Run:
        """The root run with this id."""
        (root,) = (run for run in self.traces if run.fields["id"] == run_id)
        return root

    def answer(self, method: str, url: str, headers: Any, body: bytes) -> Any:
        """The response of the endpoint; an empty object if its content does not matter."""
        parts = urlsplit(url).path.strip("/").split("/")
        if method == "GET":
            return self._get(parts, parse_qs(urlsplit(url).query))
        if parts == ["runs", "multipart"]:
            return self._merge_parts(_parts(headers["content-type"], body))
        if parts == ["runs", "batch"]:
            return self._merge_batch(json.loads(body))
        if method == "DELETE" and parts[0] == "feedback":
            return self.feedback.pop(parts[1], {})
        return self._post(parts, headers, body)

    def _post(self, parts: list[str], headers: Any, body: bytes) -> Any:
        now = datetime.now(UTC).isoformat()
        match parts:
            case ["datasets"]:
                self.datasets.append({**json.loads(body), "id": str(uuid4()), "created_at": now})
                return self.datasets[-1]
            case ["v1", "platform", "datasets", dataset, "examples"]:
                return self._add(dataset, dict(_parts(headers["content-type"], body)), now)
            case ["sessions"]:
                ids = {"id": str(uuid4()), "tenant_id": str(uuid4())}
                self.sessions.append(json.loads(body) | ids)
                return self.sessions[-1]
            case ["sessions", _]:
                return self.sessions[-1]
        return {}

    def _get(self, parts: list[str], query: dict[str, list[str]]) -> Any:
        match parts:
            case ["info"]:
                return self._info()
            case ["datasets"]:
                return [each for each in self.datasets if each["name"] == query["name"][0]]
            case ["datasets", _]:
                return self.datasets[0]
            case ["examples"]:
                return self.examples[int(query.get("offset", ["0"])[0]) :]
            case ["sessions", _]:
                return self.sessions[-1]
        return self.sessions or ([PROJECT] if query.get("name") == [PROJECT["name"]] else [])

    def _info(self) -> dict[str, Any]:
        return {
            "version": "1",
            "instance_flags": {
                "dataset_examples_multipart_enabled": True,
                "zstd_compression_enabled": self.compressed,
            },
            "batch_ingest_config": {
                "use_multipart_endpoint": self.multipart,
                "scale_up_qsize_trigger": 1000,
                "scale_up_nthreads_limit": 16,
                "scale_down_nempty_trigger": 4,
                "size_limit": 100,
                "size_limit_bytes": 20_971_520,
            },
        }

    def _merge_parts(self, parts: Iterator[tuple[str, Any]]) -> Any:
        """Merge parts named `post.<run>` or `patch.<run>`, and large fields named `post.<run>.inputs`."""
        for name, value in parts:
            kind, run, *key = name.split(".")
            if kind == "feedback":
                self.feedback[run] = value
                continue
            self._merge(kind, run, {key[0]: value} if key else value)
        return {}

    def _merge_batch(self, sent: dict[str, Any]) -> Any:
        for kind in ("post", "patch"):
            for run in sent.get(kind, ()):
                self._merge(kind, run["id"], run)
        return {}

    def _merge(self, kind: str, run: str, fields: dict[str, Any]) -> None:
        present = {key: value for key, value in fields.items() if value is not None}
        runs = self._created if kind == "post" else self._updated
        runs.setdefault(run, {}).update(present)

    def _add(self, dataset: str, parts: dict[str, Any], now: str) -> Any:
        added: dict[str, dict[str, Any]] = {}
        for name, value in parts.items():
            example, _, kind = name.partition(".")
            if kind:
                added.setdefault(example, {})[kind] = value
        for example, each in added.items():
            self.examples.append({"id": example, "dataset_id": dataset, "created_at": now, **each})
        return {"count": len(added), "example_ids": list(added)}


def _parts(content_type: str, body: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the name and the parsed JSON of each part."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    for part in BytesParser(policy=HTTP).parsebytes(head + body).iter_parts():
        name = part.get_param("name", header="content-disposition")
        yield str(name), json.loads(part.get_content())


class _Handler(BaseHTTPRequestHandler):
    server: LangSmith
    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "zstd":
            body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
        self.server.requests.append(f"{self.command} {urlsplit(self.path).path}")
        self.server.sent += body
        assert self.headers["x-api-key"] == KEY
        if self.server.hang:
            self.server.hang.wait()
        response = (
            {}
            if self.server.refuse
            else self.server.answer(self.command, self.path, self.headers, body)
        )
        content = json.dumps(response).encode()
        self.send_response(self.server.refuse or 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        self.respond()

    def do_POST(self) -> None:
        self.respond()

    def do_DELETE(self) -> None:
        self.respond()

    def do_PATCH(self) -> None:
        self.respond()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def langsmith_server(tracing: bool) -> Iterator[LangSmith]:
    """Run a server that LangSmith's environment variables name. The library caches these variables."""
    get_env_var: Any = langsmith_utils.get_env_var
    with LangSmith() as server, pytest.MonkeyPatch.context() as patch:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        patch.setenv("LANGSMITH_ENDPOINT", server.url)
        patch.setenv("LANGSMITH_API_KEY", KEY)
        patch.setenv("LANGSMITH_TRACING", str(tracing).lower())
        get_env_var.cache_clear()
        try:
            yield server
        finally:
            server.shutdown()  # a thread without its socket would use a whole core
    get_env_var.cache_clear()
