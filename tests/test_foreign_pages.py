"""What a browser's page of another site can do, in raw HTTP: nothing, with and without API keys.

A page can send a POST with a body of text/plain without asking first (a "simple request"), and it can make
its own domain name resolve to loopback (DNS rebinding). It sets neither Host nor Origin.
"""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.service.answer_service import AnswerService
from tests.live_server import live_server

ADMIN_KEY = "a" * 40

QUESTION = json.dumps({"question": "怎么发货", "session": "mine"})
CHAT = json.dumps({"model": "apidesk", "messages": [{"role": "user", "content": "怎么发货"}]})
TOOL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

REQUESTS = [
    ("GET", "/ingestions", ""),
    ("GET", "/suggestions", ""),
    ("GET", "/insights", ""),
    ("POST", "/ask", QUESTION),
    ("POST", "/retrieve", QUESTION),
    ("POST", "/ingestions", json.dumps({"rebuild": True})),
    ("POST", "/v1/chat/completions", CHAT),
    ("POST", "/mcp", TOOL),
    ("POST", "/answers/00000000-0000-4000-8000-000000000000/feedback", json.dumps({"score": -1})),
    ("DELETE", "/sessions/mine", ""),
]

EVIL = "evil.example"

FOREIGN = {
    "a simple request": {"Host": "{server}", "Origin": f"https://{EVIL}"},
    "a sandboxed frame or file": {"Host": "{server}", "Origin": "null"},
    "a rebound name": {"Host": f"{EVIL}:{{port}}", "Origin": f"http://{EVIL}:{{port}}"},
    "a rebound name, same-origin GET": {"Host": f"{EVIL}:{{port}}"},
}
"""The headers that a browser sets, by attack."""


class Server:
    """A server with a session `mine`, which raw requests are sent to."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._host, _, port = url.removeprefix("http://").rpartition(":")
        self._port = int(port)
        self._own = headers
        assert self.send("POST", "/ask", QUESTION)[0] == 200
        self._ingestions = self._list_ingestions()

    def _list_ingestions(self) -> str:
        status, reply = self.send("GET", "/ingestions")
        assert status == 200
        return reply.partition("\r\n\r\n")[2]

    def send(
        self, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """Send a request and return the status with the headers and the body."""
        server = f"{self._host}:{self._port}"
        given = {"Host": server, **self._own} if headers is None else headers
        lines = [f"{method} {path} HTTP/1.1", "Connection: close"]
        lines += [
            f"{name}: {text.format(server=server, port=self._port)}" for name, text in given.items()
        ]
        if body:
            content_type = "application/json" if headers is None else "text/plain"
            lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body.encode())}"]
        with socket.create_connection((self._host, self._port), timeout=60) as connection:
            connection.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
            reply = connection.makefile("rb").read().decode()
        return int(reply.split()[1]), reply

    def assert_untouched(self) -> None:
        """Assert that no ingestion was started and that the session still exists."""
        assert self._list_ingestions() == self._ingestions
        assert self.send("DELETE", "/sessions/mine")[0] == 204
        assert self.send("POST", "/ask", QUESTION)[0] == 200


@pytest.fixture(scope="module", params=["without keys", "with a key"])
def server(
    request: pytest.FixtureRequest,
    sample_service: AnswerService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    path: Path = tmp_path_factory.mktemp("foreign") / "apidesk.db"
    changes: dict[str, object] = {"database_url": f"sqlite:///{path}"}
    headers = {}
    if request.param == "with a key":
        changes["admin_key"] = SecretStr(ADMIN_KEY)
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    settings = sample_service.settings.model_copy(update=changes)
    service = AnswerService(settings, sample_service.platform, sample_service.job)
    with live_server(service) as url:
        yield Server(url, headers)


@pytest.mark.parametrize("attack", FOREIGN)
def test_page_of_another_site_is_refused(server: Server, attack: str) -> None:
    for method, path, body in REQUESTS:
        status, reply = server.send(method, path, body, FOREIGN[attack])
        assert status in (401, 403), f"{method} {path}"
        assert "access-control-allow" not in reply.lower()
        assert "订单" not in reply
    server.assert_untouched()


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_page_of_another_site_gets_no_permission_to_ask(server: Server, method: str) -> None:
    """Requests that are not simple are announced by a preflight request."""
    headers = FOREIGN["a simple request"] | {
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    for path in ("/ask", "/sessions/mine", "/mcp", "/v1/chat/completions"):
        _, reply = server.send("OPTIONS", path, headers=headers)
        assert "access-control-allow" not in reply.lower()


def test_response_cannot_be_loaded_as_a_script_or_image(server: Server) -> None:
    """A page may load a URL with a tag; the browser then sends no Origin."""
    _, reply = server.send("GET", "/suggestions")
    headers = reply.lower()
    assert "cross-origin-resource-policy: same-origin" in headers
    assert "x-content-type-options: nosniff" in headers


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1", "X-Real-IP: 127.0.0.1"]
)
def test_forwarded_headers_give_no_access(server: Server, header: str) -> None:
    name, _, value = header.partition(": ")
    status, _ = server.send("GET", "/ingestions", headers={"Host": "{server}", name: value})
    assert status in (401, 403)
