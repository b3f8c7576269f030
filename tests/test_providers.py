"""Tests of providers other than OpenAI with their own wire formats, and of invalid model names."""

import json
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.chat_models.base import _get_chat_model_creator
from pydantic import SecretStr

from runnables.models.chat_models import open_chat_models
from schemas.answer import AnswerDraft
from schemas.errors import ConfigurationError
from schemas.question import StructuredQuestion
from schemas.settings import read_settings
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Recorded, Reply, ToolCall
from tests.model_server import ModelServer
from tests.provider_servers import AnthropicServer, OllamaServer

pytestmark = pytest.mark.usefixtures("no_backoff")

QUESTION = "发货接口是哪个"
KEY = "sk-never-to-be-seen"


@dataclass(frozen=True)
class Provider:
    """A provider, its server, and the format of its requests."""

    model: str
    server: type[ModelServer]
    asked_schema: Callable[[Any], Any]
    """The JSON schema in the body of a request, or None."""


def anthropic_schema(body: Any) -> Any:
    return body.get("output_config", {}).get("format", {}).get("schema")


def ollama_schema(body: Any) -> Any:
    return body["format"] if isinstance(body.get("format"), dict) else None


PROVIDERS = {
    "anthropic": Provider("anthropic:claude-test", AnthropicServer, anthropic_schema),
    "ollama": Provider("ollama:llama-test", OllamaServer, ollama_schema),
}


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> Provider:
    return PROVIDERS[request.param]


@pytest.fixture
def server(provider: Provider) -> Iterator[ModelServer]:
    with provider.server() as running:
        yield running
    assert not running.faults


def chat(model: str, base_url: str, **overrides: object) -> dict[str, object]:
    """Settings of a chat model."""
    named = {"chat_model": model, "chat_base_url": base_url, "chat_api_key": SecretStr(KEY)}
    return named | overrides


def fields(schema: Any) -> set[str]:
    return set(schema["properties"])


def test_native_structured_output_needs_two_calls(
    serve_samples: MakeClient, provider: Provider, server: ModelServer
) -> None:
    client = serve_samples(**chat(provider.model, server.base_url))
    server.reply(structured(), draft("用“订单发货”接口。[1]"))

    answer = ask(client, QUESTION)

    assert answer["answer"] == ["用“订单发货”接口。[1]"]
    assert answer["answeredBy"] == provider.model
    assert answer["type"] == "api_call"
    assert answer["degraded"] is None
    classify, write = (request.body for request in server.chat_requests)
    assert fields(provider.asked_schema(classify)) == fields(StructuredQuestion.model_json_schema())
    assert fields(provider.asked_schema(write)) == fields(AnswerDraft.model_json_schema())
    assert classify["model"] == provider.model.partition(":")[2]


def test_anthropic_key_is_sent_in_its_header(serve_samples: MakeClient) -> None:
    with AnthropicServer() as server:
        client = serve_samples(**chat("anthropic:claude-test", server.base_url))
        server.reply(structured(type="unknown"))
        ask(client, QUESTION)
    headers = server.chat_requests[0].headers
    assert KEY in (headers.get("x-api-key"), headers.get("authorization", "")[len("Bearer ") :])


def test_refused_output_method_falls_back_and_is_remembered(
    serve_samples: MakeClient, provider: Provider, server: ModelServer
) -> None:
    def classify_or_write(request: Recorded) -> Reply:
        if provider.asked_schema(request.body) or request.body.get("format"):
            return Reply("structured output is not supported", status=400)
        return Reply(
            structured() if is_classification(request) else draft("发货用“订单发货”接口。[1]")
        )

    client = serve_samples(**chat(provider.model, server.base_url))
    server.default = classify_or_write

    answer = ask(client, QUESTION)

    assert answer["answer"] == ["发货用“订单发货”接口。[1]"]
    assert answer["degraded"] is None
    first = len(server.chat_requests)
    ask(client, QUESTION)
    later = server.chat_requests[first:]
    assert len(later) == 2
    assert not any(provider.asked_schema(request.body) for request in later)
    assert b"properties" in later[0].raw  # the prompt contains the schema instead


def in_fences(model: Any) -> str:
    return f"好的，结果如下：\n```json\n{model.model_dump_json(by_alias=True, indent=1)}\n```\n请查收。"


def in_prose(model: Any) -> str:
    return f"<think>用户问{{发货}}。</think>结果是 {model.model_dump_json(by_alias=True)}，供参考。"


@pytest.mark.parametrize("wrap", [in_fences, in_prose])
def test_json_is_found_in_surrounding_text(
    serve_samples: MakeClient,
    provider: Provider,
    server: ModelServer,
    wrap: Callable[[Any], str],
) -> None:
    client = serve_samples(**chat(provider.model, server.base_url))
    server.reply(wrap(structured()), wrap(draft("发货用“订单发货”接口。[1]")))

    answer = ask(client, QUESTION)

    assert answer["answer"] == ["发货用“订单发货”接口。[1]"]
    assert answer["structured"]["apiName"] == "订单发货"
    assert len(server.chat_requests) == 2


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (401, "model_refused", "refuses the key; check APIDESK_CHAT_API_KEY"),
        (404, "model_refused", "does not know this model; check APIDESK_CHAT_MODEL"),
        (529, "model_unavailable", "answers 529"),
    ],
)
def test_refusal_names_the_setting(
    serve_samples: MakeClient,
    provider: Provider,
    server: ModelServer,
    status: int,
    code: str,
    says: str,
) -> None:
    refusing = chat(provider.model, server.base_url, on_model_failure="error")
    server.default = Reply(f"no: {KEY}", status=status)

    problem = problem_of(serve_samples(**refusing))

    assert problem["code"] == code
    assert_one_sentence(problem["detail"], f"APIDESK_CHAT_MODEL={provider.model}: ", says)


def test_unreachable_provider_names_the_setting(
    serve_samples: MakeClient, provider: Provider
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}"
    refusing = chat(provider.model, nobody, on_model_failure="error")

    problem = problem_of(serve_samples(**refusing))

    assert problem["code"] == "model_unavailable"
    says = "cannot be reached; check APIDESK_CHAT_BASE_URL"
    assert_one_sentence(problem["detail"], f"APIDESK_CHAT_MODEL={provider.model}: ", says)


def test_error_within_an_ollama_stream_is_reported(serve_samples: MakeClient) -> None:
    with OllamaServer() as server:
        server.default = Reply(body=b'{"error": "out of memory"}\n')
        settings = chat("ollama:llama-test", server.base_url, on_model_failure="error")
        problem = problem_of(serve_samples(**settings))
    assert problem["code"] == "model_unavailable"
    assert_one_sentence(problem["detail"], "APIDESK_CHAT_MODEL=ollama:llama-test: ", "")


@pytest.mark.parametrize("as_tool", [True, False])
def test_deepseek_uses_the_openai_protocol(
    serve_samples: MakeClient, model_server: ModelServer, as_tool: bool
) -> None:
    def say(model: Any) -> Reply:
        return Reply(tool_calls=[ToolCall("out", model)]) if as_tool else Reply(model)

    client = serve_samples(**chat("deepseek:deepseek-test", model_server.base_url))
    model_server.reply(say(structured()), say(draft("发货用“订单发货”接口。[1]")))

    answer = ask(client, QUESTION)

    assert answer["answer"] == ["发货用“订单发货”接口。[1]"]
    assert answer["answeredBy"] == "deepseek:deepseek-test"
    assert len(model_server.chat_requests) == 2
    assert model_server.chat_requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_parameters_are_accepted_as_json_text(
    serve_samples: MakeClient, provider: Provider, server: ModelServer
) -> None:
    """Anthropic's structured output has no objects with arbitrary keys, so its schema allows text."""
    client = serve_samples(**chat(provider.model, server.base_url))
    text = json.dumps(
        {"type": "api_call", "requestParam": '{"orderId": 7}', "response": '{"code": 1}'}
    )
    server.reply(text, draft("发货用“订单发货”接口。[1]"))

    structured_question = ask(client, QUESTION)["structured"]

    assert structured_question["requestParam"] == {"orderId": 7}
    assert structured_question["response"] == '{"code": 1}'
    assert len(server.chat_requests) == 2


# --- invalid model names -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["anthropic", "deepseek", "ollama"])
def test_missing_package_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, f"langchain_{name}", None)
    _get_chat_model_creator.cache_clear()
    message = refused(chat_model=f"{name}:some-model", chat_api_key=KEY)
    assert message == (
        f"APIDESK_CHAT_MODEL={name}:some-model needs a package: pip install 'apidesk[{name}]'"
    )


@pytest.mark.parametrize(
    "model",
    ["nosuch:some-model", "no-colon", "openai", "gpt-4o-mini", "claude-test", ":", "openai:"],
)
def test_invalid_model_name_is_a_one_line_error(model: str) -> None:
    try:
        open_chat_models(read_settings(chat_model=model, chat_api_key=KEY))
    except ConfigurationError as error:
        assert_one_sentence(str(error), f"APIDESK_CHAT_MODEL={model}: ", "")
    else:
        pytest.fail(f"{model} was taken for a model")


@pytest.mark.parametrize("name", ["openai", "anthropic", "deepseek"])
@pytest.mark.parametrize("role", ["chat", "chat_fallback", "structure"])
def test_missing_key_names_the_setting(name: str, role: str) -> None:
    named = {"chat_model": "openai:first", "chat_api_key": "k"}
    if role == "chat":
        named = {}
    message = refused(**named, **{f"{role}_model": f"{name}:some-model"})
    prefix = f"APIDESK_{role.upper()}"
    assert_one_sentence(message, f"{prefix}_MODEL={name}:some-model: ", f"{prefix}_API_KEY")


def refused(**settings: object) -> str:
    """The error message for the settings."""
    with pytest.raises(ConfigurationError) as raised:
        open_chat_models(read_settings(**settings))
    return str(raised.value)


def problem_of(client: Any) -> dict[str, Any]:
    response = client.post("/ask", json={"question": QUESTION})
    assert response.status_code == 503, response.text
    problem: dict[str, Any] = response.json()
    assert KEY not in json.dumps(problem)
    return problem


def assert_one_sentence(message: str, begins: str, says: str) -> None:
    assert message.startswith(begins)
    assert says in message
    assert "\n" not in message
    assert KEY not in message


def test_server_with_an_address_needs_no_key(
    serve_samples: MakeClient, model_server: ModelServer
) -> None:
    model_server.reply(structured(), draft("用“订单发货”接口。[1]"))
    client = serve_samples(chat_model="openai:local", chat_base_url=model_server.base_url)

    assert ask(client, QUESTION)["degraded"] is None


def test_anthropic_server_with_an_address_needs_no_key(serve_samples: MakeClient) -> None:
    with AnthropicServer() as server:
        client = serve_samples(chat_model="anthropic:local", chat_base_url=server.base_url)
        server.reply(structured(), draft("用“订单发货”接口。[1]"))

        assert ask(client, QUESTION)["degraded"] is None


def test_azure_needs_a_key_even_with_an_address() -> None:
    message = refused(
        chat_model="azure_openai:deployment",
        chat_base_url="https://resource.openai.azure.com",
        model_options={"chat": {"api_version": "2024-10-21"}},
    )
    assert "no key; set APIDESK_CHAT_API_KEY" in message


def test_key_of_the_provider_is_sent_to_an_address(
    serve_samples: MakeClient, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model_server.reply(structured(), draft("用“订单发货”接口。[1]"))
    ask(serve_samples(chat_model="openai:m", chat_base_url=model_server.base_url), QUESTION)
    assert model_server.chat_requests[0].headers["authorization"] == f"Bearer {KEY}"
