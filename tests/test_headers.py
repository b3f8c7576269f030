"""Security headers and CORS."""

import pytest
from litestar import Litestar, MediaType, get
from litestar.testing import TestClient

from app.security.headers import ASSET_POLICY, HeaderPolicy, add_security_headers, page_policy
from schemas.errors import ConfigurationError
from schemas.settings import read_settings
from tests.model_replies import MakeClient

SITE = "https://www.example.com"

KEYED = {"Authorization": "Bearer " + "a" * 40}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/health/live", 200),
        ("GET", "/schema", 200),
        ("POST", "/ask", 400),
        ("GET", "/ask", 405),
        ("GET", "/nowhere", 404),
        ("OPTIONS", "/ask", 204),
    ],
)
def test_every_response_has_security_headers(
    client: TestClient[Litestar], method: str, path: str, status: int
) -> None:
    response = client.request(method, path)
    assert response.status_code == status
    expected = {
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cache-control": "no-store",
    }
    assert {name: response.headers.get(name) for name in expected} == expected
    assert not any(name.startswith("access-control") for name in response.headers)


def test_event_streams_are_not_cached(client: TestClient[Litestar]) -> None:
    accept = {"Accept": "text/event-stream"}
    response = client.post("/ask", json={"question": "怎么发货"}, headers=accept)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("policy", "framed"), [(page_policy(), False), (page_policy(["https://a.example"]), True)]
)
def test_page_policy_allows_same_origin_only(policy: HeaderPolicy, framed: bool) -> None:
    @get("/page", media_type=MediaType.HTML, sync_to_thread=False, policy=policy)
    def a_page() -> str:
        return "<!doctype html>"

    @get("/script.js", sync_to_thread=False, policy=ASSET_POLICY, cache_control=None)
    def script() -> str:
        return ""

    with TestClient(
        Litestar([a_page, script], before_send=[add_security_headers], logging_config=None)
    ) as http:
        headers = http.get("/page").headers
        directives = dict(d.split(" ", 1) for d in headers["content-security-policy"].split("; "))
        assert directives["default-src"] == "'none'"
        assert directives["script-src"] == directives["style-src"] == "'self'"
        assert directives["connect-src"] == "'self'"
        assert directives["frame-ancestors"] == ("https://a.example" if framed else "'none'")
        assert "unsafe" not in headers["content-security-policy"]
        assert ("x-frame-options" in headers) != framed
        loaded = http.get("/script.js").headers
        assert loaded["cross-origin-resource-policy"] == "cross-origin"
        assert "cache-control" not in loaded


def test_listed_site_may_call_the_api(serve_samples: MakeClient) -> None:
    from pydantic import SecretStr

    http = serve_samples(cors_origins=(SITE,), admin_key=SecretStr("a" * 40))
    preflight_headers = {"Origin": SITE, "Access-Control-Request-Method": "POST"}
    wanted = {"Access-Control-Request-Headers": "authorization, content-type"}
    preflight = http.options("/ask", headers=preflight_headers | wanted)
    assert preflight.status_code == 204, preflight.text
    assert preflight.headers["access-control-allow-origin"] == SITE
    assert "authorization" in preflight.headers["access-control-allow-headers"].lower()

    answered = http.get("/ingestions", headers={"Origin": SITE} | KEYED)
    assert answered.status_code == 200
    assert answered.headers["access-control-allow-origin"] == SITE
    assert answered.headers["access-control-expose-headers"] == "Retry-After, X-Request-ID"
    assert "access-control-allow-credentials" not in answered.headers

    refused = http.get("/ingestions", headers={"Origin": SITE})
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == SITE, "a page may read the problem"

    for origin in ("https://example.com", SITE + ".evil.example", "http://www.example.com", "null"):
        other = http.get("/ingestions", headers={"Origin": origin} | KEYED)
        assert "access-control-allow-origin" not in other.headers
        assert (
            http.options("/ask", headers=preflight_headers | {"Origin": origin}).status_code == 400
        )


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/ask", "authorization,cache-control,content-type,last-event-id"),
        ("/mcp", "authorization,content-type,mcp-protocol-version,mcp-session-id"),
        ("/v1/chat/completions", "authorization,content-type,x-stainless-lang,x-stainless-os"),
    ],
)
def test_listed_site_may_send_the_headers_of_documented_clients(
    serve_samples: MakeClient, path: str, names: str
) -> None:
    http = serve_samples(cors_origins=(SITE,))
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": names}
    response = http.options(path, headers=preflight | {"Origin": SITE})
    assert response.status_code == 204, response.text
    allowed = response.headers["access-control-allow-headers"].lower().split(", ")
    assert set(names.split(",")) <= set(allowed)
    assert "access-control-allow-credentials" not in response.headers
    other = http.options(path, headers=preflight | {"Origin": "https://example.com"})
    assert other.status_code == 400


@pytest.mark.parametrize(
    "value", ["www.example.com", "https://", "https://a/b", "https://*.a", "null"]
)
def test_invalid_origin_is_rejected(value: str) -> None:
    with pytest.raises(ConfigurationError, match="APIDESK_CORS_ORIGINS: must be origins such as"):
        read_settings(cors_origins=value)
