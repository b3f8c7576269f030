"""Errors, API keys and rate limits of the OpenAI-compatible API."""

import json
from contextlib import closing
from typing import Any

import openai
import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.security.api_keys import ApiKeyStore
from app.service.answer_service import AnswerService
from tests.live_server import live_server
from tests.model_replies import MakeClient, structured
from tests.model_script import Reply
from tests.model_server import ModelServer
from tests.openai_api.openai_client import QUESTION, complete, open_client, user


@pytest.mark.parametrize(
    ("body", "status", "param", "code", "sentence"),
    [
        ({"model": "gpt-5"}, 404, "model", "model_not_found", "model: gpt-5 does not exist; available: apidesk"),
        ({"model": "apidesk-tools"}, 404, "model", "model_not_found", "model: apidesk-tools does not exist"),
        ({"n": 2}, 400, "n", "invalid_input", "n: Input should be 1"),
        ({"messages": []}, 400, "messages", "invalid_input", "messages: no message has the role user"),
        ({"messages": [user(" ")]}, 400, "messages", "invalid_input", "question: must not be blank"),
        ({"messages": [user("问" * 20_001)]}, 413, "messages", "too_large", "question: 20001 characters"),
        ({"messages": [user([{"type": "image_url", "image_url": {"url": "data:"}}])]}, 400, "messages",
         "invalid_input", "messages: only text is supported, not image_url"),
        ({"messages": [user(7)]}, 400, "messages", "invalid_input", "messages.0.content: Input should be a string or a list"),
        ({"messages": ["hello"]}, 400, "messages", "invalid_input", "messages.0: Input should be a JSON object"),
        ({"messages": [{"role": "foo", "content": "x"}]}, 400, "messages", "invalid_input",
         "messages.0.role: foo is not a role; use one of: developer, system, user, assistant, "),
        ({"messages": [{"role": "foo", "content": "x"}, user(QUESTION)]}, 400, "messages", "invalid_input",
         "messages.0.role: foo is not a role; "),
        ({"messages": "hello"}, 400, "messages", "invalid_input", "messages: "),
        ({"response_format": {"type": "json_object"}}, 400, "response_format", "invalid_input",
         "response_format.type: Input should be 'text'"),
        ({"tool_choice": "required"}, 400, "tool_choice", "invalid_input", "tool_choice: Input should be 'none' or 'auto'"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, 400, "tool_choice", "invalid_input", "tool_choice: "),
        ({"temperature": "hot"}, 400, "temperature", "invalid_input", "temperature: Input should be a valid number"),
        ({"temperature": 3}, 400, "temperature", "invalid_input", "temperature: Input should be less than or equal to 2"),
        ({"max_tokens": -1}, 400, "max_tokens", "invalid_input", "max_tokens: Input should be greater than or equal to 1"),
        ({"logprobs": True}, 400, "logprobs", "invalid_input", "logprobs: not supported"),
        ({"top_logprobs": 99}, 400, "top_logprobs", "invalid_input", "top_logprobs: Input should be less than or equal to 20"),
        ({"presence_penalty": 3}, 400, "presence_penalty", "invalid_input",
         "presence_penalty: Input should be less than or equal to 2"),
        ({"presence_penalty": "hot"}, 400, "presence_penalty", "invalid_input",
         "presence_penalty: Input should be a valid number"),
        ({"frequency_penalty": -5}, 400, "frequency_penalty", "invalid_input",
         "frequency_penalty: Input should be greater than or equal to -2"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_invalid_input_returns_one_sentence(
    client: TestClient[Litestar],
    body: dict[str, Any],
    status: int,
    param: str,
    code: str,
    sentence: str,
    stream: bool,
) -> None:
    request = {"model": "apidesk", "messages": [user(QUESTION)], "stream": stream} | body
    response = client.post("/v1/chat/completions", json=request)
    assert response.status_code == status
    error = response.json()["error"]
    assert (error["param"], error["code"], error["type"]) == (param, code, "invalid_request_error")
    assert error["message"].startswith(sentence)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"model": "gpt-5"}, 404, "model"),
        ({"input": []}, 400, "input"),
        ({"input": " "}, 400, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]}, 400, "input"),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}}, 400, "text"),
        ({"previous_response_id": "resp_1"}, 400, "previous_response_id"),
        ({"background": True}, 400, "background"),
        ({"max_output_tokens": 0}, 400, "max_output_tokens"),
    ],
)  # fmt: skip
def test_invalid_response_request_names_its_parameter(
    client: TestClient[Litestar], body: dict[str, Any], status: int, param: str
) -> None:
    response = client.post("/v1/responses", json={"model": "apidesk", "input": QUESTION} | body)
    assert (response.status_code, response.json()["error"]["param"]) == (status, param)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id: not supported, because responses are not stored"),
        ({"conversation": {"id": "c"}}, "conversation: not supported, because responses are not stored"),
        ({"background": True}, "background: not supported, because responses are not stored"),
        ({"input": 7}, "input: Input should be a string or a list"),
        ({"input": [{"role": "foo", "content": "x"}]},
         "input.0.role: foo is not a role; use one of: developer, system, user, assistant, tool, function"),
    ],
)  # fmt: skip
def test_invalid_response_request_returns_one_sentence(
    client: TestClient[Litestar], body: dict[str, Any], message: str
) -> None:
    response = client.post("/v1/responses", json={"model": "apidesk", "input": QUESTION} | body)
    assert response.json()["error"]["message"] == message


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("body", [b"", b"[]", b"3", b"null", b"{"])
def test_body_that_is_no_object_names_no_parameter(
    client: TestClient[Litestar], path: str, body: bytes
) -> None:
    error = client.post(path, content=body).json()["error"]
    assert error["message"].startswith("body: ")
    assert error["param"] is None


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/embeddings", b"{}", 404),
        ("GET", "/v1/chat/completions", b"", 405),
        ("POST", "/v1/chat/completions", b"{", 400),
        ("POST", "/v1/chat/completions", b"", 400),
    ],
)
def test_errors_under_v1_have_the_openai_format(
    client: TestClient[Litestar], method: str, path: str, body: bytes, status: int
) -> None:
    response = client.request(method, path, content=body)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}


def test_errors_outside_v1_are_problem_details(client: TestClient[Litestar]) -> None:
    for response in (client.get("/v2/models"), client.get("/ask")):
        assert response.headers["content-type"] == "application/problem+json"


def test_api_keys_and_rate_limits_apply(
    sample_service: AnswerService, tmp_path_factory: pytest.TempPathFactory
) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('keys') / 'apidesk.db'}"
    limited = {"database_url": url, "rate_limit": "1/hour"}
    settings = sample_service.settings.model_copy(update=limited)
    with closing(ApiKeyStore.open(settings)) as stored:
        key, other = (stored.add(scope, (scope,), None)[1] for scope in ("ask", "ingest"))
    with live_server(
        AnswerService(settings, sample_service.platform, sample_service.job)
    ) as server:
        for wrong, error in (
            ("wrong", openai.AuthenticationError),
            (other, openai.PermissionDeniedError),
        ):
            with open_client(server, wrong) as client, pytest.raises(error):
                client.models.list()
        with open_client(server, key) as client:
            assert complete(client, user(QUESTION)).choices
            with pytest.raises(openai.RateLimitError) as limit:
                complete(client, user(QUESTION))
    assert int(limit.value.response.headers["retry-after"]) > 0
    assert limit.value.code == "rate_limited"
    assert limit.value.type == "rate_limit_error"


@pytest.mark.parametrize("stream", [False, True])
def test_model_failure_returns_a_server_error(
    model_client: MakeClient, model_server: ModelServer, stream: bool
) -> None:
    model_server.reply(*[Reply("no", status=401)] * 9)
    http = model_client(on_model_failure="error")
    body = {"model": "apidesk", "messages": [user(QUESTION)], "stream": stream}
    response = http.post("/v1/chat/completions", json=body)
    model_server.replies.clear()
    assert response.status_code == 503
    assert "retry-after" not in response.headers  # a wrong key is not retryable
    assert response.json()["error"]["type"] == "server_error"


def test_error_after_the_first_chunk_is_sent_as_an_event(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    model_server.reply(structured(), *[Reply("no", status=400)] * 9)
    http = model_client(on_model_failure="error")
    body = {"model": "apidesk", "messages": [user(QUESTION)], "stream": True}
    lines = http.post("/v1/chat/completions", json=body).text.split("\n")
    model_server.replies.clear()
    data = [line.strip() for line in lines if line.startswith("data: ")]
    error = json.loads(data[-1].removeprefix("data: "))["error"]
    assert (error["type"], error["code"]) == ("server_error", "model_refused")
