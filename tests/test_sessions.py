"""Sessions over HTTP: follow-up questions use the earlier turns of their own session only."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.main import create_app
from app.service.answer_service import AnswerService
from app.service.session_store import SessionStore
from schemas.answer import Answer
from schemas.errors import StoreUnavailable
from schemas.model_output import CondensedQuestion
from schemas.question import Turn
from tests.http_client import http_client
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Answer as ModelAnswer
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.postgres import missing_postgres, running_postgres

APIS = {
    "订单发货": "1110",
    "取消上门揽收": "1180",
    "开具发票": "1301",
    "库存查询": "1401",
    "同意退款": "1602",
}
"""APIs of the samples, and the ids of their documents."""


def document_of(answer: dict[str, Any]) -> str:
    """The document id in the page URL of the answer's first source."""
    return str(answer["sources"][0]["pageUrl"]).rpartition("=")[2]


def test_follow_up_uses_earlier_turns(client: TestClient[Litestar]) -> None:
    ask(client, "发货接口是哪个", session="follow-up")
    codes = ask(client, "那错误码呢", session="follow-up")
    assert (document_of(codes), codes["sources"][0]["section"]) == ("1110", "错误码")
    assert "订单发货" in codes["question"]
    assert codes["session"] == "follow-up"

    alone = ask(client, "那错误码呢")
    assert alone["session"] is None
    assert alone["question"] == "那错误码呢"


@pytest.mark.parametrize("text", ["hello", "thanks!", "你好"])
@pytest.mark.parametrize("session", [None, "first-message"])
def test_first_message_may_be_small_talk(
    client: TestClient[Litestar], text: str, session: str | None
) -> None:
    answer = ask(client, text, session=session)
    assert not {"retrieve", "structured-question"} & answer["timings"].keys()
    (reply,) = answer["answer"]
    assert reply in (
        "Feel free to ask about Qingqiao Open Platform at any time.",
        "关于青桥开放平台的问题，欢迎随时提问。",
    )


def test_small_talk_retrieves_nothing(client: TestClient[Litestar]) -> None:
    ask(client, "发货接口是哪个", session="thanks")
    thanked = ask(client, "好的，谢谢！", session="thanks")
    assert thanked["sources"] == thanked["relatedUrl"] == []
    assert not {"retrieve", "structured-question"} & thanked["timings"].keys()
    assert ask(client, "权限包呢？", session="thanks")["sources"][0]["section"] == "权限包"


def test_off_topic_question_in_session_is_refused(client: TestClient[Litestar]) -> None:
    ask(client, "发货接口是哪个", session="off-topic")
    assert ask(client, "那今天天气怎么样", session="off-topic")["type"] == "unknown"
    assert document_of(ask(client, "那错误码呢", session="off-topic")) == "1110"


def test_deleted_session_is_empty(client: TestClient[Litestar]) -> None:
    ask(client, "发货接口是哪个", session="deleted")
    assert client.delete("/sessions/deleted").status_code == 204
    assert client.delete("/sessions/deleted").status_code == 404
    assert ask(client, "那错误码呢", session="deleted")["question"] == "那错误码呢"


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "../x", "名", 7])
def test_invalid_session_name_returns_400(client: TestClient[Litestar], name: object) -> None:
    response = client.post("/ask", json={"question": "怎么发货", "session": name})
    assert response.status_code == 400
    assert response.json()["detail"].startswith("session: ")


def test_model_condenses_only_follow_ups(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    def is_condensing(request: Recorded) -> bool:
        return "<history>" in request.text and "<documents>" not in request.text

    def reply(request: Recorded) -> ModelAnswer:
        if is_condensing(request):
            return CondensedQuestion(question="订单发货接口有哪些错误码", small_talk=False)
        return structured() if is_classification(request) else draft("订单发货用它。[1]")

    model_server.default = reply
    client = model_client()
    ask(client, "发货接口是哪个", session="model")
    assert len(model_server.chat_requests) == 2
    answer = ask(client, "那错误码呢", session="model")
    condensing, classifying, writing = model_server.chat_requests[2:]
    assert is_condensing(condensing)
    assert "发货接口是哪个" in condensing.text
    assert answer["question"] == "订单发货接口有哪些错误码"
    for request in (classifying, writing):
        assert "订单发货接口有哪些错误码" in request.text
        assert "那错误码呢" not in request.text


def test_turn_has_the_time_of_its_question(
    model_client: MakeClient, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[Turn] = []

    async def append(*arguments: Any) -> None:
        turns.append(arguments[-1])

    monkeypatch.setattr(SessionStore, "append", append)
    model_server.default = Reply("发货接口是订单发货。[1]", delay=0.3)
    client = model_client()
    started = datetime.now(UTC)
    ask(client, "发货接口是哪个", session="slow")
    assert started <= turns[0].asked_at < started + timedelta(seconds=0.3)


@pytest.mark.parametrize(
    ("api_name", "stored"),
    [("开具发票", None), ("订单发货", "订单发货"), ("发货接口", "发货接口")],
    ids=["neither named nor cited", "cited", "named"],
)
def test_turn_has_only_an_api_that_is_named_or_cited(
    model_client: MakeClient,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    api_name: str,
    stored: str | None,
) -> None:
    turns: list[Turn] = []

    async def append(*arguments: Any) -> None:
        turns.append(arguments[-1])

    def reply(request: Recorded) -> ModelAnswer:
        return structured(api_name=api_name) if is_classification(request) else draft("先发货。[1]")

    monkeypatch.setattr(SessionStore, "append", append)
    model_server.default = reply
    ask(model_client(), "发货接口是哪个", session="api")
    assert turns[0].api_name == stored


@contextmanager
def postgres_url() -> Iterator[str]:
    if reason := missing_postgres():
        pytest.skip(reason)
    with running_postgres() as server:
        yield server.empty_database()


@pytest.mark.acceptance
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_concurrent_sessions_are_not_mixed_up(
    sample_service: AnswerService, tmp_path: Path, database: str
) -> None:
    """Fifty sessions at once, each with four questions about one API."""

    def converse(client: TestClient[Litestar], number: int) -> list[str]:
        name, document = list(APIS.items())[number % len(APIS)]
        session = f"s{number}"
        wrong = []
        for question in (f"{name}接口是哪个", "那错误码呢", "它的请求参数有哪些", "权限包呢？"):
            answer = ask(client, question, session=session)
            if (answer["session"], document_of(answer)) != (session, document):
                wrong.append(f"{session} {question}: {json.dumps(answer, ensure_ascii=False)}")
        return wrong

    def converse_concurrently(url: str) -> list[str]:
        settings = sample_service.settings.model_copy(update={"database_url": url})
        answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
        with http_client(create_app(answer_service)) as client, ThreadPoolExecutor(50) as pool:
            found = pool.map(lambda number: converse(client, number), range(50))
            return [line for lines in found for line in lines]

    if database == "sqlite":
        wrong = converse_concurrently(f"sqlite:///{tmp_path / 'sessions.db'}")
    else:
        with postgres_url() as url:
            wrong = converse_concurrently(url)
    assert not wrong, "\n".join(wrong[:3])


def test_answer_is_returned_when_session_store_is_down(
    client: TestClient[Litestar], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise StoreUnavailable("the database does not answer")

    monkeypatch.setattr(SessionStore, "append", refuse)
    answer = Answer.model_validate(ask(client, "怎么发货", session="unavailable"))
    assert answer.sources
