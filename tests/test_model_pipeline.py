"""The pipeline with models, over HTTP against a scripted server on loopback."""

import json

import pytest

from app.main import create_app
from app.service.answer_service import AnswerService
from ingestion.route_calibration import SAMPLE_CHUNKS
from ingestion.store.manifest import RouteCalibration
from tests.conftest import ServiceFactory
from tests.http_client import http_client
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer

SHIP_PAGE = "https://open.example.com/#/api?apiId=1110"
INVENTED_PAGE = "https://open.example.com/#/api?apiId=9999"


def test_answer_takes_two_calls_and_refusal_one(
    model_client: MakeClient, model_server: ModelServer, sample_service: AnswerService
) -> None:
    client = model_client()
    model_server.reply(structured(), draft("用“订单发货”接口。[1]", related=(SHIP_PAGE,)))

    answer = ask(client, "发货接口是哪个")

    assert len(model_server.chat_requests) == 2
    classify, write = model_server.chat_requests
    assert is_classification(classify)
    assert "发货接口是哪个" in classify.text
    assert "订单发货" in write.text
    assert answer["type"] == "api_call"
    assert answer["answer"] == ["用“订单发货”接口。[1]"]
    assert answer["relatedUrl"] == [SHIP_PAGE]
    assert answer["answeredBy"] == "openai:scripted-chat"
    assert {"structured-question", "retrieve", "answer", "total"} <= answer["timings"].keys()

    model_server.reply(structured(type="unknown", api_name=None))
    refused = ask(client, "今天天气怎么样")

    assert len(model_server.chat_requests) == 3
    assert refused["type"] == "unknown"
    platform_info = sample_service.platform.platform
    assert refused["answer"] == [platform_info.refusal.in_language("zh")]
    assert refused["sources"] == refused["relatedUrl"] == []


def test_prompt_prefix_is_the_same_for_every_question(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    client = model_client()
    for question in ("发货接口是哪个", "how do I refund an order?"):
        model_server.reply(structured(), draft("用“订单发货”接口。[1]"))
        ask(client, question)
    classify, write, classify_another, write_another = model_server.chat_requests
    for one, another, until in (
        (classify, classify_another, "<question>"),
        (write, write_another, "`written`"),
    ):
        assert one.text.partition(until)[0] == another.text.partition(until)[0]
        assert json.dumps(one.body["response_format"]) == json.dumps(
            another.body["response_format"]
        )


@pytest.mark.acceptance
def test_questions_share_connections(model_client: MakeClient, model_server: ModelServer) -> None:
    client = model_client(cache_answers=True)
    for number, accept in enumerate(["application/json", "text/event-stream"] * 3):
        model_server.reply(structured(), draft("用“订单发货”接口。[1]"))
        question = {"question": f"发货接口 {number} 是哪个"}
        assert client.post("/ask", json=question, headers={"Accept": accept}).is_success
    assert len(model_server.chat_requests) == 12
    assert model_server.connections == 1


@pytest.mark.acceptance
def test_configured_embeddings_are_called(
    make_service: ServiceFactory, model_server: ModelServer
) -> None:
    answer_service = make_service(
        chat_model="openai:scripted-chat",
        chat_base_url=model_server.base_url,
        chat_api_key="test-key",
        embedding_model="openai:scripted-embedding",
        embedding_base_url=model_server.base_url,
        embedding_api_key="test-key",
    )
    embedded = sum(len(r.body["input"]) for r in model_server.embedding_requests if r.body)
    rows = answer_service.collection.manifest.rows
    assert (
        rows < embedded < rows + 1.5 * SAMPLE_CHUNKS
    )  # each chunk, and the sentences for the calibration
    answer_service.collection.save_calibration(
        RouteCalibration(full_text=0.9, dense=0.9, rows=rows)
    )
    before, connections = len(model_server.embedding_requests), model_server.connections

    with http_client(create_app(answer_service)) as client:
        for question in ("发货接口是哪个", "发货接口要什么参数"):
            found = structured(search_terms=["ship an order"])
            model_server.reply(found, draft("发货用“订单发货”接口。[1]"))
            answer = ask(client, question)

    # Each question once, though it is searched for again with the terms, and these not at all.
    assert len(model_server.embedding_requests) == before + 2
    assert answer["sources"]
    assert model_server.connections == connections + 2, "one for each kind of model"


UNCOVERED = "青桥开放平台的文档似乎没有涉及这个问题。"


@pytest.mark.parametrize(
    ("steps", "related", "expected_steps", "expected_numbers", "has_links"),
    [
        pytest.param(["好。[1]"], [SHIP_PAGE], ["好。[1]"], [1], True, id="cited"),
        pytest.param(
            ["好。[1]", "订单发货。[99]"],
            [SHIP_PAGE],
            ["好。[1]", "订单发货。"],
            [1],
            True,
            id="unknown citation goes",
        ),
        pytest.param(["好。[1]"], [INVENTED_PAGE], ["好。[1]"], [1], True, id="invented link goes"),
        pytest.param(
            ["订单发货用它。【3】", "提交发货[1,3]"],
            [],
            ["订单发货用它。[3]", "提交发货[1][3]"],
            [1, 3],
            True,
            id="resolved",
        ),
        pytest.param(
            ["好。[1]", "取 `a[0]` 与 `b[1]`"],
            [],
            ["好。[1]", "取 `a[0]` 与 `b[1]`"],
            [1],
            True,
            id="code",
        ),
        pytest.param(["文档没有写到。"], [SHIP_PAGE], [UNCOVERED], [], False, id="not covered"),
    ],
)
def test_grounding_removes_unknown_citations_and_links(
    model_client: MakeClient,
    model_server: ModelServer,
    steps: list[str],
    related: list[str],
    expected_steps: list[str],
    expected_numbers: list[int],
    has_links: bool,
) -> None:
    client = model_client()
    model_server.reply(structured(), draft(*steps, related=tuple(related)))

    answer = ask(client, "发货接口是哪个")

    assert answer["answer"] == expected_steps
    assert [source["number"] for source in answer["sources"]] == expected_numbers
    assert bool(answer["relatedUrl"]) is has_links
    assert INVENTED_PAGE not in answer["relatedUrl"]


FAILURES = [
    pytest.param(
        Reply(status=401, text="bad key"), 503, "model_refused", "_API_KEY", id="wrong key"
    ),
    pytest.param(
        Reply(status=404, text="no such"), 503, "model_refused", "_MODEL", id="wrong model"
    ),
    pytest.param(Reply(text=""), 502, "model_output_invalid", "_MODEL", id="nothing"),
    pytest.param(Reply(action="stall"), 504, "model_timeout", "_MODEL", id="silent"),
]


@pytest.mark.parametrize(("reply", "status", "code", "setting"), FAILURES)
def test_model_failure_is_a_documented_problem(
    model_client: MakeClient,
    model_server: ModelServer,
    reply: Reply,
    status: int,
    code: str,
    setting: str,
) -> None:
    client = model_client(request_timeout=2, on_model_failure="error")
    model_server.default = reply

    response = client.post("/ask", json={"question": "发货接口是哪个"})

    assert response.status_code == status
    problem = response.json()
    assert problem["code"] == code
    assert f"APIDESK_CHAT{setting}" in problem["detail"]
    assert "test-key" not in response.text
    assert "retry-after" not in response.headers  # a wrong key is not retryable


@pytest.mark.parametrize(("reply", "status", "code", "setting"), FAILURES)
def test_model_failure_falls_back_to_quotes(
    model_client: MakeClient,
    model_server: ModelServer,
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
    status: int,
    code: str,
    setting: str,
) -> None:
    client = model_client(request_timeout=3)
    model_server.default = reply

    answer = ask(client, "发货接口是哪个")

    assert answer["degraded"] == code
    assert f"APIDESK_CHAT{setting}" in caplog.text
    assert answer["answeredBy"] == "extractive"
    assert answer["relatedUrl"][0] == SHIP_PAGE
    assert answer["confidence"] != "high"
    off_topic = ask(client, "今天天气怎么样")
    assert off_topic["sources"] == off_topic["relatedUrl"] == []
    assert off_topic["confidence"] == "low"


def test_answer_is_in_the_requested_language(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    client = model_client()
    model_server.reply(structured(), draft("Use it. [1]"))

    answer = ask(client, "发货接口是哪个", language="en")

    assert answer["language"] == "en"
    assert "英文" in model_server.chat_requests[1].text


@pytest.mark.parametrize(
    ("settings", "few", "many"),
    [
        ({}, 10, 40),
        ({"evidence_tokens": 0}, 5, 5),
        ({"chat_context_tokens": 2_600}, 1, 4),
    ],
)
def test_model_reads_the_next_best_chunks_as_well(
    model_client: MakeClient,
    model_server: ModelServer,
    settings: dict[str, int],
    few: int,
    many: int,
) -> None:
    question = "HMAC-SHA256 签名的待签名串怎么拼"
    client = model_client(**settings)
    model_server.reply(structured(type="general", api_name=None), draft("拼参数。[1]"))
    answer = ask(client, question)
    prompt = model_server.chat_requests[1].text
    found = client.post("/retrieve", json={"question": question}).json()["sources"]

    assert few <= prompt.count("<document number=") <= many
    places = [prompt.find(source["text"].strip()) for source in found]
    shown = [place for place in places if place >= 0]
    assert shown == sorted(shown)
    assert len(answer["sources"]) == 1


@pytest.mark.parametrize(
    ("question", "type_"),
    [
        ("40014 是什么错误", "api_call"),
        ("/dop/api/v1/order/ship 一直失败", "api_call"),
        ("订单发货", "api_call"),
        ("发票开错了咋改", "general"),
        ("今天天气怎么样", "unknown"),
    ],
)
def test_exact_evidence_overrules_a_model_that_refuses(
    model_client: MakeClient, model_server: ModelServer, question: str, type_: str
) -> None:
    def reply(request: Recorded) -> Said:
        if is_classification(request):
            return structured(type="unknown", api_name=None)
        return draft("调用“订单发货”接口。[1]")

    model_server.default = reply
    answer = ask(model_client(), question)
    assert answer["type"] == type_


def test_refusal_of_a_model_is_high_only_if_the_words_say_so(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    model_server.default = structured(type="unknown", api_name=None)
    client = model_client()
    assert ask(client, "给我讲个笑话")["confidence"] == "high"
    assert ask(client, "两单能一起寄嘛")["confidence"] == "low"
