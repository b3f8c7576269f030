"""The settings in docs/how-to/connect-models.md, and servers that speak OpenAI's protocol with limits."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import split as split_shell
from typing import Any

import pytest
from pydantic import SecretStr

from ingestion.embeddings import ChunkEmbedder, open_embeddings
from runnables.models.chat_models import open_chat_models
from schemas.answer import AnswerDraft
from schemas.errors import ConfigurationError
from schemas.settings import PREFIX, Settings, read_settings
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Recorded, Reply
from tests.model_server import EMBEDDINGS, ModelServer

pytestmark = pytest.mark.usefixtures("no_backoff")

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "connect-models.md"
EXAMPLES = re.findall(r"^## (.+?)$|^```sh\n(.+?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
QUESTION = "发货接口是哪个"
ANSWER = "用“订单发货”接口。[1]"
KEY = "sk-test"


def settings_examples() -> Iterator[Any]:
    """The variables of each block of the page, with its heading as id."""
    heading = ""
    for title, block in EXAMPLES:
        heading = title or heading
        words = [split_shell(line) for line in block.splitlines() if line.startswith("export ")]
        if words:
            variables = dict(word[1].split("=", 1) for word in words)
            yield pytest.param(variables, id=heading)


def settings_of(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings with these variables, each of which must name a setting."""
    fields = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    assert set(variables) <= fields
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return read_settings()


@pytest.mark.acceptance
@pytest.mark.parametrize("variables", list(settings_examples()))
def test_models_of_the_page_can_be_opened(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(variables, monkeypatch)
    models = open_chat_models(settings)
    assert models is not None
    assert models.answer_models[0].name == variables["APIDESK_CHAT_MODEL"]
    assert models.answer_models[0].window >= 8_192
    embeddings = open_embeddings(settings)
    assert (embeddings is not None) == ("APIDESK_EMBEDDING_MODEL" in variables)


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("anthropic:claude-test", "max_tokens"),
        ("ollama:llama", "num_predict"),
        ("openai:gpt", "max_tokens"),
    ],
)
def test_reply_limit_is_passed_to_each_client(model: str, field: str) -> None:
    settings = read_settings(chat_model=model, chat_api_key=SecretStr("key"), max_reply_tokens=200)
    models = open_chat_models(settings)
    assert models
    limits = {"anthropic:claude-test": {200, 4_096, 8_192, 64_000}}.get(model, {200})
    assert getattr(models.answer_models[0].client, field) in limits


def test_every_provider_of_the_page_has_settings() -> None:
    providers = {example.id for example in settings_examples()}
    headings = {title for title, _ in EXAMPLES if title}
    assert headings - providers == {"Other providers"}


def variables_of(provider: str, number: int = 0) -> dict[str, str]:
    """The variables of a block below the heading `provider`."""
    blocks = [example.values[0] for example in settings_examples() if example.id == provider]
    variables: dict[str, str] = blocks[number]
    return variables


# --- servers ------------------------------------------------------------------------------------


class StrictServer(ModelServer):
    """Answers chat requests at `chat_path` and embedding requests at `embedding_path`.

    `refusal` returns why a request is refused, or None.
    """

    def __init__(
        self,
        chat_path: str,
        embedding_path: str,
        refusal: Callable[[Recorded], str | None] = lambda request: None,
    ) -> None:
        super().__init__()
        self._refusal = refusal
        self._endpoints = {
            chat_path: ("POST", self._strict_chat),
            embedding_path: ("POST", self._strict_embeddings),
        }
        self.default = lambda request: structured() if is_classification(request) else draft(ANSWER)

    async def _strict_chat(self, request: Recorded) -> Reply:
        reason = self._refusal(request)
        return Reply(reason, status=400) if reason else await self._chat(request)

    async def _strict_embeddings(self, request: Recorded) -> Reply:
        reason = self._refusal(request)
        return Reply(reason, status=400) if reason else await self._embeddings(request)

    @property
    def address(self) -> str:
        """The address without a path."""
        return self.base_url.removesuffix("/v1")


def at_server(variables: dict[str, str], server: StrictServer) -> dict[str, object]:
    """The settings of the page, with the server in place of the provider's host, and with a key."""
    settings: dict[str, object] = {}
    for variable, value in variables.items():
        name = variable.removeprefix(PREFIX).lower()
        settings[name] = re.sub(r"^https?://[^/]+", server.address, value)
        if name.endswith("api_key"):
            settings[name] = KEY
    return dict(read_settings(**settings).model_dump(include=set(settings)))


def embed(settings: dict[str, object], count: int) -> list[list[float]]:
    """The vectors of `count` texts."""
    opened = read_settings(**settings)
    embeddings = open_embeddings(opened)
    assert embeddings is not None
    return ChunkEmbedder(embeddings, opened).embed_queries([f"text {n}" for n in range(count)])


@contextmanager
def provider(
    name: str,
    serve_samples: MakeClient,
    chat_path: str,
    embedding_path: str = EMBEDDINGS,
    number: int = 0,
    refusal: Callable[[Recorded], str | None] = lambda request: None,
) -> Iterator[StrictServer]:
    """Ask a question and embed texts with the settings of the page; yield the server afterwards."""
    with StrictServer(chat_path, embedding_path, refusal) as server:
        settings = at_server(variables_of(name, number), server)
        chat = {key: value for key, value in settings.items() if not key.startswith("embedding")}
        answer = ask(serve_samples(**chat), QUESTION)
        assert (answer["answer"], answer["degraded"]) == ([ANSWER], None)
        if "embedding_model" in settings:
            assert len(embed(settings, 25)) == 25
        yield server
        assert not server.faults


def test_azure_v1(serve_samples: MakeClient) -> None:
    paths = ("/openai/v1/chat/completions", "/openai/v1/embeddings")
    with provider("Azure OpenAI", serve_samples, *paths) as server:
        assert {request.path for request in server.requests} == set(paths)
        assert {request.headers["authorization"] for request in server.requests} == {
            f"Bearer {KEY}"
        }
        assert server.requests[0].body["model"] == "my-deployment"


def test_azure_deployments(serve_samples: MakeClient) -> None:
    deployments = "/openai/deployments"
    paths = (
        f"{deployments}/my-deployment/chat/completions",
        f"{deployments}/my-embedding-deployment/embeddings",
    )
    with provider("Azure OpenAI", serve_samples, *paths, number=1) as server:
        assert {request.path for request in server.requests} == set(paths)
        assert {request.query for request in server.requests} == {"api-version=2024-10-21"}
        assert {request.headers["api-key"] for request in server.requests} == {KEY}


def test_azure_without_api_version_names_the_setting() -> None:
    settings = read_settings(
        chat_model="azure_openai:my-deployment", chat_base_url="https://a.example", chat_api_key="k"
    )
    with pytest.raises(ConfigurationError, match="no api_version; set APIDESK_MODEL_OPTIONS"):
        open_chat_models(settings)


def dashscope_refusal(request: Recorded) -> str | None:
    """The limits of DashScope's compatible mode."""
    body = request.body
    if request.path.endswith("embeddings"):
        if not all(isinstance(text, str) for text in body["input"]):
            return "input must be a string or a list of strings"
        return (
            "batch size is invalid, it should not be larger than 10"
            if len(body["input"]) > 10
            else None
        )
    if not body.get("stream") and body.get("enable_thinking") is not False:
        return "parameter.enable_thinking must be set to false for non-streaming calls"
    format_type = body.get("response_format", {}).get("type")
    if format_type == "json_schema":
        return "'response_format.type' json_schema is not supported"
    if format_type == "json_object" and "json" not in request.text.lower():
        return "'messages' must contain the word 'json' in some form"
    return None


def test_dashscope(serve_samples: MakeClient) -> None:
    base = "/compatible-mode/v1"
    paths = (f"{base}/chat/completions", f"{base}/embeddings")
    with provider("Qwen (DashScope)", serve_samples, *paths, refusal=dashscope_refusal) as server:
        chats = [request.body for request in server.requests if request.path == paths[0]]
        assert {body["enable_thinking"] for body in chats} == {False}
        assert chats[-1]["response_format"]["type"] == "json_object"


def test_vllm(serve_samples: MakeClient) -> None:
    with provider("vLLM", serve_samples, "/v1/chat/completions") as server:
        chats = server.chat_requests
        assert len(chats) == 2
        for request in chats:
            assert request.body["chat_template_kwargs"] == {"enable_thinking": False}
            assert request.body["response_format"]["type"] == "json_schema"
            assert request.body["model"] == "Qwen/Qwen3-8B"
        (schema,) = [chats[1].body["response_format"]["json_schema"]["schema"]]
        assert set(schema["properties"]) == set(AnswerDraft.model_json_schema()["properties"])
        assert all(isinstance(text, str) for text in server.embedding_requests[0].body["input"])


def test_llama_cpp(serve_samples: MakeClient) -> None:
    with provider("llama.cpp", serve_samples, "/v1/chat/completions") as server:
        assert {request.body["model"] for request in server.chat_requests} == {"local"}


def test_refused_temperature_is_left_out(serve_samples: MakeClient) -> None:
    def refusal(request: Recorded) -> str | None:
        if "temperature" in request.body:
            return "Unsupported value: 'temperature' does not support 0 with this model."
        return None

    with provider("llama.cpp", serve_samples, "/v1/chat/completions", refusal=refusal) as server:
        assert ["temperature" in request.body for request in server.chat_requests] == [
            True,
            False,
            False,
        ]


@pytest.mark.parametrize(
    ("value", "said"),
    [("{", "APIDESK_MODEL_OPTIONS: "), ('{"chats": {}}', "APIDESK_MODEL_OPTIONS.CHATS")],
)
def test_invalid_options_name_the_setting(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APIDESK_MODEL_OPTIONS", value)
    with pytest.raises(ConfigurationError, match=said):
        read_settings()
