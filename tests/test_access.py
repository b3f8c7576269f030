"""Access control: API keys and scopes, and access from localhost while no key is configured."""

import json
import re
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from click.testing import CliRunner
from litestar import Litestar, get
from litestar.plugins.problem_details import ProblemDetailsConfig, ProblemDetailsPlugin
from litestar.testing import TestClient
from pydantic import SecretStr

from app.api.problems import apidesk_problem
from app.cli.main import main
from app.main import create_app
from app.security.access import AuthGuard, is_loopback
from app.security.api_keys import ApiKeyStore, Keyring
from app.security.rate_limits import RateLimiter
from app.service.answer_service import AnswerService
from app.serving.local_server import announce_server, find_running_server
from schemas.choices import SCOPES, Scope
from schemas.errors import ApideskError, ConfigurationError
from schemas.settings import read_settings
from tests.http_client import http_client
from tests.live_server import live_server
from tests.model_replies import MakeClient, ask

ADMIN_KEY = "a" * 40

LOCAL_KEY = "b" * 40

OPEN = {"/health/live", "/health/ready"}

NONE = "00000000-0000-4000-8000-000000000000"
"""An id that does not exist."""

ROUTES: list[tuple[str, str, Scope, int]] = [
    ("POST", "/ask", "ask", 400),
    ("POST", "/retrieve", "ask", 400),
    ("POST", f"/answers/{NONE}/feedback", "ask", 400),
    ("DELETE", f"/sessions/{NONE}", "ask", 404),
    ("GET", "/suggestions", "ask", 200),
    ("GET", "/metrics", "admin", 200),
    ("GET", "/ingestions", "ingest", 200),
    ("GET", f"/ingestions/{NONE}", "ingest", 404),
    ("POST", "/ingestions", "ingest", 400),
    ("GET", "/insights", "admin", 200),
    ("POST", "/v1/chat/completions", "ask", 400),
    ("GET", "/v1/models", "ask", 200),
    ("GET", f"/v1/models/{NONE}", "ask", 404),
]
"""Method, path, required scope, and the status of an authorized request without a body."""

Http = TestClient[Litestar]


class Guarded(NamedTuple):
    """An application, its client, and its keys."""

    app: Litestar
    http: Http
    keys: dict[str, str]


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def error_of(response: httpx.Response) -> tuple[str, str]:
    """Return the code and message of an error; /v1 has its own format."""
    body = response.json()
    if response.url.path.startswith("/v1/"):
        return body["error"]["code"], body["error"]["message"]
    assert response.headers["content-type"] == "application/problem+json"
    assert body["retryable"] is False
    return body["code"], body["detail"]


@pytest.fixture(scope="module")
def guarded(
    sample_service: AnswerService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    """An application with a key for each scope."""
    url = f"sqlite:///{tmp_path_factory.mktemp('keys') / 'apidesk.db'}"
    settings = sample_service.settings.model_copy(update={"database_url": url})
    with closing(ApiKeyStore.open(settings)) as stored:
        keys: dict[str, str] = {s: stored.add(s, (s,), None)[1] for s in SCOPES}
        keys["another"] = stored.add("another", ("ask",), None)[1]
    answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
    app = create_app(answer_service, LOCAL_KEY)
    with http_client(app) as http:
        yield Guarded(app, http, keys)


@pytest.mark.parametrize(("method", "path", "needed", "status"), ROUTES)
def test_route_requires_its_scope_or_admin(
    guarded: Guarded, method: str, path: str, needed: Scope, status: int
) -> None:
    _, http, keys = guarded
    for scope in SCOPES:
        response = http.request(method, path, headers=bearer(keys[scope]))
        if scope in (needed, "admin"):
            assert response.status_code == status
        else:
            assert response.status_code == 403
            sentence = f"an API key with the scope {needed} is required"
            assert error_of(response) == ("forbidden", sentence)


def test_every_documented_route_requires_a_key(guarded: Guarded) -> None:
    http = guarded.http
    protected = set()
    for path, methods in http.get("/schema").json()["paths"].items():
        for method in methods:
            response = http.request(method, re.sub(r"\{\w+\}", NONE, path))
            if path in OPEN:
                assert response.status_code == 200
                continue
            protected.add((method.upper(), re.sub(r"\{\w+\}", "", path)))
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            code, sentence = error_of(response)
            assert code == "unauthorized"
            assert sentence.startswith("a valid API key is required")
    described = [route for route in ROUTES if not route[1].startswith("/v1/")]
    assert protected == {(method, path.replace(NONE, "")) for method, path, *_ in described}


@pytest.mark.parametrize(
    ("key", "has_details"),
    [(None, False), ("wrong", False), ("ask", False), ("ingest", False), ("admin", True)],
)
def test_readiness_shows_details_to_administrators_only(
    guarded: Guarded, key: str | None, has_details: bool
) -> None:
    headers = bearer(guarded.keys.get(key, key)) if key else {}
    response = guarded.http.get("/health/ready", headers=headers)
    assert response.status_code == 200
    checks = response.json()["checks"]
    assert {check["status"] for check in checks.values()} == {"ok"}
    details = [check["detail"] for check in checks.values()]
    assert all(details) if has_details else set(details) == {None}


def test_readiness_does_not_help_to_guess_keys(serve_samples: MakeClient) -> None:
    limit = {"admin_key": SecretStr(ADMIN_KEY), "rate_limit_address": "3/minute"}
    http = serve_samples(**limit)

    def detail(key: str) -> str | None:
        response = http.get("/health/ready", headers=bearer(key))
        assert response.status_code == 200, "probes are not limited"
        text: str | None = response.json()["checks"]["collection"]["detail"]
        return text

    assert detail(ADMIN_KEY)
    for number in range(4):
        assert detail(f"wrong {number}") is None
    assert detail(ADMIN_KEY) is None, "the right key looks like a wrong one"
    assert http.get("/ingestions", headers=bearer(ADMIN_KEY)).status_code == 429


@get("/unnamed", sync_to_thread=False)
def unnamed() -> None: ...


@get("/unlimited", sync_to_thread=False, needs="admin", limited=False)
def unlimited() -> None: ...


def test_route_without_a_scope_requires_admin(tmp_path: Path) -> None:
    """On a route without rate limits, wrong keys are still limited."""
    url = f"sqlite:///{tmp_path / 'apidesk.db'}"
    settings = read_settings(database_url=url, rate_limit_address="2/minute", admin_key=ADMIN_KEY)
    with closing(ApiKeyStore.open(settings)) as stored:
        ask_key = bearer(stored.add("n", ("ask",), None)[1])
    keyring = Keyring(ApiKeyStore.open(settings), settings.admin_key)
    guard = AuthGuard(keyring, RateLimiter(settings))
    problems: dict[Any, Any] = {ApideskError: apidesk_problem}
    plugin = ProblemDetailsPlugin(ProblemDetailsConfig(exception_to_problem_detail_map=problems))
    app = Litestar(
        [unnamed, unlimited], guards=[guard.check], plugins=[plugin], logging_config=None
    )

    def statuses(path: str, *headers: dict[str, str]) -> list[int]:
        return [http.get(path, headers=h).status_code for h in headers]

    admin, wrong = bearer(ADMIN_KEY), bearer("wrong")
    with http_client(app) as http:
        assert statuses("/unnamed", ask_key, admin, admin) == [403, 200, 429]
        assert statuses("/unlimited", admin, admin, admin) == [200, 200, 200]
        assert statuses("/unlimited", wrong, wrong, wrong, admin) == [401, 401, 429, 429]


def headers_of(key: str) -> dict[str, tuple[dict[str, str], int]]:
    """Return headers that contain a key, with the expected status."""
    return {
        "bearer": (bearer(key), 200),
        "any case": ({"Authorization": f"bEARER {key}"}, 200),
        "the other header": ({"X-API-Key": key}, 200),
        "beside a proxy's own": ({"Authorization": "Basic eDp5", "X-API-Key": key}, 200),
        "a wrong one first": (bearer("x") | {"X-API-Key": key}, 401),
        "no scheme": ({"Authorization": key}, 401),
        "basic": ({"Authorization": f"Basic {key}"}, 401),
        "nothing": (bearer(""), 401),
        "cut": (bearer(key[:-1]), 401),
        "unknown": (bearer(f"apidesk_{'0' * 12}_{'x' * 43}"), 401),
        "in the query": ({}, 401),
    }


@pytest.mark.parametrize("way", headers_of(""))
def test_key_is_read_from_either_header(guarded: Guarded, way: str) -> None:
    _, http, keys = guarded
    headers, status = headers_of(keys["admin"])[way]
    path = f"/ingestions?key={keys['admin']}" if way == "in the query" else "/ingestions"
    assert http.get(path, headers=headers).status_code == status


def test_response_does_not_contain_the_key(guarded: Guarded) -> None:
    _, http, keys = guarded
    for key in (keys["ingest"], "wrong-" * 8):
        assert key not in http.post("/ask", headers=bearer(key)).text


def test_sessions_belong_to_a_key(guarded: Guarded) -> None:
    _, http, keys = guarded
    http.headers.update(bearer(keys["ask"]))
    try:
        ask(http, "发货接口是哪个", session="mine")
        follow_up = "那错误码呢"
        assert "订单发货" in ask(http, follow_up, session="mine")["question"]
        http.headers.update(bearer(keys["another"]))
        assert ask(http, follow_up, session="mine")["question"] == follow_up
        assert http.delete("/sessions/mine", headers=bearer(keys["ask"])).status_code == 204
        assert http.delete("/sessions/mine", headers=bearer(keys["ask"])).status_code == 404
    finally:
        del http.headers["Authorization"]


def test_openapi_document_describes_access(guarded: Guarded) -> None:
    document = guarded.http.get("/schema").json()
    schemes = document["components"]["securitySchemes"]
    assert schemes["bearer"] == {"type": "http", "scheme": "bearer"}
    assert schemes["apiKey"] == {"type": "apiKey", "name": "X-API-Key", "in": "header"}
    assert document["security"] == [{"bearer": []}, {"apiKey": []}]
    for path, methods in document["paths"].items():
        for operation in methods.values():
            refused = {"401", "403", "429"} & operation["responses"].keys()
            assert operation.get("security") == ([{}] if path in OPEN else None)
            assert refused == ({"403"} if path in OPEN else {"401", "403", "429"})
            for status in refused:
                (media,) = operation["responses"][status]["content"]
                is_openai = path.startswith("/v1/")
                assert media == ("application/json" if is_openai else "application/problem+json")


# Without a key.

Story = tuple[dict[str, str], str, int]

LOCALLY: dict[str, Story] = {
    "an address": ({"Host": "127.0.0.1:8000"}, "127.0.0.1", 200),
    "another one of loopback": ({"Host": "127.9.9.9"}, "127.9.9.9", 200),
    "a name": ({"Host": "localhost:1"}, "127.0.0.1", 200),
    "IPv6": ({"Host": "[::1]:8000"}, "::1", 200),
    "a page of here": ({"Host": "localhost", "Origin": "http://localhost:3000"}, "::1", 200),
    "a foreign name": ({"Host": "evil.example"}, "127.0.0.1", 403),
    "a name that begins alike": ({"Host": "127.0.0.1.evil.example"}, "127.0.0.1", 403),
    "a name that ends alike": ({"Host": "evil-localhost"}, "127.0.0.1", 403),
    "a name before the address": ({"Host": "evil@127.0.0.1"}, "127.0.0.1", 200),
    "no name": ({"Host": ""}, "127.0.0.1", 403),
    "no address": ({"Host": "[::1"}, "127.0.0.1", 403),
    "every address": ({"Host": "0.0.0.0"}, "127.0.0.1", 403),
    "a foreign page": ({"Host": "localhost", "Origin": "https://evil.example"}, "::1", 403),
    "a page of nowhere": ({"Host": "localhost", "Origin": "null"}, "::1", 403),
    "another machine": ({"Host": "localhost"}, "192.0.2.7", 403),
    "another machine in IPv6": ({"Host": "localhost"}, "2001:db8::7", 403),
    "a proxy": ({"Host": "localhost", "X-Forwarded-For": "127.0.0.1"}, "127.0.0.1", 403),
    "another kind of proxy": ({"Host": "localhost", "Forwarded": "for=x"}, "127.0.0.1", 403),
}


@pytest.fixture(scope="module")
def unguarded(sample_service: AnswerService) -> Iterator[Callable[[str], Http]]:
    """Create clients of an application without keys, from a given address."""
    app = create_app(sample_service)
    with http_client(app):
        yield lambda peer: http_client(app, peer)


@pytest.mark.parametrize("case", LOCALLY)
def test_without_a_key_only_localhost_may_connect(
    unguarded: Callable[[str], Http], case: str
) -> None:
    headers, peer, status = LOCALLY[case]
    for path in ("/ingestions", "/health/live", "/schema"):
        response = unguarded(peer).get(path, headers=headers)
        assert response.status_code == status
        if status == 403:
            assert response.json()["code"] == "forbidden"
            assert response.json()["detail"].startswith("no API key is configured, so only")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.255.0.1", "::1", "localhost", "LOCALHOST"])
def test_loopback_hosts_are_recognised(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "10.0.0.1", "localhost.example", "::ffff:8.8.8.8"]
)
def test_other_hosts_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "desk.example"])
def test_without_a_key_serving_a_public_address_is_refused(tmp_path: Path, host: str) -> None:
    environment = {"APIDESK_DATABASE_URL": f"sqlite:///{tmp_path / 'apidesk.db'}"}
    result = CliRunner().invoke(main, ["serve", "--host", host], env=environment)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"apidesk: --host {host}: other machines could reach this address")
    assert "apidesk keys add" in line
    assert "APIDESK_ADMIN_KEY" in line


# The key for local commands, proxies, bodies: over a real connection.


def desk_with(sample_service: AnswerService, **settings: object) -> AnswerService:
    changed = sample_service.settings.model_copy(update=settings)
    return AnswerService(changed, sample_service.platform, sample_service.job)


def test_local_commands_are_authenticated(sample_service: AnswerService, tmp_path: Path) -> None:
    settings = read_settings(milvus_uri=str(tmp_path / "milvus.db"))
    address = tmp_path / "milvus.db.server.json"
    address.write_text("{}")
    address.chmod(0o644)
    answer_service = desk_with(sample_service, admin_key=SecretStr(ADMIN_KEY))
    with live_server(answer_service, LOCAL_KEY) as url:
        host, _, port = url.removeprefix("http://").rpartition(":")
        with announce_server(settings, host, int(port), LOCAL_KEY):
            assert stat.S_IMODE(address.stat().st_mode) == 0o600
            server = find_running_server(settings)
            assert server
            assert LOCAL_KEY not in repr(server)
            headers = server.client(5).headers
            assert httpx.get(f"{server.url}/ingestions", headers=headers).status_code == 200
        assert httpx.get(f"{url}/ingestions").status_code == 401
    assert find_running_server(settings) is None
    assert not address.exists()


@pytest.mark.parametrize(("peer", "status"), [("127.0.0.1", 200), ("::1", 200), ("192.0.2.7", 401)])
def test_local_key_is_rejected_from_other_machines(
    guarded: Guarded, peer: str, status: int
) -> None:
    http = http_client(guarded.app, peer)
    assert http.get("/ingestions", headers=bearer(LOCAL_KEY)).status_code == status


@pytest.mark.parametrize(
    ("value", "good"),
    [
        ("10.0.0.7", True),
        ("10.0.0.0/8, 2001:db8::/32", True),
        ("*", False),
        ("proxy", False),
        ("10.0.0.7/8", False),
    ],
)
def test_trusted_proxies_must_be_addresses(value: str, good: bool) -> None:
    if good:
        assert read_settings(trusted_proxies=value).trusted_proxies
        return
    with pytest.raises(ConfigurationError, match="APIDESK_TRUSTED_PROXIES: must be addresses"):
        read_settings(trusted_proxies=value)


@pytest.mark.parametrize(("trusted", "status"), [((), 429), (("127.0.0.1",), 200)])
def test_trusted_proxy_header_sets_the_client_address(
    sample_service: AnswerService, trusted: tuple[str, ...], status: int
) -> None:
    answer_service = desk_with(
        sample_service,
        admin_key=SecretStr(ADMIN_KEY),
        rate_limit_address="1/hour",
        trusted_proxies=trusted,
    )
    with (
        live_server(answer_service) as url,
        httpx.Client(base_url=url, headers=bearer(ADMIN_KEY)) as http,
    ):
        first = http.get("/ingestions", headers={"X-Forwarded-For": "192.0.2.1"})
        other = http.get("/ingestions", headers={"X-Forwarded-For": "192.0.2.2"})
        forged = http.get("/ingestions", headers={"X-Forwarded-For": "192.0.2.3, 192.0.2.1"})
    assert [first.status_code, other.status_code, forged.status_code] == [200, status, 429]


CHUNK = b"100\r\n" + b"a" * 256 + b"\r\n"

BODIES: dict[str, tuple[list[str], bytes, str]] = {
    "a length too large": (["Content-Length: 2001"], b"", "413"),
    "a length of a world": (["Content-Length: 9999999999999999999"], b"", "413"),
    "a length of more than 64 bits": (["Content-Length: 99999999999999999999"], b"", "400"),
    "chunks too many": (["Transfer-Encoding: chunked"], CHUNK * 9 + b"0\r\n\r\n", "413"),
    "chunks without an end": (["Transfer-Encoding: chunked"], CHUNK * 9, "413"),
    "more than its length": (["Content-Length: 2"], b"[]" + b"a" * 3_000, "400"),
    "a negative length": (["Content-Length: -1"], b"", "400"),
    "a length that is not a number": (["Content-Length: many"], b"", "400"),
    "two lengths": (["Content-Length: 2", "Content-Length: 3"], b"[]", "400"),
    "a length and chunks": (["Content-Length: 2", "Transfer-Encoding: chunked"], CHUNK * 9, "400"),
}


@pytest.fixture(scope="module")
def narrow(sample_service: AnswerService) -> Iterator[tuple[str, int]]:
    """The address of a server with a body limit of 2,000 bytes."""
    with live_server(desk_with(sample_service, max_body_bytes=2_000)) as url:
        host, _, port = url.removeprefix("http://").rpartition(":")
        yield host, int(port)


def response_status(address: tuple[str, int], request: bytes) -> str:
    """Send a raw request and return the status of the first response."""
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(request)
        return connection.makefile("rb").readline().split()[1].decode()


@pytest.mark.parametrize("path", ["/ask", "/retrieve", "/ingestions"])
@pytest.mark.parametrize("case", BODIES)
def test_oversized_body_is_rejected_in_every_encoding(
    narrow: tuple[str, int], case: str, path: str
) -> None:
    lines, body, status = BODIES[case]
    head = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *lines]
    assert response_status(narrow, "\r\n".join(head).encode() + b"\r\n\r\n" + body) == status


@pytest.mark.parametrize(
    ("line", "status"),
    [("GET /ingestions", "200"), ("DELETE /sessions/none", "404"), ("GET /x", "404")],
)
def test_unread_body_does_not_delay_the_response(
    narrow: tuple[str, int], line: str, status: str
) -> None:
    head = f"{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
    assert response_status(narrow, head.encode() + b"a" * 3_000) == status


def test_body_of_an_unauthorized_request_is_not_read(guarded: Guarded) -> None:
    response = guarded.http.post("/ask", content=b"x" * 5_000_000)
    assert response.status_code == 401
    assert json.loads(response.text)["code"] == "unauthorized"


def test_sample_client_needs_no_key(serve_samples: MakeClient) -> None:
    assert serve_samples().get("/ingestions").status_code == 200
