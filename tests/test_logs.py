"""The log: its format, one line for each request, and the request id on every line."""

import io
import json
import logging
import os
import pty
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient
from structlog.contextvars import bound_contextvars

from app.telemetry.logs import (
    LogFormat,
    log_formatter,
    mask_provider_messages,
    structured_logger,
)
from tests.model_replies import MakeClient, draft, is_classification, structured
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer

Lines = Callable[[], list[dict[str, Any]]]

SECRET = "s3cret"
API_KEY = "apidesk_0123456789ab_-8f3kd92jfkd8w2twQ_Zx7pL0aBcDeFgHiJkLmNoP"
QUESTION = f"发货接口是哪个 {SECRET}"


@pytest.fixture
def lines() -> Iterator[Lines]:
    """The lines of this test, parsed from JSON, from level INFO on."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log_formatter("json", stream))
    root, app = logging.getLogger(), logging.getLogger("app")
    root.addHandler(handler)
    app.setLevel(logging.INFO)
    logging.getLogger("runnables").setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)


def request_lines(lines: Lines) -> list[dict[str, Any]]:
    """The lines with the event `request`."""
    return [line for line in lines() if line["event"] == "request"]


def valid_reply(request: Recorded) -> str:
    reply = structured() if is_classification(request) else draft("用“订单发货”接口。[1]")
    return reply.model_dump_json(by_alias=True)


# --- format


def test_all_loggers_write_json_lines(lines: Lines) -> None:
    with bound_contextvars(request_id="abc"):
        structured_logger("app.a").info("noted", path="/a\nb", 名="值")
        logging.getLogger("uvicorn.error").warning("on %s", "x", extra={"color_message": "no"})
        try:
            raise ValueError("bad\nluck")
        except ValueError:
            logging.getLogger("ingestion.b").exception("failed")
    noted, uvicorn, failed = lines()
    assert (noted["event"], noted["path"], noted["名"]) == ("noted", "/a\nb", "值")
    assert set(uvicorn) == {"event", "timestamp", "level", "logger", "request_id"}
    assert (uvicorn["event"], uvicorn["level"], uvicorn["logger"]) == (
        "on x", "warning", "uvicorn.error",
    )  # fmt: skip
    assert failed["exception"].startswith("Traceback")
    assert failed["exception"].endswith("ValueError: bad\nluck")
    assert {line["request_id"] for line in (noted, uvicorn, failed)} == {"abc"}


@pytest.mark.parametrize(
    ("log_format", "terminal", "expected"),
    [
        ("auto", True, "colours"),
        ("auto", False, "json"),
        ("json", True, "json"),
        ("console", False, "text"),
        ("console", True, "colours"),
    ],
)
def test_format_depends_on_the_stream(log_format: LogFormat, terminal: bool, expected: str) -> None:
    controller, terminal_end = pty.openpty()
    with os.fdopen(controller), os.fdopen(terminal_end, "w") as screen:
        formatter = log_formatter(log_format, screen if terminal else io.StringIO())
    line = formatter.format(
        logging.makeLogRecord({"name": "app.a", "msg": "hello", "levelname": "INFO"})
    )
    forms = {"json": r"\{.*\}", "text": r"[\d\-T:.Z]+ \[\w+ *\] app\.a hello *"}
    assert re.fullmatch(forms.get(expected, r".*\x1b\[.*hello.*"), line), line


def test_traceback_does_not_show_variables(lines: Lines) -> None:
    """In both formats: variables may hold keys."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log_formatter("console", stream))
    log = logging.getLogger("app.a")
    log.addHandler(handler)
    try:
        key = SECRET  # noqa: F841
        raise ValueError
    except ValueError:
        log.exception("failed")
    log.removeHandler(handler)
    assert "ValueError" in stream.getvalue()
    assert SECRET not in stream.getvalue() + json.dumps(lines())


# --- requests


@pytest.mark.parametrize(
    ("sent", "accepted"),
    [
        ("a-b_c.1", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("a b", False),
        ("a;b", False),
        ("ä", False),
        (None, False),
    ],
)
def test_valid_request_id_of_the_caller_is_used(
    client: TestClient[Litestar], lines: Lines, sent: str | None, accepted: bool
) -> None:
    headers = {} if sent is None else {"X-Request-ID": sent.encode("latin-1")}
    response = client.get("/no/such", headers=headers)  # type: ignore[arg-type]
    request_id = response.headers["x-request-id"]
    assert (request_id == sent) is accepted
    assert accepted or re.fullmatch(r"[0-9a-f]{32}", request_id)
    assert [line["request_id"] for line in request_lines(lines)] == [request_id]


REQUESTS: list[Any] = [
    pytest.param("GET", "/no/such?q=" + SECRET, None, ("unmatched", 404), id="not found"),
    pytest.param("GET", "/a%0Ab", None, ("unmatched", 404), id="a newline in the path"),
    pytest.param("POST", "/health/live", None, ("unmatched", 405), id="not allowed"),
    pytest.param("POST", "/ask", {"question": ""}, ("/ask", 400), id="bad input"),
    pytest.param("POST", "/retrieve", {"question": QUESTION}, ("/retrieve", 200), id="retrieve"),
    pytest.param("DELETE", "/sessions/x", None, ("/sessions/{session}", 404), id="a parameter"),
]


@pytest.mark.parametrize(("method", "path", "body", "expected"), REQUESTS)
def test_request_is_logged_on_one_line(
    client: TestClient[Litestar],
    lines: Lines,
    method: str,
    path: str,
    body: object,
    expected: tuple[str, int],
) -> None:
    headers = {"Authorization": f"Bearer {SECRET}"}
    response = client.request(method, path, json=body, headers=headers)
    (line,) = request_lines(lines)
    assert (line["route"], line["status"]) == expected
    assert (line["method"], line["path"]) == (method, path.partition("?")[0])
    assert line["status"] == response.status_code
    assert line["bytes"] == len(response.content)
    assert line["request_id"] == response.headers["x-request-id"]
    assert SECRET not in json.dumps(lines())


@pytest.mark.parametrize(
    ("path", "logged"),
    [
        (f"/ask/{API_KEY}", "/ask/‹api_key›"),
        (f"/{API_KEY}/ask", "/‹api_key›/ask"),
        ("/" + "a" * 180 + "/" + API_KEY, "/" + "a" * 180 + "/‹api_key›"),
        ("/sessions/ann%40corp-mail.cn", "/sessions/‹email›"),
        ("/token/5be1c07d92fa58465be1c07d92fa5846/x", "/token/‹secret›/x"),
        ("/v1/hooks/0a1b2c3d-1111-4222-8333-abcdefabcdef/run", "/v1/hooks/‹webhook›/run"),
        ("/x/app_secret=8f3kd92jfkd8w2yw", "/x/app_secret%3D‹app_secret›"),
    ],
)
def test_secret_in_a_path_is_not_logged(
    client: TestClient[Litestar], lines: Lines, path: str, logged: str
) -> None:
    client.get(path)
    (line,) = request_lines(lines)
    assert line["path"] == logged


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_question_line_has_facts_but_no_texts(
    model_client: MakeClient, model_server: ModelServer, lines: Lines, accept: str
) -> None:
    """Lines of the pipeline's tasks and threads have the request id, too."""
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
    model_server.default = lambda request: Reply(valid_reply(request), usage=usage)
    client = model_client()
    body = {"question": QUESTION}
    with client.stream("POST", "/ask", json=body, headers={"Accept": accept}) as response:
        text = response.read().decode()
    (line,) = request_lines(lines)
    assert line["answer"] in text
    facts = ("type", "confidence", "sources", "model", "degraded")
    assert [line[fact] for fact in facts] == ["api_call", "high", 1, "openai:scripted-chat", False]
    assert line["input_tokens"] % 100 == 0
    assert line["output_tokens"] % 7 == 0
    assert {line["logger"] for line in lines()} > {"runnables.models.structured_output"}
    assert {line["request_id"] for line in lines()} == {response.headers["x-request-id"]}
    logged = json.dumps(lines(), ensure_ascii=False)
    assert not any(words in logged for words in (SECRET, "发货", "test-key"))


def test_provider_message_is_logged_with_personal_data_masked(
    model_client: MakeClient, model_server: ModelServer, lines: Lines
) -> None:
    model_server.default = Reply(status=400, text="flagged: 我的电话是13800138000")
    model_client().post("/ask", json={"question": QUESTION})
    events = [line["event"] for line in lines() if line["logger"] == "ingestion.providers"]
    assert events
    assert all("the provider answers 400: flagged: 我的电话是‹" in event for event in events)
    assert "13800138000" not in json.dumps(lines())


def test_provider_message_is_masked_in_every_program(caplog: pytest.LogCaptureFixture) -> None:
    """Programs that import apidesk do not call `configure_logging`."""
    mask_provider_messages()
    mask_provider_messages()  # has no further effect
    logging.getLogger("ingestion.providers").warning("%s: flagged: 我的电话是13800138000", "CHAT")
    assert caplog.messages == ["CHAT: flagged: 我的电话是‹电话›"]


def test_database_failure_is_logged_with_the_request_id(
    serve_samples: MakeClient, tmp_path: Path, lines: Lines
) -> None:
    """Queries run in threads of their own."""
    database = tmp_path / "apidesk.db"
    client = serve_samples(database_url=f"sqlite:///{database}")
    with sqlite3.connect(database) as connection:
        connection.execute("drop table turns")
    response = client.post("/ask", json={"question": QUESTION, "session": "x"})
    assert response.status_code == 503
    assert {line["logger"] for line in lines()} == {
        "ingestion.database.engine",
        "app.telemetry.request_log",
    }
    assert {line["request_id"] for line in lines()} == {response.headers["x-request-id"]}


def test_probes_are_logged_at_debug_only(client: TestClient[Litestar], lines: Lines) -> None:
    paths = ["/health/live", "/health/ready", "/metrics"]
    for path in paths:
        assert client.get(path).headers["x-request-id"]
    assert request_lines(lines) == []
    logging.getLogger("app").setLevel(logging.DEBUG)
    for path in paths:
        client.get(path)
    assert [(line["path"], line["level"]) for line in request_lines(lines)] == [
        (path, "debug") for path in paths
    ]
