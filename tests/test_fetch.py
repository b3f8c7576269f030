"""Downloads are limited to one host, checked addresses, bytes and seconds."""

import gzip
import ipaddress
import socket
import time

import pytest

from ingestion.sources.fetch import Downloader, checked_addresses, is_public
from schemas.errors import SourceError
from schemas.platform import SourceLimits
from tests.download_server import LOCAL, Serve, answer, responding, server


def limits(**fields: object) -> SourceLimits:
    return SourceLimits(**({"private_hosts": LOCAL} | fields))  # type: ignore[arg-type]


def refusal(url: str, bounds: SourceLimits, again: str | None = None) -> str:
    """The reason `url` (or `again`, referred to from there) was refused, found out quickly."""
    started = time.monotonic()
    with pytest.raises(SourceError) as caught:
        Downloader(url, bounds).get(again or url)
    assert time.monotonic() - started < 10
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_document_is_downloaded_completely() -> None:
    with server(responding(answer(b"openapi"))) as (url, heads):
        found = Downloader(url, limits()).get(f"{url}/api.yaml?v=1")
    assert found == (f"{url}/api.yaml?v=1", b"openapi", "")
    assert heads[0].startswith("GET /api.yaml?v=1 HTTP/1.1")
    assert f"Host: {url.removeprefix('http://')}" in heads[0]


def test_host_header_is_unchanged_by_the_address_check() -> None:
    with server(responding(answer(b"x"))) as (url, heads):
        named = url.replace("127.0.0.1", "localhost")
        assert Downloader(named, limits()).get(named).data == b"x"
    assert f"Host: {named.removeprefix('http://')}" in heads[0]


def test_proxy_environment_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with server(responding(answer(b"x"))) as (url, _):
        assert Downloader(url, limits()).get(url).data == b"x"


def test_redirects_within_the_host_are_followed() -> None:
    moved = answer(b"", "302 Found", Location="/v2/api.json")
    with server(responding(moved, answer(b"x"))) as (url, heads):
        assert Downloader(url, limits()).get(f"{url}/api.json") == (f"{url}/v2/api.json", b"x", "")
    assert len(heads) == 2


def test_redirects_are_limited() -> None:
    with server(responding(answer(b"", "301 Moved", Location="/again"))) as (url, heads):
        assert refusal(url, limits()) == "redirects more than 5 times"
    assert len(heads) == 6


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1:1/x", "https://127.0.0.1/x", "http://localhost/x", "//example.com/x"],
)
def test_redirect_to_another_host_is_refused(location: str) -> None:
    with server(responding(answer(b"", "307 Temporary", Location=location))) as (url, heads):
        assert refusal(url, limits()).startswith(
            "leads to another origin: scheme, host and port must"
        )
    assert len(heads) == 1


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://x/", "http://[", "data:,x"])
def test_redirect_to_another_protocol_is_refused(location: str) -> None:
    with server(responding(answer(b"", "302 Found", Location=location))) as (url, heads):
        said = refusal(url, limits())
    assert "host" in said or "url" in said.lower()
    assert len(heads) == 1


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/a", "http://example.com/a", "https://127.0.0.1/a"]
)
def test_reference_to_another_host_is_refused(url: str) -> None:
    with server(responding(answer(b"x"))) as (own, heads):
        assert "another origin" in refusal(own, limits(), again=url)
    assert not heads


@pytest.mark.parametrize(
    ("served", "problem"),
    [
        (answer(b"gone", "404 Not Found"), "answers with HTTP 404"),
        (answer(b"", "500 Error"), "answers with HTTP 500"),
        (answer(b"", "304 Not Modified"), "answers with HTTP 304"),
        (b"", "cannot be fetched: RemoteProtocolError"),
        (b"SSH-2.0-server\r\n", "cannot be fetched: RemoteProtocolError"),
        (answer(b"x" * 2_000), "exceeds 0.001 MB in total (APIDESK_MAX_FILE_BYTES)"),
        (answer(gzip.compress(b"x" * 20_000_000, 1), Content_Encoding="gzip"),
         "exceeds 0.001 MB in total (APIDESK_MAX_FILE_BYTES)"),
        (answer(b"x", Content_Encoding="gzip, gzip"), "unsupported content encoding: only gzip and deflate are accepted"),
        (answer(b"no gzip at all", Content_Encoding="gzip"), "cannot be fetched: DecodingError"),
    ],
    ids=["404", "500", "304", "nothing", "not http", "large", "zip bomb", "gzip in gzip", "no gzip"],
)  # fmt: skip
def test_invalid_response_is_reported(served: bytes, problem: str) -> None:
    with server(responding(served)) as (url, _):
        assert refusal(url, limits(file_bytes=1_000)) == problem


def test_compressed_bodies_are_decompressed() -> None:
    with server(responding(answer(gzip.compress(b"openapi"), Content_Encoding="gzip"))) as (url, _):
        assert Downloader(url, limits()).get(url).data == b"openapi"


def test_downloads_share_one_limit() -> None:
    with server(responding(answer(b"x" * 600))) as (url, _):
        downloads = Downloader(url, limits(file_bytes=1_000))
        downloads.get(url)
        with pytest.raises(SourceError, match="APIDESK_MAX_FILE_BYTES"):
            downloads.get(f"{url}/more")


def drips(opening: bytes, drop: bytes) -> Serve:
    def serve(connection: socket.socket, _: str) -> None:
        connection.sendall(opening)
        while True:
            connection.sendall(drop)
            time.sleep(0.02)

    return serve


@pytest.mark.parametrize(
    "serve",
    [
        drips(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x"),
        drips(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        drips(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n"),
        drips(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        lambda *_: time.sleep(20),
    ],
    ids=["body", "one header", "many headers", "chunks", "silence"],
)
def test_slow_server_is_cut_off_at_the_deadline(serve: Serve) -> None:
    with server(serve) as (url, _):
        said = refusal(url, limits(fetch_seconds=0.4))
    assert said == "did not arrive within 0.4 seconds (APIDESK_FETCH_TIMEOUT)"


def test_failed_connection_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert refusal(url, limits()) == "cannot be fetched: connection failed"


@pytest.mark.parametrize("url", ["ftp://x/", "http://", "http://a b/", "http://[::", "x", ""])
def test_invalid_url_is_reported(url: str) -> None:
    assert refusal(url, limits()) in (
        "invalid URL",
        "not an http(s) URL",
        "host name cannot be resolved",
    )


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0",
     "10.0.0.1", "169.254.169.254", "100.64.0.1", "[fe80::1]", "[fd00::1]", "[64:ff9b::7f00:1]"],
)  # fmt: skip
def test_private_address_is_refused_unless_allowed(host: str) -> None:
    said = refusal(f"http://{host}:9/", SourceLimits())
    assert "APIDESK_PRIVATE_HOSTS" in said


def test_private_address_is_never_contacted() -> None:
    with server(responding(answer(b"x"))) as (url, heads):
        assert "APIDESK_PRIVATE_HOSTS" in refusal(url, SourceLimits(private_hosts=("localhost",)))
    assert not heads


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", True), ("2001:4860:4860::8888", True), ("::ffff:8.8.8.8", True),
        ("64:ff9b::808:808", True), ("127.0.0.1", False), ("10.1.2.3", False), ("172.16.0.1", False),
        ("192.168.0.1", False), ("169.254.1.1", False), ("100.64.0.1", False), ("0.0.0.0", False),
        ("224.0.0.1", False), ("255.255.255.255", False), ("240.0.0.1", False), ("192.0.2.1", False),
        ("::", False), ("::1", False), ("fe80::1%2", False), ("fc00::1", False), ("fec0::1", False),
        ("ff02::1", False), ("::ffff:10.0.0.1", False), ("::10.0.0.1", False),
        ("2002:0a00:0001::1", False), ("64:ff9b::a00:1", False), ("2001:db8::1", False),
    ],
)  # fmt: skip
def test_is_public(address: str, expected: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is expected


def test_addresses_are_resolved_and_checked() -> None:
    assert "127.0.0.1" in checked_addresses("localhost", 80, limits())
    with pytest.raises(SourceError, match="host name cannot be resolved"):
        checked_addresses("a..b", 80, limits())
