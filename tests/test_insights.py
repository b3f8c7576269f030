"""The insights report: counts, gaps, CSV, the HTTP route and the command."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from csv import DictReader
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result
from litestar import Litestar
from litestar.testing import TestClient
from pydantic import SecretStr

from app.analytics.insights.gaps import MIN_COVERAGE
from app.analytics.insights.report import (
    BYTE_ORDER_MARK,
    DocumentationContext,
    Vectors,
    build_documentation_context,
    build_report,
    to_csv,
)
from app.cli.main import main
from app.main import create_app
from app.security.api_keys import ApiKeyStore
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from app.service.records import RecordStore, build_record
from ingestion.database.engine import open_engine
from ingestion.embeddings import open_embeddings
from ingestion.text.words import index_words, query_words
from runnables.question.topic_scorer import DEVELOPER_WORDS
from schemas.answer import Answer, Page
from schemas.choices import TABLES, Table
from schemas.errors import ModelUnavailable, StoreUnavailable
from schemas.insights import Feedback, Insights, QuestionRecord
from schemas.settings import read_settings
from tests.conftest import SHARED_DATA, needs_shared_data
from tests.http_client import http_client
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.test_record_writer import record

DATA = Path(__file__).parent / "data"

NOON = datetime.now(UTC).replace(hour=12) - timedelta(days=2)

SHIP = {"api_name": "订单发货", "api_url": "/ship"}

HELPED, DID_NOT = Feedback(score=1), Feedback(score=-1, comment="=1+1 没有用")

NO_DOCUMENTATION = DocumentationContext()

MISSED: dict[str, Any] = {"confidence": "low", "pages": (), "session": None}


def asked(number: int, **fields: object) -> QuestionRecord:
    """A well answered question of two days ago, with `fields` changed."""
    kept = {"asked_at": NOON + timedelta(seconds=number), "coverage": 1.0}
    return record(f"record-{number:03d}", **(kept | fields))


def wordings(texts: Sequence[str], **fields: object) -> list[QuestionRecord]:
    """Unanswered questions of several callers."""
    return [
        asked(100 + number, **MISSED, question=text, owner=f"key-{number}", **fields)
        for number, text in enumerate(texts)
    ]


DRONES = wordings(["drone delivery", "Is there a drone API?", "drone delivery\nprice"])

RECORDS = [
    asked(1, **SHIP),
    asked(2, **SHIP, asked_at=NOON - timedelta(days=1), error="44203"),
    asked(3, **SHIP, confidence="low", error="44203"),
    asked(4, **SHIP, confidence="low", feedback=HELPED, cached=True),
    asked(5, api_name="退款", api_url="/refund", pages=(), error="40014"),
    asked(6, type="general", feedback=DID_NOT, question="@怎么发货\x1b[2J"),
    asked(7, type="unknown", pages=(), asked_at=NOON - timedelta(days=1)),
    asked(8, type=None, confidence=None, failure="model_timeout"),
    asked(9, asked_at=NOON - timedelta(days=40)),
    *DRONES,
]


class RecordDatabase(NamedTuple):
    """A database for question records."""

    url: str
    store: RecordStore


@pytest.fixture
def kept(url: str) -> Iterator[RecordDatabase]:
    engine = open_engine(read_settings(database_url=url))
    yield RecordDatabase(url, RecordStore(engine))
    engine.dispose()


def keep(store: RecordStore, records: Sequence[QuestionRecord]) -> None:
    store.add(records)
    for each in records:
        if each.feedback:
            store.rate(each.owner, each.id, each.feedback)


def reported(
    records: Sequence[QuestionRecord], documentation: DocumentationContext = NO_DOCUMENTATION
) -> Insights:
    return asyncio.run(build_report(lambda _: iter(records), 30, documentation))


# --- coverage


@pytest.mark.parametrize(
    ("question", "least", "most"),
    [
        ("what does error 44203 mean?", MIN_COVERAGE, 1),
        ("拼团活动需要申请哪个权限包", 0.1, MIN_COVERAGE),
        ("今天天气怎么样", 0, 0),
    ],
)
def test_record_contains_coverage(
    client: TestClient[Litestar], question: str, least: float, most: float
) -> None:
    answer = Answer.model_validate(ask(client, question))
    coverage = build_record(AskCommand(question), answer, 1).coverage
    assert coverage is not None
    assert least <= coverage <= most


# --- counts


def test_report_counts_recorded_questions(kept: RecordDatabase) -> None:
    keep(kept.store, RECORDS)
    found = asyncio.run(build_report(kept.store.since, 30, DocumentationContext()))
    assert (found.days, found.questions, found.unanswered) == (30, 11, 6)
    assert (found.off_topic_share, found.cached_share) == (0.1, 0.1)
    day, day_before = NOON.date(), NOON.date() - timedelta(days=1)
    assert [(each.day, each.type, each.questions) for each in found.by_type] == [
        (day_before, "api_call", 1),
        (day_before, "unknown", 1),
        (day, None, 1),
        (day, "api_call", 7),
        (day, "general", 1),
    ]
    assert [(each.day, each.api_url, each.questions, each.unanswered) for each in found.by_api] == [
        (day_before, "/ship", 1, 0),
        (day, "/ship", 3, 1),
        (day, "/refund", 1, 1),
    ]
    assert [(each.error, each.questions) for each in found.errors] == [("44203", 2), ("40014", 1)]
    assert [(each.score, each.comment) for each in found.feedback] == [(-1, "=1+1 没有用"), (1, "")]


@pytest.mark.parametrize(
    ("asked_for", "told"),
    [
        ([("发货", "/ship"), ("Ship", "/ship"), ("发货", "/ship")], [("发货", "/ship", 3)]),
        ([("发货", "/ship"), ("发货", None), (None, "/ship")], [("发货", "/ship", 3)]),
        ([("发货", "/v1"), ("发货", "/v2"), ("发货", "/v2"), ("发货", None)],
         [("发货", "/v2", 3), ("发货", "/v1", 1)]),
        ([("发货", None), (None, "/ship"), (None, "/ship")], [("", "/ship", 2), ("发货", "", 1)]),
    ],
)  # fmt: skip
def test_api_is_counted_once_under_all_names(
    asked_for: list[tuple[str | None, str | None]], told: list[tuple[str, str, int]]
) -> None:
    found = reported([asked(n, api_name=a, api_url=u) for n, (a, u) in enumerate(asked_for)])
    assert [(each.api_name, each.api_url, each.questions) for each in found.by_api] == told


def test_report_on_an_empty_database(kept: RecordDatabase) -> None:
    found = asyncio.run(build_report(kept.store.since, 30, DocumentationContext()))
    assert found == Insights(days=30, questions=0, unanswered=0, off_topic_share=0, cached_share=0)


# --- gaps


def test_reported_gap() -> None:
    (gap,) = reported(RECORDS).gaps
    assert (gap.question, gap.size) == ("drone delivery", 3)
    assert gap.wordings == ("drone delivery", "drone delivery price", "Is there a drone API?")
    assert gap.nearest == Page(title="发货", page_url="https://x/1")
    assert (gap.first_asked, gap.last_asked) == (DRONES[0].asked_at, DRONES[-1].asked_at)


@pytest.mark.parametrize(
    ("others", "size"),
    [
        ({"owner": "key-0"}, 3),
        ({"owner": "key-0", "question": " Drone  delivery "}, 3),
        ({"owner": "key-0", "session": "one", "understood": "drone delivery"}, 4),
        ({"owner": "key-0", "asked_at": NOON + timedelta(days=1)}, 8),
        ({"owner": "another"}, 4),
        ({"owner": "key-0", "question": "drone"}, 4),
        ({"owner": "another", "type": None}, 3),
    ],
)
def test_repeated_question_of_a_caller_counts_once_per_day(
    others: dict[str, object], size: int
) -> None:
    again = [asked(200 + n, **(MISSED | {"question": "drone delivery"} | others)) for n in range(5)]
    if "asked_at" in others:  # a day after the other, each
        again = [
            each.model_copy(update={"asked_at": NOON + timedelta(days=n)})
            for n, each in enumerate(again, 1)
        ]
    (gap,) = reported([*DRONES, *again]).gaps
    assert gap.size == size


def test_follow_up_is_grouped_in_its_condensed_form() -> None:
    texts = ["drone delivery", "drone delivery API", "drone delivery price"]
    follow_ups = [
        each.model_copy(update={"session": "s", "question": "and that?", "understood": text})
        for each, text in zip(DRONES, texts, strict=True)
    ]
    (gap,) = reported(follow_ups).gaps
    assert set(gap.wordings) == set(texts)


def test_vectors_join_questions_without_common_words() -> None:
    texts = ["drone", "unmanned aircraft", "quadcopter", "coupon", "coupon code", "my coupon"]

    async def embed(asked: Sequence[str]) -> Vectors:
        return [[0.0, 1.0] if "coupon" in text else [1.0, 0.0] for text in asked]

    found = reported(wordings(texts), DocumentationContext(embed=embed))
    assert {frozenset(gap.wordings) for gap in found.gaps} == {
        frozenset(texts[:3]),
        frozenset(texts[3:]),
    }


def test_questions_are_embedded_in_batches(
    sample_service: AnswerService, model_server: ModelServer
) -> None:
    settings = read_settings(
        embedding_model="openai:scripted-embedding",
        embedding_base_url=model_server.base_url,
        embedding_api_key=SecretStr("test-key"),
        embedding_batch=2,
        embedding_requests=2,
    )
    model = open_embeddings(settings)
    known = build_documentation_context(
        sample_service.platform, sample_service.collection, model, None, settings
    )
    texts = [f"drone {number}" for number in range(7)]
    found = reported([*wordings(texts), *wordings(texts, asked_at=NOON + timedelta(days=1))], known)
    assert [gap.size for gap in found.gaps] == [14]
    batches = [request.body["input"] for request in model_server.embedding_requests]
    assert sorted(text for batch in batches for text in batch) == texts
    assert max(map(len, batches)) == 2
    model_server.embedding_reply = Reply("out of order", status=500)
    found = reported(RECORDS, known)
    assert [gap.size for gap in found.gaps] == [3]
    assert "APIDESK_EMBEDDING_MODEL" in found.notes[0]


def test_embedding_failure_falls_back_to_words() -> None:
    async def embed(_: Sequence[str]) -> Vectors:
        raise ModelUnavailable("the model is away")

    found = reported(RECORDS, DocumentationContext(embed=embed))
    assert [gap.size for gap in found.gaps] == [3]
    assert found.notes == ("questions were grouped by their words alone: the model is away",)


def test_store_failure_falls_back_to_failed_answers() -> None:
    def words(_: object) -> dict[str, float]:
        raise StoreUnavailable("the store is away")

    found = reported(RECORDS, DocumentationContext(words=words))
    assert [gap.size for gap in found.gaps] == [3]
    assert found.notes == ("only failed answers reveal a gap: the store is away",)


# --- CSV


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", " =1+1", "＝1+1", "'", '"a", "b"\n;c']
)
def test_csv_escapes_formulas(text: str) -> None:
    written = to_csv(reported([asked(1, question=text, feedback=DID_NOT)]), "feedback")
    (row,) = rows_of(written)
    assert row["question"].removeprefix("'") == text.removeprefix("'")
    assert not re.match(r"\s*[=+\-@＝]|[\t\r]", row["question"])
    assert row["comment"] == "'=1+1 没有用"


@pytest.mark.parametrize("table", TABLES)
def test_csv_has_a_header_and_one_line_per_row(table: Table) -> None:
    full, empty = to_csv(reported(RECORDS), table), to_csv(reported([]), table)
    assert full.startswith(empty)
    assert len(rows_of(full)) == len(reported(RECORDS).as_json()[table])  # type: ignore[arg-type]
    assert rows_of(empty) == []


def rows_of(text: str) -> list[dict[str, str]]:
    assert text.startswith(BYTE_ORDER_MARK)
    return list(DictReader(StringIO(text.removeprefix(BYTE_ORDER_MARK), newline="")))


# --- over HTTP


class ProtectedServer(NamedTuple):
    """A server with `RECORDS`, and its keys."""

    http: TestClient[Litestar]
    keys: dict[str, str]


@pytest.fixture(scope="module")
def protected_server(
    sample_service: AnswerService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProtectedServer]:
    folder = tmp_path_factory.mktemp("insights")
    changed = {"database_url": f"sqlite:///{folder / 'a.db'}", "spool": folder / "spool"}
    settings = sample_service.settings.model_copy(update=changed)
    engine = open_engine(settings)
    keep(RecordStore(engine), RECORDS)
    engine.dispose()
    with closing(ApiKeyStore.open(settings)) as stored:
        keys = {s: stored.add(s, (s,), None)[1] for s in ("ask", "admin")}
    with http_client(
        create_app(AnswerService(settings, sample_service.platform, sample_service.job))
    ) as http:
        yield ProtectedServer(http, keys)


def get(protected_server: ProtectedServer, path: str, scope: str = "admin", **headers: str) -> Any:
    key = {"Authorization": f"Bearer {protected_server.keys[scope]}"}
    return protected_server.http.get(f"/insights{path}", headers=key | headers)


def test_route_returns_the_report_or_one_table(protected_server: ProtectedServer) -> None:
    whole = get(protected_server, "").json()
    assert whole["questions"] == 11
    assert whole["gaps"][0]["missing"] == ["drone"]
    for table in TABLES:
        one = get(protected_server, f"?table={table}").json()
        assert one == {name: whole[name] for name in one}
        assert whole.keys() - one.keys() == set(TABLES) - {table}
    assert get(protected_server, "?days=365").json()["questions"] == 12


@pytest.mark.parametrize(
    ("query", "accept", "is_csv"),
    [
        ("", "text/csv", True),
        ("&format=csv", "*/*", True),
        ("&format=json", "text/csv", False),
        ("", "text/html, */*;q=0.8", False),
        ("", "text/csv;q=0.5, application/json", False),
    ],
)
def test_csv_is_returned_on_request(
    protected_server: ProtectedServer, query: str, accept: str, is_csv: bool
) -> None:
    response = get(protected_server, f"?table=feedback{query}", Accept=accept)
    assert response.status_code == 200
    if not is_csv:
        assert response.json()["feedback"]
        return
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    name = 'attachment; filename="insights-feedback-30-days.csv"'
    assert response.headers["content-disposition"] == name
    assert [row["score"] for row in rows_of(response.content.decode())] == ["-1", "1"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?days=0", "days"),
        ("?days=36501", "days"),
        ("?days=many", "days"),
        ("?table=none", "table"),
        ("?format=xml", "format"),
    ],
)
def test_invalid_parameter_returns_400(
    protected_server: ProtectedServer, query: str, field: str
) -> None:
    response = get(protected_server, query)
    assert response.status_code == 400
    assert response.json()["detail"].startswith(f"{field}: ")


def test_insights_require_the_admin_scope(protected_server: ProtectedServer) -> None:
    assert get(protected_server, "", scope="ask").status_code == 403
    described = protected_server.http.get("/schema/openapi.json").json()["paths"]["/insights"][
        "get"
    ]
    assert {each["name"] for each in described["parameters"]} == {"days", "table", "format"}
    assert "Insights" in json.dumps(described["responses"]["200"])


# --- on the command line


def apidesk(url: str, *arguments: str, **environment: str) -> Result:
    environment |= {"APIDESK_DATABASE_URL": url}
    return CliRunner().invoke(main, ["insights", *arguments], env=environment)


def test_command_prints_one_table(kept: RecordDatabase) -> None:
    keep(kept.store, RECORDS)
    assert "drone" not in (said := apidesk(kept.url, "--table", "byApi")).stdout
    assert re.search(r" 4  订单发货  /ship  1 unanswered\n", said.stdout), said.output
    printed = apidesk(kept.url, "--table", "feedback", "--csv").stdout
    assert [row["score"] for row in rows_of(printed)] == ["-1", "1"]
    body = json.loads(apidesk(kept.url, "--table", "byType", "--json").stdout)
    assert Insights.model_validate(body).questions == 11


def test_command_prints_the_report_as_text(sample_service: AnswerService, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    store = {"APIDESK_MILVUS_URI": sample_service.settings.milvus_uri}
    assert apidesk(url, **store).stdout == "no questions were recorded in the last 30 days\n"
    engine = open_engine(read_settings(database_url=url))
    keep(RecordStore(engine), RECORDS)
    engine.dispose()
    said = apidesk(url, **store)
    assert said.exit_code == 0, said.output
    for words in (
        r"^11 questions of the last 30 days$",
        r"^6 on-topic questions were not answered, 10% off topic, 10% from the cache$",
        r"^ +3  drone delivery *$",
        r"^ +not in the documents: drone *$",
        r"^ +nearest: 发货  https://x/1 *$",
        r"^ +2  44203$",
        r"^ +-  @怎么发货 \[2J *$",
    ):
        assert re.search(words, said.stdout, re.MULTILINE), (words, said.stdout)


@pytest.mark.parametrize(
    "arguments", [["--days", "0"], ["--table", "none"], ["--csv"], ["--csv", "--json"]]
)
def test_command_refuses_invalid_options(arguments: list[str]) -> None:
    assert apidesk("sqlite://", *arguments).exit_code == 2


# --- a report over four hundred questions, answered by a model


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


GAPS = {line["question"]: line["topic"] for line in read_lines(DATA / "insights_gaps.jsonl")}
"""Questions about three topics that the samples do not cover, fifteen wordings each, with their topics."""


def four_hundred_questions() -> list[str]:
    """`GAPS` among questions that the samples answer, unrelated questions and small talk."""
    names = ("on_topic", "on_topic_held_out", "on_topic_fresh", "retrieval_samples")
    own = [line["question"] for name in names for line in read_lines(DATA / f"{name}.jsonl")]
    public = [
        line["query"]
        for name in ("aws_docs_qa_en", "cmrc2018_dev_zh")
        for line in read_lines(SHARED_DATA / "retrieval" / name / "queries.jsonl")[:40]
    ]
    chatter = [line["query"] for line in read_lines(SHARED_DATA / "offtopic.jsonl")]
    return list(dict.fromkeys([*GAPS, *own, *public, *chatter[::4], *chatter]))[:400]


def classified(request: Recorded) -> Said:
    """On topic if the question shares words with the platform's description or developer vocabulary."""
    spoken = {*index_words(tagged(request, "platform")), *DEVELOPER_WORDS}
    found = content_words(tagged(request, "question")) & spoken
    return structured(type="general" if found else "unknown", api_name=None)


def answered(request: Recorded) -> Said:
    """Quote the best line, if the documents contain half of the question's content words."""
    words = content_words(tagged(request, "question"))
    documents = re.findall(r'<document number="(\d+)">\n(.*?)</document>', request.text, re.DOTALL)
    lines = [(number, line) for number, text in documents for line in text.splitlines()]
    held = {word for _, line in lines for word in index_words(line)}
    if len(words & held) * 2 < len(words):
        return draft("文档没有写到这个问题。")
    number, best = max(lines, key=lambda each: len(words & set(index_words(each[1]))))
    return draft(f"{best} [{number}]")


def tagged(request: Recorded, tag: str) -> str:
    return re.findall(rf"<{tag}>\n(.*?)\n</{tag}>", request.text, re.DOTALL)[-1]  # type: ignore[no-any-return]


def content_words(text: str) -> set[str]:
    return set(query_words(text))


def check_gaps(gaps: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Assert that the three topics are among the first six (question, wordings)."""
    topics = []
    for question, texts in gaps[:6]:
        ((topic, count),) = Counter(map(GAPS.get, texts)).most_common(1)
        if topic is None:
            continue  # questions that the scripted model could not answer from its chunks
        assert count >= 0.9 * len(texts), texts
        assert GAPS[question] == topic
        topics.append(topic)
    assert sorted(topics) == sorted(set(GAPS.values()))


@pytest.mark.acceptance
@needs_shared_data
def test_gaps_among_four_hundred_questions(
    model_client: MakeClient, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.route(lambda request: "<groups>" in request.text, {"topics": []})  # joins nothing
    model_server.route(is_classification, classified)
    model_server.route(lambda request: True, answered)
    client = model_client(database_url=f"sqlite:///{tmp_path / 'a.db'}", spool=tmp_path / "spool")
    questions = four_hundred_questions()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda question: ask(client, question), questions))
    while client.get("/insights?table=errors").json()["questions"] < len(questions):
        time.sleep(0.05)
    found = client.get("/insights?table=gaps").json()
    check_gaps([(gap["question"], gap["wordings"]) for gap in found["gaps"]])
    rows = rows_of(client.get("/insights?table=gaps&format=csv").content.decode())
    assert [int(row["size"]) for row in rows] == [gap["size"] for gap in found["gaps"]]
    check_gaps([(row["question"], row["wordings"].split("\n")) for row in rows])
