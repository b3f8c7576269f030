"""A wrong key, name or address of a model leads to one sentence that names the setting."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from app.cli.main import main
from tests.model_replies import MakeClient
from tests.model_script import Recorded, Reply, Text
from tests.model_server import ModelServer

WRONG = [
    pytest.param(Reply(status=401, text="bad key"), "check APIDESK_CHAT_API_KEY", id="wrong key"),
    pytest.param(
        Reply(status=404, text="no such model"), "check APIDESK_CHAT_MODEL", id="wrong name"
    ),
]


@pytest.mark.parametrize(("reply", "sentence"), WRONG)
def test_readiness_names_the_wrong_setting(
    model_client: MakeClient, model_server: ModelServer, reply: Reply, sentence: str
) -> None:
    model_server.default = reply
    ready = model_client().get("/health/ready")
    assert ready.status_code == 200
    assert ready.json()["status"] == "degraded"
    assert sentence in ready.json()["checks"]["model:chat"]["detail"]


def test_readiness_names_the_setting_of_the_window(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    model_server.default = Reply("maximum context length is 500 tokens", status=400)
    fallback = {"chat_fallback_model": "openai:m", "chat_fallback_base_url": model_server.base_url}
    checks = model_client(**fallback).get("/health/ready").json()["checks"]
    for name in ("model:chat", "model:chat_fallback"):
        assert checks[name]["detail"].endswith("check APIDESK_CHAT_CONTEXT_TOKENS")


def test_provider_message_is_not_shown_to_callers(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    """A provider may quote the prompt, and with it the question of another caller."""
    model_server.default = Reply(status=400, text="flagged: call me on 138 0013 8000")
    client = model_client(on_model_failure="error")
    problem = client.post("/ask", json={"question": "发货接口是哪个"}).json()
    detail = client.get("/health/ready").json()["checks"]["model:chat"]["detail"]
    for text in (problem["detail"], detail):
        assert text.endswith("the provider answers 400; check APIDESK_CHAT_MODEL")


def test_model_failure_without_fallback_is_not_ready(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    model_server.default = Reply(status=401, text="bad key")
    ready = model_client(on_model_failure="error").get("/health/ready")
    assert ready.status_code == 503
    assert ready.json()["status"] == "failed"


def test_failed_model_with_a_working_fallback_is_degraded(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    model_server.route(lambda request: (request.body or {}).get("model") == "right", {"ok": True})
    model_server.default = Reply(status=401, text="bad key")
    client = model_client(
        on_model_failure="error",
        chat_fallback_model="openai:right",
        chat_fallback_base_url=model_server.base_url,
        chat_fallback_api_key=SecretStr("test-key"),
    )
    ready = client.get("/health/ready")
    assert ready.status_code == 200
    states = {name: check["status"] for name, check in ready.json()["checks"].items()}
    assert (states["model:chat"], states["model:chat_fallback"]) == ("degraded", "ok")


def test_working_model_is_probed_once(model_client: MakeClient, model_server: ModelServer) -> None:
    model_server.default = {"ok": True}
    client = model_client()
    for _ in range(3):
        ready = client.get("/health/ready")
        assert ready.json()["status"] == "ok"
    assert len(model_server.chat_requests) == 1


def test_slow_model_does_not_delay_readiness(
    model_client: MakeClient, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.api.health.CHECK_TIMEOUT_S", 0.05)
    model_server.default = Reply('{"ok": true}', delay=5.0)
    client = model_client()
    for _ in range(2):
        check = client.get("/health/ready").json()["checks"]["model:chat"]
        assert check["status"] == "degraded"
        assert "has not replied to the first call yet" in check["detail"]
    assert len(model_server.chat_requests) == 1


def test_check_warns_of_unknown_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("APIDESK_RATELIMIT=1/minute\nRATELIMIT=x\n")
    monkeypatch.setenv("APIDESK_TOPK", "3")
    monkeypatch.setenv("APIDESK_TOP_K", "3")
    monkeypatch.setenv("APIDESK_XYZ", "3")
    done = CliRunner().invoke(main, ["check"])
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [
        "apidesk: APIDESK_RATELIMIT is not a setting: did you mean APIDESK_RATE_LIMIT?",
        "apidesk: APIDESK_TOPK is not a setting: did you mean APIDESK_TOP_K?",
        "apidesk: APIDESK_XYZ is not a setting",
    ]


@pytest.mark.parametrize(("reply", "sentence"), WRONG)
def test_check_prints_a_row_per_model(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, reply: Reply, sentence: str
) -> None:
    model_server.route(lambda request: (request.body or {}).get("model") == "wrong", reply)
    model_server.default = {"ok": True}
    for name, value in {
        "COLUMNS": "200",
        "APIDESK_CHAT_MODEL": "openai:wrong",
        "APIDESK_CHAT_BASE_URL": model_server.base_url,
        "APIDESK_CHAT_API_KEY": "sk-very-secret",
        "APIDESK_CHAT_FALLBACK_MODEL": "openai:right",
        "APIDESK_CHAT_FALLBACK_BASE_URL": model_server.base_url,
        "APIDESK_CHAT_FALLBACK_API_KEY": "sk-very-secret",
        "APIDESK_EMBEDDING_MODEL": "openai:scripted-embedding",
        "APIDESK_EMBEDDING_BASE_URL": model_server.base_url,
        "APIDESK_EMBEDDING_API_KEY": "sk-very-secret",
    }.items():
        monkeypatch.setenv(name, value)

    done = CliRunner().invoke(main, ["check"])

    assert done.exit_code == 1
    chat, fallback, embedding = done.output.splitlines()[1:]
    assert sentence in chat
    assert fallback.split()[-1] == embedding.split()[-1] == "ok"
    assert "secret" not in done.output


@pytest.mark.parametrize("status", [400, 500])
def test_check_prints_the_provider_message(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    model_server.default = Reply(status=status, text="out of memory")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("APIDESK_CHAT_MODEL", "openai:local")
    monkeypatch.setenv("APIDESK_CHAT_BASE_URL", model_server.base_url)

    done = CliRunner().invoke(main, ["check"])

    assert done.exit_code == 1
    assert f"the provider answers {status}" in done.output
    assert "(out of memory)" in done.output


@pytest.mark.parametrize(
    ("reply", "result"),
    [({"ok": True}, "json_object  ok"), ("pong", "answered, but not in JSON as requested")],
)
def test_check_shows_how_a_model_returns_json(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, reply: Text, result: str
) -> None:
    def answer(request: Recorded) -> Reply:
        form = request.body["response_format"]["type"]
        return Reply(status=500) if form == "json_schema" else Reply(reply)

    model_server.default = answer
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("APIDESK_CHAT_MODEL", "openai:local")
    monkeypatch.setenv("APIDESK_CHAT_BASE_URL", model_server.base_url)

    done = CliRunner().invoke(main, ["check"])

    assert result in done.output
    assert done.exit_code == (0 if result.endswith("ok") else 1)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("gpt-4o-mini", "must have the form provider:model"),
        ("nobody:gpt", "no provider is called nobody"),
        ("openai:gpt", "no key; set APIDESK_CHAT_API_KEY"),
    ],
)
def test_unusable_model_name_is_a_one_line_error(model: str, sentence: str) -> None:
    done = CliRunner().invoke(main, ["ask", "怎么发货", "--model", model])
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
