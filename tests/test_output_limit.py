"""The limit on the length of replies, and windows that are smaller than assumed."""

from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from runnables.models.context_window import limit_output, lower_output_limit
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer

pytestmark = pytest.mark.acceptance

QUESTION = "怎么调用订单发货接口，要申请什么权限？"
STEP = "用“订单发货”接口。[1]"


def good(request: Recorded) -> Said:
    return structured() if is_classification(request) else draft(STEP)


def test_every_request_has_a_limit(model_client: MakeClient, model_server: ModelServer) -> None:
    model_server.default = good
    ask(model_client(max_reply_tokens=300), QUESTION)
    ask(model_client(chat_context_tokens=4_000), QUESTION)
    limits = [request.body["max_tokens"] for request in model_server.chat_requests]
    assert (set(limits[:2]), set(limits[2:])) == ({300}, {1_000})


def test_limit_of_a_client_is_kept() -> None:
    client = ChatOpenAI(model="m", base_url="http://127.0.0.1:1/v1", api_key="k", max_tokens=200)
    limit_output(client, 1_500, 32_000)
    assert client.extra_body == {"max_tokens": 200}


def test_refused_limit_is_lifted(model_client: MakeClient, model_server: ModelServer) -> None:
    refusal = Reply("Unsupported parameter: 'max_tokens'", status=400)
    model_server.route(lambda request: "max_tokens" in request.body, refusal)
    model_server.default = good

    assert ask(model_client(), QUESTION)["degraded"] is None
    assert len(model_server.chat_requests) == 3  # the first one twice
    assert model_server.chat_requests[-1].body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("text", ["", "<think>The user wants to ship"])
def test_limit_is_lifted_if_it_ends_the_reasoning(
    model_client: MakeClient, model_server: ModelServer, text: str
) -> None:
    cut = Reply(text, finish_reason="length")
    model_server.default = lambda request: cut if "max_tokens" in request.body else good(request)
    assert ask(model_client(), QUESTION)["answer"] == [STEP]


TOO_LONG = [
    "This model's maximum context length is {} tokens. However, you requested 6091 tokens.",
    "the request exceeds the available context size ({} tokens), try increasing it",
    "Requested tokens (6031) exceed context window of {}",
]
"""Messages of OpenAI and llama-cpp-python, llama.cpp, and llama-cpp-python's library."""


@pytest.mark.parametrize("message", TOO_LONG)
def test_window_is_learned_from_a_refusal(
    model_client: MakeClient, model_server: ModelServer, message: str
) -> None:
    window = 4_000

    def reply(request: Recorded) -> Said:
        if len(request.text) > window:  # the samples have about one token per character
            return Reply(message.format(window), status=400)
        return good(request)

    model_server.default = reply
    client = model_client()

    answer = ask(client, QUESTION, k=10)

    assert answer["degraded"] is None
    assert answer["answer"] == [STEP]
    refused = sum(len(request.text) > window for request in model_server.chat_requests)
    assert 1 <= refused <= 2
    assert model_server.chat_requests[-1].body["max_tokens"] == window / 4
    ask(client, QUESTION, k=10)
    assert sum(len(r.text) > window for r in model_server.chat_requests) == refused


def test_limit_is_lowered_for_a_learned_window() -> None:
    clients: list[Any] = [
        ChatOpenAI(model="m", base_url="http://127.0.0.1:1/v1", api_key=SecretStr("k")),
        ChatOpenAI(model="m", api_key=SecretStr("k")),
    ]
    for client in clients:
        limit_output(client, 1_500, 32_000)
        lower_output_limit(client, 4_000)
        lower_output_limit(client, 8_000)
    assert clients[0].extra_body == {"max_tokens": 1_000}
    assert clients[1].max_tokens == 1_000


@pytest.mark.parametrize(("mode", "status"), [("extractive", 200), ("error", 503)])
def test_window_without_room_for_documents_is_a_model_failure(
    model_client: MakeClient,
    model_server: ModelServer,
    caplog: pytest.LogCaptureFixture,
    mode: str,
    status: int,
) -> None:
    model_server.default = good
    client = model_client(chat_context_tokens=1_000, on_model_failure=mode)

    response = client.post("/ask", json={"question": QUESTION})

    assert response.status_code == status
    assert all(is_classification(request) for request in model_server.chat_requests)
    assert "check APIDESK_CHAT_CONTEXT_TOKENS" in caplog.text
    if status == 200:
        answer = response.json()
        assert answer["degraded"] == "model_refused"
        assert answer["answeredBy"] == "extractive"
        assert answer["sources"]


def test_cut_reply_loses_its_last_step(model_client: MakeClient, model_server: ModelServer) -> None:
    whole = draft(STEP, "发货前不要取消订单。[1]").model_dump_json(by_alias=True)
    cut = Reply(whole[: whole.index("要取消")], finish_reason="length")
    model_server.default = lambda request: structured() if is_classification(request) else cut
    client = model_client(cache_answers=True)
    for _ in range(2):
        answer = ask(client, QUESTION)
        assert answer["answer"] == [STEP]
        assert answer["degraded"] == "answer_incomplete"
        assert answer["confidence"] == "medium"
        assert not answer["cached"]
