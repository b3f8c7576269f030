"""The answer cache: repeated questions, changed documents, an unavailable database, shared answers."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx_sse import ServerSentEvent, aconnect_sse, connect_sse
from litestar import Litestar
from litestar.testing import TestClient
from pydantic import SecretStr
from sqlalchemy import text

from app.main import create_app
from app.service import answer_cache
from app.service.answer_cache import AnswerCache
from app.service.answer_service import AnswerService
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from schemas.errors import StoreUnavailable
from schemas.ingestion import IngestionOptions
from schemas.insights import QuestionRecord
from schemas.settings import read_settings
from tests.acme import PAGES, PLATFORM, write_pages
from tests.conftest import ServiceFactory
from tests.http_client import http_client
from tests.langsmith_server import langsmith_server
from tests.live_server import live_server
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Answer as ModelAnswer
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.question_records import LONG_AGO
from tests.serving_process import wait_until

QUESTION = "快递面单取号V2 的请求参数"
"""Its quoted answer has medium confidence; answers with low confidence are not cached."""

STEP = "用“订单发货”接口。[1]"
TOKENS = 50
"""The tokens of each call of the scripted model."""

QUESTIONS = (
    "how many tokens may a workspace create?",
    "how large may an uploaded file be?",
    "how many words does a search query take?",
    "how many tokens may a workspace create, and how large may an uploaded file be?",
)

RELATED = "how many tokens may every workspace create?"
"""Its quoted answer cites one page and suggests another one."""

Http = TestClient[Litestar]


def valid_reply(request: Recorded) -> Reply:
    content = structured() if is_classification(request) else draft(STEP)
    tokens = {"prompt_tokens": TOKENS - 10, "completion_tokens": 10, "total_tokens": TOKENS}
    return Reply(content, usage=tokens)


@pytest.fixture
def caching(url: str) -> dict[str, object]:
    """Settings that enable the cache in the database of this test."""
    return {"cache_answers": True, "database_url": url}


def lookups(client: Http) -> dict[str, int]:
    """The cache lookups in the metrics, by result."""
    name = "apidesk_cache_lookups_total"
    lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith(name)]
    return {line.split('"')[1]: round(float(line.split()[-1])) for line in lines}


@contextmanager
def database_statements(url: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that executes a statement in the database."""
    engine = open_engine(read_settings(database_url=url))

    def execute(statement: str) -> None:
        with engine.begin() as connection:
            connection.execute(text(statement))

    yield execute
    engine.dispose()


def is_cached(client: Http, question: str = QUESTION, **body: Any) -> bool:
    return bool(ask(client, question, **body)["cached"])


# --- repeated questions ------------------------------------------------------------------


def test_repeated_question_is_answered_from_cache(
    model_client: MakeClient, model_server: ModelServer, caching: dict[str, object], url: str
) -> None:
    model_server.default = valid_reply
    client = model_client(**caching)
    first, second, third = (
        ask(client, QUESTION),
        ask(client, QUESTION),
        ask(client, QUESTION, session="mine"),
    )
    assert len(model_server.chat_requests) == 2
    assert not any(each.body.get("stream") for each in model_server.chat_requests)
    assert [each["cached"] for each in (first, second, third)] == [False, True, True]
    assert [each["session"] for each in (first, second, third)] == [None, None, "mine"]
    assert len({each["id"] for each in (first, second, third)}) == 3
    own = ("id", "session", "cached", "timings")
    rest = [{k: v for k, v in each.items() if k not in own} for each in (first, second, third)]
    assert rest[0] == rest[1] == rest[2]
    assert second["timings"].keys() == {"total"}

    fresh = client.post("/ask", json={"question": QUESTION}, headers={"Cache-Control": "No-Cache"})
    assert not fresh.json()["cached"]
    assert len(model_server.chat_requests) == 4
    assert lookups(client) == {"miss": 1, "hit": 2, "bypass": 1}

    model_server.reply({"question": QUESTION, "small_talk": False})
    assert not is_cached(
        client, "那它呢", session="mine"
    )  # the cached answer is in the session, so the follow-up is condensed
    wait_until(lambda: len(stored_records(url)) == 5, "all records are in the database")
    is_record_cached = {record.id: record.cached for record in stored_records(url)}
    assert [is_record_cached[each["id"]] for each in (first, second, third)] == [False, True, True]


def stored_records(url: str) -> list[QuestionRecord]:
    engine = open_engine(read_settings(database_url=url))
    try:
        return list(RecordStore(engine).since(LONG_AGO))
    finally:
        engine.dispose()


def test_other_options_or_settings_miss_the_cache(
    serve_samples: MakeClient, caching: dict[str, object]
) -> None:
    client = serve_samples(**caching)
    assert not is_cached(client)
    assert is_cached(client, k=read_settings().top_k, filters={}, mode="pipeline", language="zh")
    others: list[dict[str, Any]] = [
        {"k": 3},
        {"language": "en"},
        {"filters": {"source": "reference"}},
        {"mode": "tools"},
    ]
    assert [is_cached(client, **other) for other in others] == [False] * 4
    assert [is_cached(client, **other) for other in others] == [True] * 3 + [False]  # degraded
    assert not is_cached(serve_samples(**caching, top_k=3, history_turns=9))
    assert not is_cached(serve_samples(**caching, unverified="remove"))
    assert is_cached(client)


UNVERIFIED_STEP = "调用 /dop/api/v9/nothing 并传 nothing_id。[1]"


@pytest.mark.parametrize(
    ("question", "steps", "cites"),
    [
        pytest.param(QUESTION, ("香蕉奶昔要加三勺蜂蜜。[1]",), False, id="not covered"),
        pytest.param(QUESTION, (STEP, UNVERIFIED_STEP), True, id="low"),
        pytest.param(QUESTION, None, True, id="degraded"),
        pytest.param(
            f"{QUESTION} sign=4F8D0C1B9E7A63524F8D0C1B9E7A6352", (STEP,), True, id="secret"
        ),
    ],
)
def test_weak_answers_and_secrets_are_not_cached(
    model_client: MakeClient,
    model_server: ModelServer,
    tmp_path: Path,
    question: str,
    steps: tuple[str, ...] | None,
    cites: bool,
) -> None:
    def reply(request: Recorded) -> ModelAnswer:
        if is_classification(request):
            return structured()
        return draft(*steps) if steps else Reply(status=401)

    model_server.default = reply
    client = model_client(cache_answers=True, database_url=f"sqlite:///{tmp_path / 'own.db'}")
    found = [ask(client, question) for _ in range(2)]
    assert [(bool(each["sources"]), each["cached"]) for each in found] == [(cites, False)] * 2


# --- changed documents -----------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A platform with three pages."""
    (tmp_path / "guides").mkdir()
    (tmp_path / "platform.toml").write_text(PLATFORM)
    write_pages(tmp_path, **PAGES)
    return tmp_path


def ingest(answer_service: AnswerService, **options: bool) -> None:
    answer_service.job.run(
        answer_service.job.new_run("command", IngestionOptions.model_validate(options))
    )


def test_changed_document_invalidates_exactly_the_answers_that_cite_it(
    make_service: ServiceFactory, site: Path, caching: dict[str, object]
) -> None:
    answer_service = make_service(platform=site / "platform.toml", **caching)
    with http_client(create_app(answer_service)) as client:

        def cited_documents() -> dict[str, set[str]]:
            answers = {question: ask(client, question) for question in QUESTIONS}
            return {q: {s["documentId"] for s in a["sources"]} for q, a in answers.items()}

        def cached_questions() -> set[str]:
            return {question for question in QUESTIONS if is_cached(client, question)}

        cited = cited_documents()
        assert cached_questions() == set(QUESTIONS)
        (changed,) = cited[QUESTIONS[0]]
        citing = {question for question, documents in cited.items() if changed in documents}
        assert {QUESTIONS[0], QUESTIONS[3]} <= citing < set(QUESTIONS)

        ingest(answer_service, rebuild=True)
        assert cached_questions() == set(QUESTIONS)
        write_pages(site, quotas=PAGES["quotas"].replace("20 tokens", "30 tokens"))
        ingest(answer_service)
        assert cached_questions() == set(QUESTIONS) - citing
        assert "30 tokens" in ask(client, QUESTIONS[0])["answer"][0]
        assert cached_questions() == set(QUESTIONS)
        (site / "guides" / "quotas.md").unlink()
        ingest(answer_service, allow_deletes=True)
        assert cached_questions() == set(QUESTIONS) - citing


def test_renamed_related_page_invalidates_the_answer(
    make_service: ServiceFactory, site: Path, caching: dict[str, object]
) -> None:
    write_pages(
        site, old="# Raising\n\nA workspace that needs more asks support. Tokens are free.\n"
    )
    answer_service = make_service(platform=site / "platform.toml", **caching)
    with http_client(create_app(answer_service)) as client:
        first = ask(client, RELATED)
        cited = {source["pageUrl"] for source in first["sources"]}
        url = "https://acme.example/docs/old"
        assert url in first["relatedUrl"]
        assert url not in cited
        assert is_cached(client, RELATED)
        (site / "guides" / "old.md").rename(site / "guides" / "new.md")
        ingest(answer_service, allow_deletes=True)
        again = ask(client, RELATED)
        assert not again["cached"]
        assert url not in again["relatedUrl"]
        assert is_cached(client, RELATED)


def test_document_changed_during_the_answer_prevents_caching(
    make_service: ServiceFactory, site: Path, model_server: ModelServer
) -> None:
    def reply(request: Recorded) -> ModelAnswer:
        if is_classification(request):
            return structured(type="general", api_name=None)
        if changing.pop():
            write_pages(site, quotas=PAGES["quotas"].replace("# Quotas", "# Quotas of a workspace"))
            ingest(answer_service)
        return draft("A workspace may create 20 tokens. [1]")

    changing = [False, False, True]
    model_server.default = reply
    answer_service = make_service(
        platform=site / "platform.toml",
        cache_answers=True,
        chat_model="openai:scripted-chat",
        chat_base_url=model_server.base_url,
        chat_api_key=SecretStr("test-key"),
    )
    with http_client(create_app(answer_service)) as client:
        assert [is_cached(client, QUESTIONS[0]) for _ in range(3)] == [False, False, True]


# --- expired entries and an unavailable database ----------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("UPDATE cached_answers SET made_at = '2000-01-01'", id="expired"),
        pytest.param("UPDATE cached_answers SET answer = '{}'", id="of another version"),
    ],
)
def test_unusable_entry_is_replaced(
    serve_samples: MakeClient, caching: dict[str, object], url: str, statement: str
) -> None:
    client = serve_samples(**caching)
    assert [is_cached(client) for _ in range(2)] == [False, True]
    with database_statements(url) as execute:
        execute(statement)
    assert [is_cached(client) for _ in range(2)] == [False, True]


def test_questions_are_answered_while_database_is_down(
    serve_samples: MakeClient, caching: dict[str, object], url: str
) -> None:
    client = serve_samples(**caching)
    with database_statements(url) as execute:
        execute("ALTER TABLE cached_answers RENAME TO away")
        assert [is_cached(client) for _ in range(2)] == [False, False]
        execute("ALTER TABLE away RENAME TO cached_answers")
    assert [is_cached(client) for _ in range(2)][-1]


def test_hanging_database_does_not_delay_answers(
    serve_samples: MakeClient,
    caching: dict[str, object],
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(answer_cache, "DATABASE_TIMEOUT_S", 0.1)
    client = serve_samples(**caching, keep_questions=False)
    engine = open_engine(read_settings(database_url=url))
    lock = {
        "sqlite": "BEGIN IMMEDIATE",
        "postgresql": "LOCK TABLE cached_answers IN ACCESS EXCLUSIVE MODE",
    }[engine.dialect.name]
    with closing(engine.connect()) as connection:
        connection.exec_driver_sql(lock)
        assert [is_cached(client) for _ in range(2)] == [False, False]
        connection.rollback()
    engine.dispose()
    assert "the database did not answer in time" in caplog.text


def test_closed_cache_refuses_queued_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cache, "MAX_THREADS", 1)
    engine = open_engine(read_settings(database_url=f"sqlite:///{tmp_path / 'apidesk.db'}"))

    async def close_with_queued_call() -> None:
        cache = AnswerCache(engine, max_age_days=1)
        running, queued = (asyncio.create_task(cache.delete(key)) for key in "ab")
        await asyncio.sleep(0.1)
        cache.close()
        with pytest.raises(StoreUnavailable, match="the server is stopping"):
            await queued
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await running

    with closing(engine.connect()) as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        asyncio.run(close_with_queued_call())
        connection.rollback()
    engine.dispose()


# --- events and concurrent callers -------------------------------------------------------------


def test_cached_answer_is_streamed_as_events(
    sample_service: AnswerService, model_server: ModelServer, caching: dict[str, object]
) -> None:
    def receive_events(url: str) -> list[ServerSentEvent]:
        with (
            httpx.Client(base_url=url, timeout=20, trust_env=False) as client,
            connect_sse(client, "POST", "/ask", json={"question": QUESTION}) as source,
        ):
            return list(source.iter_sse())

    model_server.default = valid_reply
    with live_server(make_scripted_service(sample_service, model_server, caching)) as url:
        first, second = receive_events(url), receive_events(url)
    assert [event.event for event in second] == ["structured", "sources", "step", "answer"]
    assert [event.event for event in first] == [event.event for event in second]
    assert [event.json() for event in (first[0], first[2])] == [
        event.json() for event in (second[0], second[2])
    ]
    assert [events[-1].json()["cached"] for events in (first, second)] == [False, True]
    assert second[1].json()["sources"] == second[-1].json()["sources"]


def make_scripted_service(
    answer_service: AnswerService, server: ModelServer, overrides: dict[str, object]
) -> AnswerService:
    """An answer service with the samples and the scripted model."""
    settings = answer_service.settings.model_copy(update=server.settings | overrides)
    return AnswerService(settings, answer_service.platform, answer_service.job)


class ConcurrentCallers:
    """Callers that ask the same question at once, as JSON and as events; some disconnect early."""

    def __init__(self, url: str, classified: threading.Event, writing: threading.Event) -> None:
        limits = httpx.Limits(max_connections=200)
        self._http = httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, limits=limits)
        self._classified = classified
        self._writing = writing

    async def json(self) -> dict[str, Any]:
        response = await self._http.post("/ask", json={"question": QUESTION})
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def events(self) -> dict[str, Any]:
        async with aconnect_sse(self._http, "POST", "/ask", json={"question": QUESTION}) as source:
            events = [event async for event in source.aiter_sse()]
        assert [event.event for event in events] == ["structured", "sources", "step", "answer"]
        return dict(events[-1].json())

    async def ask(self, may_answer: threading.Event) -> list[dict[str, Any]]:
        """The answers of the 90 callers that stay; the first caller and nine others disconnect."""
        async with self._http:
            leaving = [asyncio.create_task(self.json())]
            await asyncio.to_thread(self._classified.wait, 20)
            leaving += [asyncio.create_task(self.events()) for _ in range(9)]
            await asyncio.to_thread(self._writing.wait, 20)
            staying = [
                asyncio.create_task(self.events() if number % 2 else self.json())
                for number in range(90)
            ]
            for task in leaving:
                task.cancel()
            await asyncio.gather(*leaving, return_exceptions=True)
            may_answer.set()
            return await asyncio.gather(*staying)


def test_concurrent_callers_share_one_answer_and_one_charge(
    sample_service: AnswerService, model_server: ModelServer, tmp_path: Path
) -> None:
    classified, writing, may_answer = threading.Event(), threading.Event(), threading.Event()

    def slow(request: Recorded) -> Reply:
        if is_classification(request):
            classified.set()
        else:
            writing.set()
            assert may_answer.wait(30), "the test did not release the answer"
        return valid_reply(request)

    model_server.default = slow
    own: dict[str, object] = {
        "cache_answers": True,
        "database_url": f"sqlite:///{tmp_path / 'own.db'}",
        "token_limit": f"{3 * TOKENS}/day",
    }
    with live_server(make_scripted_service(sample_service, model_server, own)) as url:
        found = asyncio.run(ConcurrentCallers(url, classified, writing).ask(may_answer))
        assert [is_classification(each) for each in model_server.chat_requests] == [True, False]
        assert len({each["id"] for each in found}) == 90
        assert {tuple(each["answer"]) for each in found} == {tuple(found[0]["answer"])}
        assert all(each["cached"] for each in found)
        with httpx.Client(base_url=url, trust_env=False) as client:
            statuses = [
                client.post("/ask", json={"question": question}).status_code
                for question in ("怎么取消上门揽收", "怎么开具发票")
            ]
    assert statuses == [200, 429]  # two calls, then four


def test_cached_answer_has_its_own_trace(
    sample_service: AnswerService, caching: dict[str, object]
) -> None:
    with langsmith_server(tracing=True) as langsmith:
        settings = sample_service.settings.model_copy(update=caching)
        answer_service = AnswerService(settings, sample_service.platform, sample_service.job)
        with http_client(create_app(answer_service)) as client:
            first, second = ask(client, QUESTION), ask(client, QUESTION, session="mine")
        answer_service.tracing.close()
        trace = langsmith.trace(second["id"])
    assert len(langsmith.traces) == 2
    assert trace.tree() == "ask"
    assert trace.metadata["session_id"] == "mine"
    assert QUESTION in str(trace.fields["inputs"])
    assert first["answer"][0].splitlines()[0] in str(trace.fields["outputs"])
