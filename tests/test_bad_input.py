"""Invalid and unusual requests get a problem that names the cause, or an answer; never a traceback."""

import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from httpx import Response
from litestar import Litestar
from litestar.testing import TestClient

from schemas.answer import Answer
from tests.conftest import SHARED_DATA, needs_shared_data

ROOT = Path(__file__).resolve().parents[1]
PATHS = ["/ask", "/retrieve"]
JSON = {"Content-Type": "application/json"}
MEMBERS = {"type", "title", "status", "detail", "code", "retryable"}
CODES = {400: "invalid_input", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}
INTERNALS = [
    "Traceback",
    'File "',
    ".py",
    "site-packages",
    str(ROOT),
    "AskRequest",
    "RetrieveRequest",
]

NOT_JSON = "body: not a valid JSON document in UTF-8"
NOT_AN_OBJECT = "body: not a JSON object"
NOT_A_NUMBER = "k: must be a whole number"

BAD_BODIES = {
    "no body": (b"", 400, "body: missing"),
    "broken JSON": (b'{"question": "a"', 400, NOT_JSON),
    "two JSON values": (b'{"question": "a"} {}', 400, NOT_JSON),
    "NaN": (b'{"question": "a", "k": NaN}', 400, NOT_JSON),
    "invalid UTF-8": (b'{"question": "\xff"}', 400, NOT_JSON),
    "UTF-16": ('{"question": "a"}'.encode("utf-16"), 400, NOT_JSON),
    "nested too deeply": (b"[" * 100_000 + b"]" * 100_000, 400, NOT_JSON),
    "an array": (b'["a"]', 400, NOT_AN_OBJECT),
    "a string": (b'"a"', 400, NOT_AN_OBJECT),
    "null": (b"null", 400, NOT_AN_OBJECT),
    "no question": (b"{}", 400, "question: "),
    "empty question": (b'{"question": ""}', 400, "question: must not be blank"),
    "blank question": (
        '{"question": " \\t\\n\u3000"}'.encode(),
        400,
        "question: must not be blank",
    ),
    "null question": (b'{"question": null}', 400, "question: "),
    "number as question": (b'{"question": 1}', 400, "question: "),
    "list as question": (b'{"question": ["a"]}', 400, "question: "),
    "100,000 characters": (b'{"question": "%s"}' % (b"a" * 100_000), 413, "question: 100000 char"),
    "body over the limit": (b'{"question": "%s"}' % (b"a" * 1_000_000), 413, "body: larger"),
    "k = 0": (b'{"question": "a", "k": 0}', 400, "k: "),
    "k = 51": (b'{"question": "a", "k": 51}', 400, "k: "),
    "k as string": (b'{"question": "a", "k": "5"}', 400, NOT_A_NUMBER),
    "k as bool": (b'{"question": "a", "k": true}', 400, NOT_A_NUMBER),
    "k as float": (b'{"question": "a", "k": 5.5}', 400, NOT_A_NUMBER),
    "k with 5,000 digits": (b'{"question": "a", "k": %s}' % (b"9" * 5_000), 400, NOT_JSON),
    "unknown key": (b'{"question": "a", "top_k": 5}', 400, "top_k: "),
    "unknown key with a lone surrogate": (b'{"question": "a", "\\ud800": 5}', 400, "\ufffd: "),
    "the name of a handler parameter as key": (b'{"question": "a", "data": 5}', 400, "data: Extra"),
    "unknown language": (b'{"question": "a", "language": "xx"}', 400, "language: "),
    "a list as filters": (
        b'{"question": "a", "filters": []}',
        400,
        "filters: Input should be a JSON object",
    ),
    "1,000 filters": (
        json.dumps(
            {"question": "a", "filters": {"metadata": dict.fromkeys(map(str, range(1_000)), "x")}}
        ).encode(),
        400,
        "filters.metadata: Object should have at most 20 items",
    ),
    "two wrong fields": (b'{"question": "", "k": 0}', 400, "; k: "),
}

WRONG_TYPES = {
    "a form": ("application/x-www-form-urlencoded", b"question=a"),
    "multipart": ("multipart/form-data; boundary=x", b"--x\r\n\r\na\r\n--x--\r\n"),
    "plain text": ("text/plain", "怎么发货".encode()),
    "MessagePack": ("application/x-msgpack", b"\x81\xa8question\xa1a"),
}

WRONG_METHODS = [
    *[(method, path) for method in ("GET", "PUT", "PATCH", "DELETE") for path in PATHS],
    ("POST", "/health/live"),
    ("DELETE", "/health/ready"),
]

UNUSUAL_QUESTIONS = {
    "emoji": '"🚚 怎么发货 👨‍👩‍👧‍👦"',
    "lone surrogates": '"\\ud83d 怎么发货 \\ude9a"',
    "only a lone surrogate": '"\\ud800"',
    "a surrogate pair": '"\\ud83d\\ude9a 怎么发货"',
    "NUL": '"怎么\\u0000发货"',
    "only NUL": '"\\u0000"',
    "terminal escapes": '"\\u001b[31m怎么发货\\u0007"',
    "20,000 characters on a line": json.dumps("签名怎么算" * 4_000),
    "20,000 characters without a break": json.dumps("a" * 20_000),
    "one character and blanks": json.dumps("签" + " " * 19_000),
    "HTML": '"<script>alert(1)</script> <b>怎么发货</b>"',
    "right to left": '"كيف أرسل الطلب \u202e إلى العميل"',
    "a template": '"{{ 7 * 7 }} {question} %s ${HOME} 怎么发货"',
    "a filter's quotes": json.dumps("""怎么发货 " or api_url != "" -- '; \\"""),
    "citations": '"[1][2][99] 怎么发货 [1]"',
    "a number of 30 digits in pasted JSON": json.dumps('怎么发货 {"a": %s}' % ("9" * 30)),
    "a number of 5,000 digits in pasted JSON": json.dumps('怎么发货 {"a": %s}' % ("9" * 5_000)),
    "infinity in pasted JSON": json.dumps('怎么发货 {"a": 1e999, "b": NaN}'),
}

UNUSUAL_DETAILS = {
    "truncated URL": '"怎么发货 http://[::1"',
    "lone surrogate in pasted JSON": json.dumps('怎么发货 {"a": "\\ud83d"}'),
    "pasted JSON nested deeply": json.dumps("怎么发货 " + '{"a":' * 300 + "1" + "}" * 300),
}


def post(client: TestClient[Litestar], path: str, question: str) -> Response:
    """Post `question`, a JSON string literal."""
    return client.post(path, content=f'{{"question": {question}}}'.encode(), headers=JSON)


def assert_problem(response: Response, status: int, detail: str) -> None:
    """Check that the response is a problem with `status` and `detail` and without internals."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem.keys() == MEMBERS
    assert problem["type"] == "about:blank"
    assert problem["title"] == HTTPStatus(status).phrase
    assert problem["status"] == status
    assert problem["code"] == CODES[status]
    assert problem["retryable"] is False
    assert detail in problem["detail"]
    assert not [word for word in INTERNALS if word in response.text]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("body", "status", "detail"), BAD_BODIES.values(), ids=BAD_BODIES)
def test_invalid_body_returns_a_problem(
    client: TestClient[Litestar], path: str, body: bytes, status: int, detail: str
) -> None:
    assert_problem(client.post(path, content=body, headers=JSON), status, detail)


@pytest.mark.parametrize("path", PATHS)
def test_chunked_body_over_the_limit_returns_413(client: TestClient[Litestar], path: str) -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"question": "'
        for _ in range(20):
            yield b"a" * 100_000

    assert_problem(client.post(path, content=chunks(), headers=JSON), 413, "body: larger")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("content_type", "body"), WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_body_that_is_not_json_returns_400(
    client: TestClient[Litestar], path: str, content_type: str, body: bytes
) -> None:
    response = client.post(path, content=body, headers={"Content-Type": content_type})
    assert_problem(response, 400, NOT_JSON)


@pytest.mark.parametrize(("method", "path"), WRONG_METHODS)
def test_wrong_method_returns_405(client: TestClient[Litestar], method: str, path: str) -> None:
    response = client.request(method, path)
    assert_problem(response, 405, "method")
    assert ("POST" if path in PATHS else "GET") in response.headers["allow"]


@pytest.mark.parametrize("path", ["/nope", "/ask/nope", "/health", "/../pyproject.toml"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unknown_path_returns_404(client: TestClient[Litestar], method: str, path: str) -> None:
    assert_problem(client.request(method, path), 404, "Nothing matches")


@pytest.mark.parametrize("answer_id", ["none", "00000000-0000-4000-8000-000000000000"])
def test_unknown_answer_or_session_is_named(client: TestClient[Litestar], answer_id: str) -> None:
    response = client.post(f"/answers/{answer_id}/feedback", json={"score": 1})
    assert_problem(response, 404, "there is no answer with this id")
    response = client.delete(f"/sessions/{answer_id}")
    assert_problem(response, 404, "there is no session with this id")


def test_event_stream_with_quality_zero_is_not_sent(client: TestClient[Litestar]) -> None:
    accept = {"Accept": "text/event-stream;q=0"}
    response = client.post("/ask", json={"question": "怎么发货"}, headers=accept)
    assert response.headers["content-type"] == "application/json"


@pytest.mark.acceptance
@pytest.mark.parametrize("question", UNUSUAL_QUESTIONS.values(), ids=UNUSUAL_QUESTIONS)
def test_unusual_question_is_answered(client: TestClient[Litestar], question: str) -> None:
    response = post(client, "/ask", question)
    assert response.status_code == 200, response.text
    Answer.model_validate_json(response.content)


@pytest.mark.parametrize("question", UNUSUAL_DETAILS.values(), ids=UNUSUAL_DETAILS)
def test_unusual_pasted_details_are_answered(client: TestClient[Litestar], question: str) -> None:
    assert post(client, "/ask", question).status_code == 200


@pytest.mark.acceptance
@pytest.mark.parametrize("question", UNUSUAL_QUESTIONS.values(), ids=UNUSUAL_QUESTIONS)
def test_unusual_question_is_retrieved(client: TestClient[Litestar], question: str) -> None:
    response = post(client, "/retrieve", question)
    assert response.status_code == 200, response.text
    assert response.json().keys() == {"sources"}


@pytest.mark.parametrize(
    "content_type",
    ["application/x-www-form-urlencoded", "text/plain", "application/json; charset=utf-8"],
)
def test_json_is_accepted_with_any_content_type(
    client: TestClient[Litestar], content_type: str
) -> None:
    """`curl -d` declares every body a form."""
    body = '{"question": "怎么发货"}'.encode()
    response = client.post("/ask", content=body, headers={"Content-Type": content_type})
    assert response.status_code == 200, response.text
    assert Answer.model_validate_json(response.content).question == "怎么发货"


def test_lone_surrogates_are_replaced(client: TestClient[Litestar]) -> None:
    response = post(client, "/ask", '"\\ud83d 怎么发货 \\ud83d\\ude9a"')
    assert "\ufffd 怎么发货 🚚" in response.json()["question"]


@pytest.mark.acceptance
@needs_shared_data
def test_naughty_strings_are_answered(client: TestClient[Litestar]) -> None:
    strings = json.loads((SHARED_DATA / "blns.json").read_text(encoding="utf-8"))
    asked = [string for string in strings if string.strip()]
    assert len(asked) > 500
    refused = {}
    for string in asked:
        response = post(client, "/ask", json.dumps(string))
        if response.status_code != 200:
            refused[string] = response.text
        else:
            Answer.model_validate_json(response.content)
    assert not refused


def test_liveness_probe(client: TestClient[Litestar]) -> None:
    response = client.get("/health/live")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_probes_accept_head(client: TestClient[Litestar], path: str) -> None:
    response = client.head(path)
    assert (response.status_code, response.content) == (200, b"")


def test_readiness_probe(client: TestClient[Litestar]) -> None:
    response = client.get("/health/ready")
    assert response.status_code == 200
    body = response.json()
    assert body["status"] == "ok"
    assert {name: check["status"] for name, check in body["checks"].items()} == {
        "milvus": "ok",
        "collection": "ok",
        "ingestion": "ok",
        "model": "ok",
    }
    assert body["checks"]["model"]["detail"] == "extractive"


def test_openapi_document_lists_all_operations(client: TestClient[Litestar]) -> None:
    response = client.get("/schema")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("application/vnd.oai.openapi+json")
    operations = {
        (method, path, operation["operationId"])
        for path, methods in response.json()["paths"].items()
        for method, operation in methods.items()
    }
    assert operations == {
        ("post", "/ask", "ask"),
        ("post", "/retrieve", "retrieve"),
        ("delete", "/sessions/{session}", "deleteSession"),
        ("post", "/ingestions", "ingest"),
        ("get", "/ingestions", "ingestions"),
        ("get", "/ingestions/{run_id}", "ingestion"),
        ("get", "/health/live", "live"),
        ("get", "/health/ready", "ready"),
        ("get", "/metrics", "metrics"),
        ("get", "/suggestions", "suggestions"),
        ("post", "/answers/{answer_id}/feedback", "feedback"),
        ("get", "/insights", "insights"),
    }
    answered = response.json()["paths"]["/ask"]["post"]["responses"]["200"]["content"]
    assert answered["application/json"]["schema"] == {"$ref": "#/components/schemas/Answer"}
