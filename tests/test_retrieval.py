"""Tests of retrieval on the samples: the page with the answer is among the first five."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.main import create_app
from app.service.answer_service import AnswerService
from ingestion.store.collection import ChunkHit
from ingestion.text.words import query_words
from runnables.question.query_analysis import Glossary, general_lexicon, split_question
from runnables.retrieval.chunk_search import count_tokens, fill_evidence
from runnables.retrieval.ranking import diversify, weigh_sections
from schemas.document import Chunk, RetrievedChunk, SectionKind
from tests.acme import PLATFORM, write_pages
from tests.chunks import page
from tests.conftest import ServiceFactory
from tests.http_client import http_client
from tests.model_replies import MakeClient, draft, is_classification, structured
from tests.model_server import ModelServer

DATA = Path(__file__).parent / "data"
GLOSSARY: dict[str, Any] = tomllib.loads((DATA / "glossary_samples.toml").read_text("utf-8"))


def read(name: str) -> list[dict[str, Any]]:
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def retrieved_documents(client: TestClient[Litestar], question: str, k: int = 5) -> list[str]:
    """Return the ids of the documents of the first k chunks."""
    sources = client.post("/retrieve", json={"question": question, "k": k}).json()["sources"]
    return [TITLES[source["title"]] for source in sources]


TITLES: dict[str, str] = {}


@pytest.fixture(scope="module", autouse=True)
def titles(sample_service: AnswerService) -> None:
    for chunk in sample_service.collection.stored_chunks():
        (known, *_) = sample_service.collection.chunks_by_id([chunk.id])
        TITLES[known.title] = known.document_id


@pytest.fixture(scope="module")
def with_glossary(sample_service: AnswerService) -> Any:
    platform = sample_service.platform.model_copy(update=GLOSSARY)
    with http_client(
        create_app(AnswerService(sample_service.settings, platform, sample_service.job))
    ) as client:
        yield client


def missed_questions(
    client: TestClient[Litestar], questions: Sequence[dict[str, Any]]
) -> list[str]:
    return [
        f"{q['question']}: {q['gold']}, not {retrieved_documents(client, q['question'])}"
        for q in questions
        if not set(q["gold"]) & set(retrieved_documents(client, q["question"]))
    ]


@pytest.mark.acceptance
def test_retrieval_finds_the_page_of_sixty_questions(
    client: TestClient[Litestar], with_glossary: TestClient[Litestar]
) -> None:
    """A glossary does not harm questions in the language of the documents."""
    questions = read("retrieval_samples")
    assert len(questions) == 60
    for answer_service in (client, with_glossary):
        wrong = missed_questions(answer_service, questions)
        assert len(wrong) <= 2, "\n".join(wrong)


@pytest.mark.acceptance
def test_glossary_finds_pages_in_the_other_language(with_glossary: TestClient[Litestar]) -> None:
    """All pages if the glossary has 40 % of the words that name the page in its language; most if it has any.

    A missing word may be the topic of the page.
    """
    questions = [*read("retrieval_cross_en_zh"), *read("retrieval_cross_zh_en")]
    glossary = Glossary(GLOSSARY["glossary"])

    def glossary_share(question: dict[str, Any]) -> float:
        expected = set(query_words(" ".join(question["terms"])))
        added = set(query_words(" ".join(glossary.equivalents(question["question"]))))
        return len(expected & added) / len(expected)

    well_covered = [question for question in questions if glossary_share(question) >= 0.4]
    assert len(well_covered) >= 10
    assert not missed_questions(with_glossary, well_covered)
    covered = [question for question in questions if glossary_share(question) > 0]
    assert len(missed_questions(with_glossary, covered)) <= 0.25 * len(covered)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("terms & conditions", ["and"]),
        ("Drones for hire", ["无人机"]),
        ("drone-less", ["无人机"]),
        ("and", ["&"]),
    ],
)
def test_glossary_terms_may_be_signs_words_or_chinese(text: str, expected: list[str]) -> None:
    assert Glossary({"&": ["and"], "无人机": ["drone"]}).equivalents(text) == expected


@pytest.mark.acceptance
@pytest.mark.parametrize("direction", ["en_zh", "zh_en"])
def test_search_terms_of_the_model_find_pages_in_the_other_language(
    model_client: MakeClient, model_server: ModelServer, direction: str
) -> None:
    """The page is among the five in the prompt for the answer."""
    terms: list[str] = []
    model_server.route(
        is_classification,
        lambda request: structured(type="general", api_name=None, search_terms=terms),
    )
    model_server.default = draft("Yes. [1]")
    client, wrong = model_client(), list[str]()
    questions = read(f"retrieval_cross_{direction}")
    assert len(questions) == 20
    for question in questions:
        terms[:] = question["terms"]
        client.post("/ask", json={"question": question["question"]})
        given = model_server.chat_requests[-1].text
        titles = [title for title, known in TITLES.items() if known in question["gold"]]
        if not any(f"\n# {title}" in given for title in titles):
            wrong.append(f"{question['question']}: {question['gold']}")
    assert not wrong, "\n".join(wrong)


def test_search_terms_find_pages_that_share_no_word_with_the_question(
    model_client: MakeClient, model_server: ModelServer
) -> None:
    terms = ["对账单下载", "price of a SKU"]
    model_server.route(
        is_classification,
        lambda request: structured(type="general", api_name=None, search_terms=terms),
    )
    model_server.default = draft("好。[1]")
    model_client().post("/ask", json={"question": "月底那堆数字咋拿"})
    classification, answer = (request.text for request in model_server.chat_requests[-2:])
    assert "每种语言（中文、英文）" in classification
    assert "\n# 对账单下载" in answer
    assert "\n# Update SKU Price" in answer
    assert "对账单下载" not in answer.partition("<details>")[2]


@pytest.mark.parametrize(
    ("filters", "allowed"),
    [
        ({"source": "guides"}, lambda source: not source["apiName"]),
        ({"service": "refund"}, lambda source: source["title"].endswith(("退款", "查询"))),
        ({"metadata": {"category": "基础"}}, lambda source: source["metadata"]["category"] == "基础"),
        ({"source": "reference", "metadata": {"version": "v1"}}, lambda source: source["metadata"]["version"] == "v1"),
        ({"source": "nowhere"}, None),
        ({"metadata": {"we\"ird\\": "\" or 1 == 1"}}, None),
        ({}, lambda source: True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("question", ["退款单怎么同意", "/dop/api/v1/order/ship 怎么签名"])
def test_filters_restrict_retrieval_and_citations(
    client: TestClient[Litestar], question: str, filters: dict[str, Any], allowed: Any
) -> None:
    body = {"question": question, "filters": filters, "k": 8}
    sources = client.post("/retrieve", json=body).json()["sources"]
    assert all(allowed(source) for source in sources) if allowed else not sources
    assert bool(sources) == bool(allowed)
    cited = client.post("/ask", json=body).json()["sources"]
    assert all(allowed(source) for source in cited) if allowed else not cited


def test_retrieval_covers_all_parts_of_a_question(client: TestClient[Litestar]) -> None:
    questions = read("multi_part")
    wrong = [
        f"{q['question']} {split_question(q['question'])}: {q['gold']}, not {found}"
        for q in questions
        if (found := set(retrieved_documents(client, q["question"])))
        and not all(found & set(gold) for gold in q["gold"])
    ]
    assert len(wrong) <= len(questions) - 5, "\n".join(wrong)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("how do I ship and then issue an invoice", ["how do I ship", "issue an invoice"]),
        ("先取消揽收再退款要调哪两个接口", ["取消揽收", "退款要调哪两个接口"]),
        ("首先登录再下单怎么做", ["首先登录再下单怎么做"]),
        ("怎么发货，然后开票？", ["怎么发货", "开票"]),
        (
            "what is the limit, and how do I raise it?",
            ["what is the limit, and how do I raise it?"],
        ),
        ("怎么建门店，然后怎么删除它", ["怎么建门店，然后怎么删除它"]),
        ("怎么签名？签名错了报什么错？", ["怎么签名", "签名错了报什么错"]),
        ("批量发货以及如何开发票", ["批量发货", "开发票"]),
        ("怎么发货？请说明。", ["怎么发货？请说明。"]),
        ("how do I pay; the amount is 3", ["how do I pay; the amount is 3"]),
        ("how do I pay? Is there a limit?", ["how do I pay", "Is there a limit"]),
        (
            "how do I pay; for refunds, is there a fee",
            ["how do I pay", "for refunds, is there a fee"],
        ),
        ("order number and tracking number", ["order number and tracking number"]),
        ("请求头和签名怎么写", ["请求头和签名怎么写"]),
        ("a? b? c? d?", ["a? b? c? d?"]),
        ("", [""]),
    ],
)
def test_split_question_splits_sequences_only(question: str, expected: list[str]) -> None:
    assert split_question(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("how do I print waybills", ["面单", "express sheet"]),
        ("面单怎么打印", ["waybill", "express sheet"]),
        ("EXPRESS SHEETS", ["面单", "waybill"]),
        ("面单 waybill", ["express sheet"]),
        ("billing of ways", []),
        ("", []),
    ],
)
def test_glossary_is_read_in_both_directions(question: str, expected: list[str]) -> None:
    assert Glossary({"面单": ["waybill", "express sheet"]}).equivalents(question) == expected


@pytest.mark.parametrize(
    ("documents", "k", "expected"),
    [
        ("aaaab", 5, "aaaba"),
        ("aaaaab", 5, "aaaba"),
        ("aaaaabc", 5, "aaabc"),
        ("aaaa", 5, "aaaa"),
        ("aaaabbbbcc", 10, "aaabbabbcc"),
        ("ab", 1, "a"),
        ("", 5, ""),
    ],
)
def test_diversify_limits_the_share_of_one_document(documents: str, k: int, expected: str) -> None:
    found = [retrieved_chunk(document, position) for position, document in enumerate(documents)]
    assert "".join(r.chunk.document_id for r in diversify(found, k)) == expected


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("pay the customer his money back", "1602"),
        ("when does the courier collect my parcels", "1180"),
        ("发货之后想要快递轨迹", "1182"),
    ],
)
def test_lexicon_finds_pages_that_use_other_words(
    client: TestClient[Litestar], question: str, page: str
) -> None:
    assert page in retrieved_documents(client, question)


def test_lexicon_translates_everyday_words() -> None:
    lexicon = general_lexicon(frozenset({"zh", "en"}))
    assert {"退款", "refund"} <= set(lexicon.equivalents("get my money back"))
    assert "password" in lexicon.equivalents("忘记密码")
    assert lexicon.equivalents("hello") == []


def test_lexicon_translates_a_language_that_no_document_has() -> None:
    for_english, for_chinese = (general_lexicon(frozenset({each})) for each in ("en", "zh"))
    assert {"replace", "avatar"} <= set(for_english.equivalents("怎么替换头像"))
    assert "replace" not in for_chinese.equivalents("怎么替换头像")
    assert {"替换", "头像"} <= set(for_chinese.equivalents("replace the avatar"))
    assert "更换" not in for_english.equivalents("怎么替换头像")


def test_request_parameters_of_the_best_api_are_among_the_first_three(
    client: TestClient[Litestar],
) -> None:
    reply = client.post("/retrieve", json={"question": "取消上门揽收预约的错误码", "k": 5}).json()
    sections = [(source["title"], source["section"]) for source in reply["sources"]]
    assert sections[0] == ("取消上门揽收预约", "错误码")
    assert ("取消上门揽收预约", "请求参数") in sections[:3]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("取消订单", ["request_url", "error_codes", "public_parameters"]),
        ("取消订单报错", ["error_codes", "request_url", "public_parameters"]),
        ("取消订单的公共参数", ["public_parameters", "request_url", "error_codes"]),
    ],
)
def test_sections_that_the_question_asks_for_come_first(
    question: str, expected: list[SectionKind]
) -> None:
    kinds: list[SectionKind] = ["public_parameters", "request_url", "error_codes"]
    found = {ChunkHit(kind, "docs", "a", kind): 1.0 for kind in kinds}
    assert [hit.kind for hit in weigh_sections(found, question)] == expected


def retrieved_chunk(document: str, position: int, kind: SectionKind = "prose") -> RetrievedChunk:
    chunk = Chunk(
        id=f"{document}{position}", source="s", document_id=document, title="t", section="",
        kind=kind, position=position, language="zh", body="", text="", content_hash="",
    )  # fmt: skip
    return RetrievedChunk(chunk=chunk, score=1.0 - position / 100)


def test_section_that_several_pages_repeat_is_returned_once(
    make_service: ServiceFactory, tmp_path: Path
) -> None:
    repeated = "# Webhooks\n\n## Retries\n\nA failed webhook is retried.\n\n## {0}\n\nFor {0}.\n"
    pages = {edition: repeated.format(edition) for edition in ("cloud", "server", "desktop")}
    (tmp_path / "guides").mkdir()
    (tmp_path / "platform.toml").write_text(PLATFORM)
    write_pages(tmp_path, queues="# Queues\n\nA message is retried three times.\n", **pages)
    with http_client(create_app(make_service(platform=tmp_path / "platform.toml"))) as client:
        question = {"question": "how often is a failed webhook retried?", "k": 2}
        sources = client.post("/retrieve", json=question).json()["sources"]
    assert [source["section"] for source in sources] == ["Retries", ""]


def test_several_short_chunks_are_read_instead_of_a_long_one_of_a_better_rank() -> None:
    best, long, *short = (
        RetrievedChunk(chunk=page(name, text)[0], score=1.0)
        for name, text in [
            ("best", "How to refund an order."),
            ("long", "A refund is paid in parts. " * 40),
            ("short", "A refund takes three days."),
            ("shorter", "Refunds are free."),
        ]
    )
    room = count_tokens([best, long])

    assert fill_evidence([best], [best, long], room) == [best, long]
    assert fill_evidence([best], [best, long, *short], room) == [best, *short]
    copy = short[0].chunk.model_copy(update={"id": "copy", "document_id": "copy"})
    repeated = RetrievedChunk(chunk=copy, score=1.0)
    assert fill_evidence([best], [best, short[0], repeated], room) == [best, short[0]]
    other = RetrievedChunk(chunk=copy.model_copy(update={"title": "Another API"}), score=1.0)
    assert fill_evidence([best], [best, short[0], other], room) == [best, short[0], other]
