"""The limit on the length of replies, and windows that are smaller than assumed."""

import pytest

from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer

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
    ask(client, QUESTION, k=10)
    assert sum(len(r.text) > window for r in model_server.chat_requests) == refused
