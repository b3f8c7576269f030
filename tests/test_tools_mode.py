"""Mode `tools` over HTTP: the same validated answer, with its tool calls."""

from dataclasses import replace
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from schemas.answer import Answer
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded, Reply, ToolCall
from tests.model_server import ModelServer
from tests.openai_objects import completion, encoded

QUESTION = "发货接口怎么签名"


def is_looking_up(request: Recorded) -> bool:
    """Whether the agent made the request: it offers tools."""
    return "tools" in request.body


def calling(*calls: ToolCall) -> Any:
    """Script a model that makes `calls` in its first round and none afterwards."""
    rounds: list[Recorded] = []

    def said(request: Recorded) -> Said:
        if is_looking_up(request):
            rounds.append(request)
            return Reply(tool_calls=calls) if len(rounds) == 1 else Reply("enough")
        return (
            structured()
            if is_classification(request)
            else draft("签名错误时逐行比较待签名字符串。[1]")
        )

    return said


def test_answer_lists_its_rounds(model_client: MakeClient, model_server: ModelServer) -> None:
    calls = (
        ToolCall("search", {"query": "签名算法：待签名字符串怎么拼"}),
        ToolCall("outline", {"name": "快递面单v2接口"}),
    )
    model_server.default = calling(*calls)
    answer = Answer.model_validate(ask(model_client(), QUESTION, mode="tools"))

    assert answer.degraded is None
    assert [(each.tool, each.arguments) for each in answer.rounds] == [
        ("search", {"query": "签名算法：待签名字符串怎么拼"}),
        ("outline", {"name": "快递面单v2接口"}),
    ]
    assert all(each.results and each.error is None for each in answer.rounds)
    assert "签名" in answer.sources[0].title  # chunks of tools come before retrieved ones
    assert answer.answer == ["签名错误时逐行比较待签名字符串。[1]"]


def test_replies_need_no_finish_reason(model_client: MakeClient, model_server: ModelServer) -> None:
    scripted = calling(ToolCall("search", {"query": QUESTION}))

    def said(request: Recorded) -> Said:
        reply: Said = scripted(request)
        if not isinstance(reply, Reply):
            return reply
        whole = completion(reply, request)
        whole["choices"][0]["finish_reason"] = None
        return replace(reply, body=encoded(whole))

    model_server.default = said
    answer = Answer.model_validate(ask(model_client(), QUESTION, mode="tools"))
    assert answer.degraded is None
    assert [each.tool for each in answer.rounds] == ["search"]


def test_outline_matches_names_fuzzily(model_client: MakeClient, model_server: ModelServer) -> None:
    model_server.default = calling(ToolCall("outline", {"name": "express shet v2"}))
    ask(model_client(), QUESTION, mode="tools")
    second = [request for request in model_server.chat_requests if is_looking_up(request)][1]
    assert "Express Sheet" in second.text or "电子面单" in second.text


def test_model_without_tools_is_reported_as_degraded(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    def said(request: Recorded) -> Said:
        if is_looking_up(request):
            return Reply("tools are not supported by this model", status=400)
        return structured() if is_classification(request) else draft("订单发货用它。[1]")

    model_server.default = said
    answer = Answer.model_validate(ask(model_client(), QUESTION, mode="tools"))
    assert answer.answered_by == "openai:scripted-chat"
    assert answer.rounds == []
    assert answer.degraded == "tools_unsupported"


def test_documents_are_quoted_without_a_model(client: TestClient[Litestar]) -> None:
    answer = Answer.model_validate(ask(client, "发货接口是哪个", mode="tools"))
    assert answer.sources
    assert answer.degraded == "tools_unavailable"


@pytest.mark.parametrize("mode", ["agent", "", 7])
def test_unknown_mode_is_rejected(client: TestClient[Litestar], mode: object) -> None:
    response = client.post("/ask", json={"question": QUESTION, "mode": mode})
    assert response.status_code == 400
    assert response.json()["detail"].startswith("mode: ")
