"""The API conforms to its OpenAPI document. A short schemathesis run; `make fuzz` runs it in full."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from litestar import Litestar
from litestar.testing import TestClient
from pydantic import SecretStr
from schemathesis.cli import schemathesis

from app.api.fields import NOT_BLANK_PATTERN, SESSION_SCHEMA
from app.main import create_app
from app.service.answer_service import AnswerService
from schemas.answer import Answer
from tests.acme import PLATFORM
from tests.conftest import ServiceFactory
from tests.http_client import http_client
from tests.live_server import live_server

Json = dict[str, Any]
Http = TestClient[Litestar]

KEY = "k" * 40

PAGE = "# Queues\n\n## Capacity\n\nA queue holds at most 10007 messages. Older ones are dropped.\n"

PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


@pytest.fixture(scope="module")
def answer_service(
    make_service: ServiceFactory, tmp_path_factory: pytest.TempPathFactory
) -> AnswerService:
    """An answer service with a key and a document of its own."""
    folder = tmp_path_factory.mktemp("acme")
    (folder / "guides").mkdir()
    (folder / "guides" / "queues.md").write_text(PAGE)
    (folder / "platform.toml").write_text(PLATFORM)
    own = {"platform": folder / "platform.toml", "admin_key": SecretStr(KEY)}
    return make_service(**own, cache_answers=True)


@pytest.fixture(scope="module")
def http(answer_service: AnswerService) -> Iterator[Http]:
    with http_client(create_app(answer_service)) as client:
        client.headers["X-API-Key"] = KEY
        yield client


@pytest.fixture(scope="module")
def document(http: Http) -> Json:
    described: Json = http.get("/schema").json()
    return described


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield method, path and operation object."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


@pytest.mark.acceptance
def test_schemathesis_finds_no_violations(answer_service: AnswerService, tmp_path: Path) -> None:
    report_path = tmp_path / "report.json"
    with live_server(answer_service) as url:
        arguments = [
            "run", f"{url}/schema/openapi.json", "--checks", "all", "--max-examples", "3",
            "--header", f"Authorization: Bearer {KEY}", "--generation-deterministic",
            "--no-color",
            "--report", "json", "--report-json-path", str(report_path),
        ]  # fmt: skip
        result = CliRunner().invoke(schemathesis, arguments)
    assert result.exit_code == 0, result.output
    report = json.loads(report_path.read_bytes())
    assert report["operations"]["tested"] == report["operations"]["total"] > 10
    assert {phase["status"] for phase in report["phases"].values()} == {"success"}


def test_every_request_example_succeeds(http: Http, document: Json) -> None:
    answered = http.post("/ask", json={"question": "how many messages does a queue hold?"}).json()
    tried = set()
    for method, path, operation in operations(document):
        if "requestBody" not in operation:
            continue
        reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        examples = document["components"]["schemas"][reference.rpartition("/")[2]]["examples"]
        for example in examples:
            response = http.request(method, path.format(answer_id=answered["id"]), json=example)
            assert str(response.status_code) in operation["responses"]
            assert response.is_success, response.text
        tried.add(path)
    assert tried == {"/ask", "/answers/{answer_id}/feedback", "/retrieve", "/ingestions"}


def test_answer_example_matches_the_sample_platform(client: Http, document: Json) -> None:
    content = document["paths"]["/ask"]["post"]["responses"]["200"]["content"]
    example = Answer.model_validate(content["application/json"]["examples"]["answer"]["value"])
    asked = document["components"]["schemas"]["AskRequest"]["examples"][0]
    answer = Answer.model_validate(client.post("/ask", json=asked | {"k": 1}).json())
    own: dict[str, Any] = {"id": True, "timings": True, "sources": {0: {"score", "text"}}}
    assert answer.model_dump(exclude=own) == example.model_dump(exclude=own)
    assert answer.sources[0].text.startswith(example.sources[0].text.rstrip("…"))


def test_every_operation_and_component_is_described(document: Json) -> None:
    tags = {tag["name"] for tag in document["tags"]}
    for _, _, operation in operations(document):
        assert operation["summary"]
        assert operation["description"]
        assert set(operation["tags"]) <= tags
        for response in operation["responses"].values():
            assert response["description"]
    for component in document["components"]["schemas"].values():
        assert component["description"]
    references = re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document))
    assert set(references) == document["components"]["schemas"].keys()


def test_error_responses_are_problem_details(document: Json) -> None:
    for _, path, operation in operations(document):
        for status, response in operation["responses"].items():
            if status >= "400" and (path, status) != ("/health/ready", "503"):
                assert response["content"] == PROBLEM


STATUSES = {
    "/ask": "200 400 401 403 408 409 413 429 500 502 503 504",
    "/answers/{answer_id}/feedback": "204 400 401 403 404 408 413 429 500 503",
    "/sessions/{session}": "204 400 401 403 404 429 500 503",
    "/retrieve": "200 400 401 403 408 409 413 429 500 503",
    "/ingestions": "202 400 401 403 408 409 413 429 500 503",
    "/ingestions/{run_id}": "200 400 401 403 404 429 500 503",
    "/health/live": "200 403 500",
    "/health/ready": "200 403 500 503",
    "/insights": "200 400 401 403 429 500 503",
    "/metrics": "200 401 403 429 500",
    "/suggestions": "200 400 401 403 409 429 500 503",
}


@pytest.mark.parametrize("path", STATUSES)
def test_route_documents_its_status_codes(document: Json, path: str) -> None:
    *_, operation = document["paths"][path].values()
    assert " ".join(operation["responses"]) == STATUSES[path]


def test_question_constraints_are_documented(document: Json) -> None:
    asked = document["components"]["schemas"]["AskRequest"]
    assert asked["additionalProperties"] is False
    assert asked["properties"]["question"]["pattern"] == NOT_BLANK_PATTERN
    assert asked["properties"]["k"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 50}
    assert asked["properties"]["session"]["anyOf"][0] == {"type": "string", **SESSION_SCHEMA}
    (session,) = document["paths"]["/sessions/{session}"]["delete"]["parameters"]
    assert session["schema"].items() >= SESSION_SCHEMA.items()


def test_not_blank_pattern_matches_python_whitespace() -> None:
    characters = "".join(map(chr, range(sys.maxunicode + 1)))
    assert re.sub(NOT_BLANK_PATTERN, "", characters) == "".join(filter(str.isspace, characters))


ODD: list[tuple[str, str, Json | None, int]] = [
    ("POST", "/retrieve", {"question": "a", "k": 5.0}, 200),
    ("POST", "/retrieve", {"question": "a", "k": 5.5}, 400),
    ("POST", "/retrieve", {"question": "a", "k": 1e300}, 400),
    ("POST", "/retrieve", {"question": "a", "filters": {"source": "\0\x15\b\f\r\n\t\"'\\u0041"}}, 200),
    ("POST", "/retrieve", {"question": "a", "filters": {"metadata": {"\x7f\\": "\x00\U0010ffff"}}}, 200),
    ("POST", "/retrieve", {"question": "a", "filters": {"metadata": {"a": 1}}}, 400),
    ("POST", "/ingestions", {"dryRun": 0}, 400),
    ("POST", "/ingestions", {"dryRun": "yes"}, 400),
    ("POST", "/ingestions", {"dry": True}, 400),
    ("POST", "/answers/00000000-0000-7000-8000-000000000000/feedback", {"score": True}, 400),
    ("POST", "/answers/00000000-0000-7000-8000-000000000000/feedback", {"score": 1.0}, 404),
    ("POST", "/answers/%00/feedback", {"score": 1}, 404),
    ("GET", "/ingestions/%00", None, 404),
    ("DELETE", "/sessions/%00", None, 400),
    ("DELETE", "/sessions/a%0A", None, 400),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status"), ODD)
def test_input_found_by_fuzzing_returns_the_documented_status(
    http: Http, method: str, path: str, body: Json | None, status: int
) -> None:
    response = http.request(method, path, json=body)
    assert response.status_code == status, response.text


def test_options_lists_every_method(http: Http) -> None:
    assert http.options("/ingestions").headers["allow"] == "GET, OPTIONS, POST"
    assert http.options("/ask").headers["allow"] == "OPTIONS, POST"


def test_cache_control_no_cache_bypasses_the_cache(http: Http, document: Json) -> None:
    (header,) = document["paths"]["/ask"]["post"]["parameters"]
    assert (header["name"], header["in"]) == ("Cache-Control", "header")
    asked = {"question": "how many messages may a queue hold?"}
    for value, cached in [
        ("", False),
        ("", True),
        ("max-age=0, No-Cache", False),
        ("no-store", True),
    ]:
        response = http.post("/ask", json=asked, headers={"Cache-Control": value})
        assert response.json()["cached"] is cached
