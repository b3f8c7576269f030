"""The insights report: counts, coverage, gaps and CSV."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient
from pydantic import SecretStr

from app.analytics.insights.counts import DocumentedOperation
from app.analytics.insights.gaps import MIN_ANSWER_COVERAGE
from app.analytics.insights.report import (
    DocumentationContext,
    Vectors,
    build_documentation_context,
    build_report,
    to_csv,
)
from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from app.service.records import build_record
from ingestion.embeddings import open_embeddings
from runnables.models.chat_models import EXTRACTIVE
from schemas.answer import Answer, Confidence, Page, Source
from schemas.choices import TABLES, TableName
from schemas.errors import ModelUnavailable, StoreUnavailable
from schemas.insights import Insights, QuestionRecord
from schemas.question import StructuredQuestion
from schemas.settings import read_settings
from tests.insights.conftest import RecordDatabase
from tests.insights_records import (
    DID_NOT,
    DRONES,
    MISSED,
    NOON,
    RECORDS,
    asked,
    keep,
    rows_of,
    wordings,
)
from tests.model_replies import ask
from tests.model_script import Reply
from tests.model_server import ModelServer
from tests.small_platform import PLATFORM, settings_of

pytestmark = pytest.mark.acceptance

NO_DOCUMENTATION = DocumentationContext()


def reported(
    records: Sequence[QuestionRecord], documentation: DocumentationContext = NO_DOCUMENTATION
) -> Insights:
    return asyncio.run(build_report(lambda _: iter(records), 30, documentation))


@pytest.mark.parametrize(
    ("question", "least", "most"),
    [
        ("what does error 44203 mean?", MIN_ANSWER_COVERAGE, 1),
        ("拼团活动需要申请哪个权限包", 0.1, MIN_ANSWER_COVERAGE),
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


SHIP, REFUND, GUIDE = ("订单发货", "/ship"), ("退款", "/refund"), ("", "")
MODEL = "openai:scripted-chat"


@pytest.mark.parametrize(
    ("named", "cited", "confidence", "answered_by", "recorded"),
    [
        ((None, None), [SHIP, SHIP], "medium", EXTRACTIVE, SHIP),
        ((None, None), [SHIP], "low", EXTRACTIVE, (None, None)),
        ((None, None), [SHIP, GUIDE], "high", EXTRACTIVE, (None, None)),
        ((None, None), [GUIDE], "high", EXTRACTIVE, (None, None)),
        (("订单发货", None), [REFUND, SHIP], "low", EXTRACTIVE, SHIP),
        ((None, "/ship"), [REFUND, SHIP], "high", EXTRACTIVE, SHIP),
        (("订单发货", None), [REFUND], "high", EXTRACTIVE, ("订单发货", None)),
        (("发货", None), [SHIP], "high", MODEL, SHIP),
        (("发货", None), [SHIP, REFUND], "high", MODEL, ("发货", None)),
    ],
)
def test_record_has_the_api_that_is_named_or_the_only_cited_one(
    named: tuple[str | None, str | None],
    cited: list[tuple[str, str]],
    confidence: Confidence,
    answered_by: str,
    recorded: tuple[str | None, str | None],
) -> None:
    name, url = named
    answer = Answer(
        id="1",
        question="?",
        introduction="",
        answer=["Ship it. [1]"],
        related_url=[],
        type="api_call",
        language="en",
        structured=StructuredQuestion(type="api_call", api_name=name, api_url=url),
        sources=[
            Source(
                number=number,
                source="docs",
                document_id=str(number),
                title=title or "guide",
                section="",
                page_url="",
                api_name=title,
                api_url=path,
                score=1.0,
                text="",
            )
            for number, (title, path) in enumerate(cited, 1)
        ],
        confidence=confidence,
        answered_by=answered_by,
    )
    record = build_record(AskCommand("?"), answer, 1)
    assert (record.api_name, record.api_url) == recorded


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


def test_operations_with_the_same_path_are_counted_separately() -> None:
    operations = [
        DocumentedOperation("Create a booking", "/bookings", "POST"),
        DocumentedOperation("预订", "/bookings", "POST"),
        DocumentedOperation("List bookings", "/bookings", "GET"),
        DocumentedOperation("Update a service", "/services/{id}", "PATCH"),
    ]
    asked_for = {
        ("Create a booking", "/bookings"): 3,
        ("预订", "/bookings"): 1,
        ("List bookings", "/bookings"): 2,
        ("my bookings", "/bookings"): 1,
        ("", "/bookings"): 1,
        ("Update a service", ""): 1,
    }
    records = [
        asked(number, api_name=name, api_url=url)
        for number, (name, url) in enumerate(Counter(asked_for).elements())
    ]
    found = reported(records, DocumentationContext(find_operations=lambda _: operations))
    assert [(each.api_name, each.api_url, each.questions) for each in found.by_api] == [
        ("Create a booking", "/bookings", 4),
        ("List bookings", "/bookings", 2),
        ("", "/bookings", 1),
        ("Update a service", "/services/{id}", 1),
        ("my bookings", "/bookings", 1),
    ]


def test_path_without_the_prefix_of_the_server_is_the_same_operation() -> None:
    operations = [
        DocumentedOperation("List berths", "/quay/v1/berths", "GET"),
        DocumentedOperation("List ropes", "/ships/{id}/ropes", "GET"),
        DocumentedOperation("List ropes", "/ropes", "GET"),
        DocumentedOperation("List bells", "/ships/{id}/bells", "GET"),
    ]
    urls = ("/quay/v1/berths", "/berths", "/v1/berths", "/ropes", "/bells")
    records = [asked(number, api_url=url) for number, url in enumerate(urls)]
    found = reported(records, DocumentationContext(find_operations=lambda _: operations))
    assert [(each.api_url, each.questions) for each in found.by_api] == [
        ("/quay/v1/berths", 3),
        ("/bells", 1),
        ("/ropes", 1),
    ]


def test_errors_are_counted_by_code() -> None:
    texts = [
        "SIGN_ERROR",
        "FAIL SIGN_ERROR 签名错误",
        "SIGN_ERROR: 签名错误",
        "idempotency_mismatch The key was used before",
        "idempotency_mismatch Another message",
        "payment_method is required",
        "payment_method is too long",
    ]
    found = reported([asked(number, error=text) for number, text in enumerate(texts)]).errors
    assert [(each.error, each.questions, each.messages) for each in found] == [
        ("SIGN_ERROR", 3, ("签名错误",)),
        ("idempotency_mismatch", 2, ("Another message", "The key was used before")),
        ("payment_method is required", 1, ()),
        ("payment_method is too long", 1, ()),
    ]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ('{"code":"44203","msg":"sign invalid"}', ("44203", "sign invalid")),
        ("code: 40001, msg: sign invalid", ("40001", "sign invalid")),
        ("HTTP 400 code=40001 msg=sign invalid", ("40001", "HTTP 400 sign invalid")),
        ("{'errCode': 40001, 'errMsg': 'can\\'t sign'}", ("40001", "can't sign")),
        ("error_code=40001", ("40001", "")),
        ("Error code: 40001", ("40001", "")),
        ("err: 40001 (message queue full)", ("40001", "message queue full")),
        ("错误码：40001，错误信息：签名错误", ("40001", "签名错误")),
        ("40001 invalid code", ("40001", "invalid code")),
        ("INVALID_PARAM(10001)", ("INVALID_PARAM", "")),
    ],
)
def test_messages_have_no_labels_braces_and_quotes(error: str, expected: tuple[str, str]) -> None:
    (found,) = reported([asked(1, error=error)]).errors
    code, message = expected
    assert (found.error, found.messages) == (code, (message,) if message else ())


def test_words_of_suggested_questions_are_not_missing(tmp_path: Path) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "page.md").write_text("# 退货\n\n买家在七天内退货。\n")

    async def documented(words: Sequence[str]) -> list[bool]:
        async with open_answer_service(settings_of(tmp_path)) as service:
            await service.ask(AskCommand("退货"))
            context = build_documentation_context(
                service.platform, service.collection, None, None, service.settings
            )
            assert context.is_documented
            return [context.is_documented(word) for word in words]

    words = ("调用", "call", "买家", "发票", "invoice")
    assert asyncio.run(documented(words)) == [True, True, True, False, False]


def test_documents_decide_about_words_pages_and_operations(sample_service: AnswerService) -> None:
    context = build_documentation_context(
        sample_service.platform, sample_service.collection, None, None, sample_service.settings
    )
    assert context.is_documented
    assert context.has_page
    assert context.find_operations
    words = ("signing", "signings", "drone", "发货", "拼团", "货", "鲸")
    expected = [True, True, False, True, False, True, False]
    assert [context.is_documented(word) for word in words] == expected
    entry = sample_service.collection.catalogue()[0]
    urls = (entry.page_url, f"{entry.page_url}#section", "https://open.example.com/deleted", "")
    pages = [Page(title="", page_url=url) for url in urls]
    assert [context.has_page(page) for page in pages] == [True, True, False, True]
    operations = context.find_operations([("", "/dop/api/v1/order/ship"), ("同意退款", "")])
    assert set(operations) == {
        DocumentedOperation("订单发货", "/dop/api/v1/order/ship", "POST"),
        DocumentedOperation("同意退款", "/dop/api/v1/refund/agree", "POST"),
    }


def test_report_on_an_empty_database(kept: RecordDatabase) -> None:
    found = asyncio.run(build_report(kept.store.since, 30, DocumentationContext()))
    assert found == Insights(days=30, questions=0, unanswered=0, off_topic_share=0, cached_share=0)


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


def context_with_embeddings(
    service: AnswerService, model_server: ModelServer, **limits: int
) -> DocumentationContext:
    settings = read_settings(
        embedding_model="openai:scripted-embedding",
        embedding_base_url=model_server.base_url,
        embedding_api_key=SecretStr("test-key"),
        **limits,
    )
    return build_documentation_context(
        service.platform, service.collection, open_embeddings(settings), None, settings
    )


def test_questions_are_embedded_in_batches(
    sample_service: AnswerService, model_server: ModelServer
) -> None:
    known = context_with_embeddings(
        sample_service, model_server, embedding_batch=2, embedding_requests=2
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


def test_time_limit_applies_to_each_embedding_request(
    sample_service: AnswerService, model_server: ModelServer
) -> None:
    model_server.embedding_delay = 0.5
    known = context_with_embeddings(
        sample_service, model_server, embedding_batch=1, embedding_requests=1, request_timeout=2
    )
    found = reported(wordings([f"drone {number}" for number in range(5)]), known)
    assert len(model_server.embedding_requests) == 5
    assert found.notes == ()


def test_embedding_failure_falls_back_to_words() -> None:
    async def embed(_: Sequence[str]) -> Vectors:
        raise ModelUnavailable("the model is away")

    found = reported(RECORDS, DocumentationContext(embed=embed))
    assert [gap.size for gap in found.gaps] == [3]
    assert found.notes == ("questions were grouped by their words alone: the model is away",)


def test_store_failure_falls_back_to_unhelpful_answers() -> None:
    def words(_: object) -> dict[str, float]:
        raise StoreUnavailable("the store is away")

    found = reported(RECORDS, DocumentationContext(words=words))
    assert [gap.size for gap in found.gaps] == [3]
    assert found.notes == (
        "gaps were detected from unhelpful answers only, because the words of the documentation could "
        "not be read: the store is away",
    )


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
def test_csv_has_a_header_and_one_line_per_row(table: TableName) -> None:
    full, empty = to_csv(reported(RECORDS), table), to_csv(reported([]), table)
    assert full.startswith(empty)
    assert len(rows_of(full)) == len(reported(RECORDS).as_json()[table])  # type: ignore[arg-type]
    assert rows_of(empty) == []
