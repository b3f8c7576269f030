"""Serves a scripted embedding over HTTP, with OpenAI's protocol."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from benchmarks.scripted_vectors import Embedding, Matrix


@contextmanager
def serve_vectors(embedding: Embedding) -> Iterator[str]:
    """Serve `embedding` on a free port; yield the base URL."""
    handler = partial(_Handler, embedding, threading.Lock())
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False  # clients keep their connections
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    """Answers `POST /v1/embeddings`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are sent as two packets

    def __init__(self, embedding: Embedding, turn: threading.Lock, *connection: Any) -> None:
        self._embedding = embedding
        self._turn = turn
        super().__init__(*connection)

    def do_POST(self) -> None:
        """Answer one request."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
        with self._turn:
            vectors = self._embedding.vectors(texts)
        body = json.dumps(reply(request, vectors)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Disable the access log."""


def reply(request: dict[str, Any], vectors: Matrix) -> dict[str, Any]:
    """Return the response body with `vectors` as numbers or base64, as requested."""
    packed = request.get("encoding_format") == "base64"
    values = [base64.b64encode(v.tobytes()).decode() if packed else v.tolist() for v in vectors]
    return {
        "object": "list",
        "model": request["model"],
        "data": [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(values)],
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }
