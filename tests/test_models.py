"""Chat models: retries, circuit breaker, small windows, language, and what is logged."""

import asyncio
import logging
import re
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from app.main import create_app
from ingestion.text.language import estimate_tokens
from runnables.models.chat_model import FAILURE_THRESHOLD, ModelCircuit
from runnables.models.chat_models import open_chat_models
from runnables.run_context import with_deadline, with_fallback
from schemas.errors import ModelBusy, ModelNotCalled, ModelUnavailable
from schemas.settings import read_settings
from tests.acme import PAGES, PLATFORM, write_pages
from tests.conftest import ServiceFactory
from tests.http_client import http_client
from tests.model_replies import (
    CHAT,
    DOWN,
    KEY,
    MakeClient,
    answer_all,
    ask,
    chat,
    draft,
    is_classification,
    structured,
)
from tests.model_script import Recorded, Reply, ToolCall
from tests.model_server import ModelServer
from tests.openai_objects import events

pytestmark = pytest.mark.usefixtures("no_backoff")

QUESTION = "发货接口是哪个"

NAMES_THE_KEY = f"wrong key {KEY}"

DOCUMENT = re.compile(r'<document number="\d+">\n(.*?)\n</document>', re.DOTALL)


# --- system messages ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (400, "System role not supported"),
        (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
    ],
)
def test_model_without_a_system_role_gets_one_message(
    serve_samples: MakeClient, model_server: ModelServer, status: int, problem: str
) -> None:
    def reply(request: Recorded) -> Any:
        if request.body["messages"][0]["role"] == "system":
            return Reply(problem, status=status)
        return structured() if is_classification(request) else draft("发货用“订单发货”接口。[1]")

    model_server.default = reply
    client = serve_samples(**chat(model_server))
    for _ in range(2):
        answer = ask(client, QUESTION)
        assert answer["answeredBy"] == CHAT
        assert answer["degraded"] is None
    refused, *others = model_server.chat_requests
    assert [message["role"] for message in refused.body["messages"]] == ["system", "user"]
    assert len(others) == 4
    assert all(other.body["messages"][0]["content"].startswith("# ") for other in others)


# --- retries --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [
        Reply(status=429, headers={"retry-after": "0"}),
        Reply(status=500),
        Reply(status=503),
        Reply(status=529),
        Reply(action="reset"),
        Reply(action="close"),
    ],
    ids=["429", "500", "503", "529", "reset", "close"],
)
def test_temporary_failures_are_retried(
    serve_samples: MakeClient, model_server: ModelServer, failure: Reply
) -> None:
    client = serve_samples(**chat(model_server))
    model_server.reply(failure, failure, structured(), failure, draft("发货用“订单发货”接口。[1]"))

    answer = ask(client, QUESTION)

    assert answer["answeredBy"] == CHAT
    assert answer["degraded"] is None
    assert len(model_server.chat_requests) == 5


def test_retry_after_is_honoured(serve_samples: MakeClient, model_server: ModelServer) -> None:
    client = serve_samples(**chat(model_server))
    busy = Reply(status=429, headers={"retry-after": "0.2"})
    model_server.reply(busy, structured(), draft("发货用“订单发货”接口。[1]"))

    ask(client, QUESTION)

    first, again, _ = model_server.chat_requests
    assert 0.2 <= again.at - first.at < 2


def test_no_retry_after_the_deadline(serve_samples: MakeClient, model_server: ModelServer) -> None:
    client = serve_samples(**chat(model_server), request_timeout=10)
    model_server.default = Reply(status=429, headers={"retry-after": "60"})

    started = time.monotonic()
    answer = ask(client, QUESTION)

    assert answer["answeredBy"] == "extractive"
    assert time.monotonic() - started < 5
    assert len(model_server.chat_requests) == 2


@pytest.mark.parametrize(("status", "modes"), [(400, 4), (401, 1), (403, 1), (404, 1)])
def test_refusals_are_not_retried(
    serve_samples: MakeClient, model_server: ModelServer, status: int, modes: int
) -> None:
    client = serve_samples(**chat(model_server), on_model_failure="error")
    model_server.default = Reply("no", status=status)

    response = client.post("/ask", json={"question": QUESTION})

    assert response.json()["code"] == "model_refused"
    assert len(model_server.chat_requests) == modes  # a 400 may be about the output mode


# --- the circuit ----------------------------------------------------------------------------------


def test_circuit_opens_and_closes(
    serve_samples: MakeClient,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("runnables.models.chat_model.RECOVERY_TIMEOUT_S", 1)
    client = serve_samples(**chat(model_server))
    model_server.default = DOWN

    for _ in range(3):  # six replies are needed; the circuit rejects the sixth call
        assert ask(client, QUESTION)["answeredBy"] == "extractive"
    asked = len(model_server.chat_requests)
    assert asked == 5 * 4
    answer_all(model_server)
    answer = ask(client, QUESTION)

    assert answer["degraded"] == "model_unavailable"
    assert "the model is down and is not called for" in caplog.text
    assert len(model_server.chat_requests) == asked

    time.sleep(1.1)
    assert ask(client, QUESTION)["answeredBy"] == CHAT
    assert ask(client, QUESTION)["answeredBy"] == CHAT
    assert len(model_server.chat_requests) == asked + 4


def test_refusals_do_not_open_the_circuit(
    serve_samples: MakeClient, model_server: ModelServer
) -> None:
    client = serve_samples(**chat(model_server))
    model_server.default = Reply(status=401)
    for _ in range(4):
        ask(client, QUESTION)
    assert len(model_server.chat_requests) == 8


def test_calls_without_a_result_do_not_count_as_successes() -> None:
    circuit = ModelCircuit(failure_threshold=2, expected_exception=(ModelUnavailable,))
    neutral = (ModelBusy("busy"), ModelNotCalled("late"), asyncio.CancelledError())
    for error in (ModelUnavailable("down"), *neutral):
        with suppress(type(error)), circuit:
            raise error
    assert circuit.closed
    with suppress(ModelUnavailable), circuit:
        raise ModelUnavailable("down")
    assert circuit.opened


# --- streamed replies and calls that are not made -------------------------------------------------


def test_reply_that_is_streamed_may_take_longer_than_silence(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runnables.models.chat_model.FALLBACK_TIME_SHARE_OF_REPLY", 0.95)
    text = "stream" * 10
    model_server.reply(Reply(text, chunk_delay=0.05))  # takes 0.8 s or more, with 0.5 s of silence
    models = open_chat_models(read_settings(**chat(model_server)))
    assert models is not None
    config = with_fallback(with_deadline({}, 10), True)

    async def on_text(_: str) -> None:
        pass

    reply = asyncio.run(models.answer_models[0].ask([HumanMessage("?")], config, on_text=on_text))
    assert reply.text == text


@pytest.mark.parametrize(
    ("reply", "is_early"),
    [
        (Reply("Ship it with the order."), False),
        (Reply(tool_calls=(ToolCall("now", ""),)), False),
        (Reply("<think>It ships {}"), True),
        (Reply("Let me look.", tool_calls=(ToolCall("search", '{"query": "sh'),)), True),
        (Reply(""), True),
    ],
    ids=["prose", "call without arguments", "thinking", "part of a call", "empty"],
)
def test_stream_without_a_finish_reason_is_early_if_empty_or_cut(
    reply: Reply, is_early: bool, model_server: ModelServer
) -> None:
    def said(request: Recorded) -> Reply:
        sent = [e for e in events(reply, request) if b'"finish_reason": "' not in e]
        return Reply(body=b"".join(sent))

    async def ignore(_text: str) -> None:
        pass

    model_server.default = said
    models = open_chat_models(read_settings(**chat(model_server)))
    assert models is not None
    call = models.answer_models[0].ask([HumanMessage("hi")], {}, on_text=ignore)
    with pytest.raises(ModelUnavailable) if is_early else nullcontext():
        asyncio.run(call)


def test_model_that_was_not_called_has_not_failed(model_server: ModelServer) -> None:
    models = open_chat_models(read_settings(**chat(model_server)))
    assert models is not None
    model = models.answer_models[0]

    async def call() -> None:
        for _ in range(FAILURE_THRESHOLD + 1):
            with pytest.raises(ModelNotCalled):
                await model.ask([HumanMessage("?")], with_deadline({}, 0))

    asyncio.run(call())
    assert not model_server.requests
    assert model.last_error is None
    assert model.circuit == "closed"


# --- the context window ---------------------------------------------------------------------------


def documents(request: Recorded) -> list[str]:
    return DOCUMENT.findall(request.text)


def test_small_window_gets_whole_chunks_best_first(
    serve_samples: MakeClient, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    answer_all(model_server)
    question = "怎么调用订单发货接口，要申请什么权限？" + "请说明。" * 20
    ask(serve_samples(**chat(model_server), chat_context_tokens=32_000), question, k=10)
    everything = documents(model_server.chat_requests[-1])

    window = 4_000
    with caplog.at_level(logging.DEBUG, "runnables.models.context_window"):
        client = serve_samples(**chat(model_server), chat_context_tokens=window)
        answer = ask(client, question, k=10)

    write = model_server.chat_requests[-1]
    fitting = documents(write)
    assert 0 < len(fitting) < len(everything)
    assert fitting == [each for each in everything if each in fitting]  # whole, in order
    assert fitting[0] == everything[0]
    assert question in write.text
    assert '"relatedUrl"' in write.text  # the schema
    assert estimate_tokens(write.text) <= window * 0.75
    assert "chunks that do not fit in" in caplog.text
    assert answer["sources"]


def test_token_count_of_the_provider_narrows_the_window(
    serve_samples: MakeClient, model_server: ModelServer
) -> None:
    def counted_double(request: Recorded) -> Reply:
        said = structured() if is_classification(request) else draft("发货用“订单发货”接口。[1]")
        return Reply(said, usage={"prompt_tokens": 2 * estimate_tokens(request.text)})

    model_server.default = counted_double
    client = serve_samples(**chat(model_server), chat_context_tokens=6_000)
    ask(client, QUESTION, k=10)
    # The first call is the classification, so the first answer already uses the count.
    assert estimate_tokens(model_server.chat_requests[-1].text) * 2 <= 6_000 * 0.75


# --- one step fails, the other works --------------------------------------------------------------


@pytest.mark.parametrize("failure", [Reply("I cannot say."), DOWN, Reply(status=400)])
def test_unclassified_question_is_answered_as_general(
    serve_samples: MakeClient, model_server: ModelServer, failure: Reply
) -> None:
    client = serve_samples(**chat(model_server))
    model_server.route(is_classification, failure)
    answer_all(model_server, "发货用“订单发货”接口。[2]")

    answer = ask(client, QUESTION)

    assert answer["type"] == "general"
    assert answer["answer"] == ["发货用“订单发货”接口。[2]"]
    assert answer["answeredBy"] == CHAT
    assert answer["degraded"] == "question_not_classified"


def test_full_text_retrieves_while_embeddings_fail(
    make_service: ServiceFactory,
    model_server: ModelServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    question = "how many tokens may a workspace create?"
    answer_all(model_server, "A workspace may create 20 tokens. [1]")
    (tmp_path / "guides").mkdir()
    (tmp_path / "platform.toml").write_text(PLATFORM)
    write_pages(tmp_path, **PAGES)
    embedding = chat(model_server, "embedding", "openai:scripted-embedding")
    settings = chat(model_server) | embedding | {"retrieval": "dense"}
    answer_service = make_service(platform=tmp_path / "platform.toml", **settings)
    model_server.embedding_reply = Reply(
        NAMES_THE_KEY, status=503, headers={"x-should-retry": "false"}
    )

    with http_client(create_app(answer_service)) as client:
        answer = ask(client, question)
        found = client.post("/retrieve", json={"question": question})

    assert answer["sources"]
    assert answer["answeredBy"] == CHAT
    assert "searching full text alone" in caplog.text
    assert "APIDESK_EMBEDDING_MODEL" in caplog.text
    assert KEY not in caplog.text
    assert found.status_code == 200, found.text


# --- language -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "language", "expected", "told"),
    [
        ("发货接口是哪个", None, "zh", "用中文作答"),
        ("Which API ships an order?", None, "en", "用英文作答"),
        ("Which API ships an order?", "zh", "zh", "用中文作答"),
        ("发货接口是哪个", "en", "en", "用英文作答"),
    ],
)
def test_prompt_contains_the_language(
    serve_samples: MakeClient,
    model_server: ModelServer,
    question: str,
    language: str | None,
    expected: str,
    told: str,
) -> None:
    answer_all(model_server)
    body = {"language": language} if language else {}

    answer = ask(serve_samples(**chat(model_server)), question, **body)

    assert answer["language"] == expected
    assert told in model_server.chat_requests[-1].text


# --- what stays silent ----------------------------------------------------------------------------


@pytest.mark.parametrize("on_failure", ["extractive", "error"])
@pytest.mark.parametrize(
    "reply",
    [
        Reply(NAMES_THE_KEY, status=401),
        Reply(NAMES_THE_KEY, status=400),
        Reply(NAMES_THE_KEY, status=503, headers={"retry-after": "0"}),
        Reply(f'{{"type": "{KEY}", "answer": 7, "question": "发货 UNMISTAKABLE-4711"}}'),
        Reply(body=f"<html>{KEY} UNMISTAKABLE-4711".encode()),
        None,
    ],
    ids=["401", "400", "503", "invalid", "html", "well"],
)
def test_errors_and_logs_contain_no_key_and_no_question(
    serve_samples: MakeClient,
    model_server: ModelServer,
    caplog: pytest.LogCaptureFixture,
    reply: Reply | None,
    on_failure: str,
) -> None:
    client = serve_samples(**chat(model_server), on_model_failure=on_failure)
    answer_all(model_server)
    model_server.default = reply or model_server.default

    with caplog.at_level(logging.INFO):
        response = client.post("/ask", json={"question": "发货接口 UNMISTAKABLE-4711"})

    assert "UNMISTAKABLE-4711" not in caplog.text
    assert KEY not in caplog.text
    if response.status_code != 200:
        problem: dict[str, Any] = response.json()
        assert "UNMISTAKABLE-4711" not in str(problem)
    assert response.status_code == 200 or on_failure == "error"
    assert response.status_code != 500
    assert KEY not in str(response.json().get("detail")) + str(response.json().get("degraded"))
