"""Clients that do not finish the body of a request."""

import io
import json
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from app.service.answer_service import AnswerService
from app.telemetry.logs import log_formatter
from tests.live_server import live_server

pytestmark = pytest.mark.acceptance

BODY = b'{"question": "\xe6\x80\x8e\xe4\xb9\x88\xe5\x8f\x91\xe8\xb4\xa7"}'

POST = "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"

PATHS = ["/ask", "/mcp", "/v1/chat/completions"]


@contextmanager
def serve(sample_service: AnswerService, **overrides: object) -> Iterator[str]:
    settings = sample_service.settings.model_copy(update=overrides)
    service = AnswerService(settings, sample_service.platform, sample_service.job)
    with live_server(service) as url:
        yield url


def connect(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port), timeout=20)


def send_head(url: str, path: str, length: int = len(BODY)) -> socket.socket:
    """Send the headers of a request and the beginning of its body, which has `length` bytes."""
    client = connect(url)
    client.sendall(POST.format(path=path, length=length).encode() + BODY[:5])
    return client


def read_all(client: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    received = b""
    while part := client.recv(65_536):
        received += part
    return received


@pytest.mark.parametrize("path", PATHS)
def test_body_that_stops_is_answered_with_408(sample_service: AnswerService, path: str) -> None:
    with serve(sample_service, request_timeout=0.5) as url, send_head(url, path) as client:
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"\r\nconnection: close" in head.lower()
    problem = json.loads(body)
    problem = problem.get("error", problem)
    assert problem["code"] == "request_timeout"


@pytest.mark.parametrize(
    ("method", "path", "header"),
    [
        ("GET", "/health/live", "Content-Length: 30"),
        ("POST", "/unknown", "Content-Length: 30"),
        ("POST", "/unknown", "Transfer-Encoding: chunked"),
    ],
)
def test_connection_with_an_unread_body_is_closed_after_the_response(
    sample_service: AnswerService, method: str, path: str, header: str
) -> None:
    with serve(sample_service) as url, connect(url) as client:
        client.sendall(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\n\r\n".encode())
        head = read_all(client).partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 ")
    assert b"\r\nconnection: close" in head.lower()


@pytest.mark.parametrize("header", ["X-Other: 1", "Content-Length: 0"])
def test_connection_without_a_body_stays_open(sample_service: AnswerService, header: str) -> None:
    request = f"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}\r\n\r\n".encode()
    with serve(sample_service) as url, connect(url) as client:
        for _ in range(2):
            client.sendall(request)
            response = client.recv(65_536)
            assert response.startswith(b"HTTP/1.1 200 ")
            assert b"connection: close" not in response.lower()


def test_trickling_body_is_answered_with_408(sample_service: AnswerService) -> None:
    with serve(sample_service, request_timeout=0.5) as url, send_head(url, "/ask") as client:
        client.settimeout(0.1)
        received = b""
        for _ in range(len(BODY) - 10):
            client.sendall(b" ")
            try:
                if received := client.recv(65_536):
                    break
            except TimeoutError:
                continue
    assert received.startswith(b"HTTP/1.1 408 ")


def test_slow_body_within_the_limit_is_answered(sample_service: AnswerService) -> None:
    with serve(sample_service, request_timeout=20) as url, send_head(url, "/ask") as client:
        time.sleep(0.3)
        client.sendall(BODY[5:])
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("path", PATHS)
def test_client_that_disconnects_during_its_upload_is_one_log_line(
    sample_service: AnswerService, path: str
) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log_formatter("json", stream))
    logging.getLogger().addHandler(handler)
    logging.getLogger("app").setLevel(logging.INFO)
    try:
        with serve(sample_service) as url:
            send_head(url, path).close()
            for _ in range(100):
                if '"request"' in stream.getvalue():
                    break
                time.sleep(0.05)
            time.sleep(0.1)
            lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    finally:
        logging.getLogger().removeHandler(handler)
    requests = [line for line in lines if line["event"] == "request"]
    assert [(line["path"], line["status"]) for line in requests] == [(path, 499)]
    assert not [line for line in lines if line["level"] in ("warning", "error")], lines
