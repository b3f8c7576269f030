"""Tests of the terms of a question, and of the sections that they choose."""

import asyncio
from pathlib import Path

import pytest

from app.service.answer_service import open_answer_service
from ingestion.chunking import chunk_document
from ingestion.store.collection import Collection
from runnables.question.extract_details import extract_details
from runnables.question.needs import needs_of
from runnables.question.query_analysis import Glossary, names_of_fields
from runnables.retrieval.heading_numbers import chunks_by_heading_number, heading_numbers
from runnables.retrieval.query_terms import QueryTerms
from schemas.document import Section, SourceDocument
from schemas.question import Filters
from schemas.settings import read_settings
from tests.collections import open_collection, write
from tests.small_platform import PLATFORM, guides, quoted_page, settings_of

RELEASES = """# Release notes

## 3.5.6 (2025-06-20)

- An alias binds at most ten devices.

## 3.5.0 (2025-05-12)

- New feature: certificates.

# Use of the console

## 4.2 Callbacks

Enter the address on the page Functions.

## 5.1 Statistics

Updated at ten every day. What was updated is new.
"""


def terms_of(folder: Path, question: str, page: str = "# Guide\n\nSend an order.\n") -> QueryTerms:
    """Return the terms of `question` about documents with one page."""
    (folder / "platform.toml").write_text(PLATFORM)
    settings = settings_of(folder)
    guides(settings).mkdir()
    (guides(settings) / "page.md").write_text(page)

    def read(collection: Collection) -> QueryTerms:
        return QueryTerms.of(extract_details(question), None, collection, Glossary({}))

    async def read_terms() -> QueryTerms:
        async with open_answer_service(settings) as service:
            return await service.collection.run(lambda: read(service.collection))

    return asyncio.run(read_terms())


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("order_id", True),
        ("what does error 40012 mean", True),
        ("how do i get an api key", False),
        ("webhook", False),
    ],
)
def test_question_without_identifiers_is_not_only_about_identifiers(
    tmp_path: Path, question: str, expected: bool
) -> None:
    assert terms_of(tmp_path, question).is_only_identifiers is expected


def test_equivalent_words_of_a_question_count_once(tmp_path: Path) -> None:
    terms = terms_of(tmp_path, "max limit of a search")
    assert terms.found_in("a limit") == {"limit"}
    assert terms.found_in("max 20") == {"max"}
    assert "max" in terms.found_in("at most: the maximum")


def test_weight_of_a_word_depends_on_all_its_forms(tmp_path: Path) -> None:
    page = f"# Guide\n\nA zebra. {'Refunds are refunded. ' * 20}"
    terms = terms_of(tmp_path, "refund a zebra", page)
    assert terms.weights["refund"] < terms.weights["zebra"]


@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("https://x.example/limits?max=3&size=2 fails", False),
        ("https://x.example/?max=3 报错", False),
        ("GET /limits?max={max} fails", False),
        ("GET /limits?最多几个", True),
        ("what is the limit of /rooms? max or min", True),
    ],
)
def test_words_of_an_address_do_not_ask_for_a_quantity(question: str, is_asked: bool) -> None:
    assert ("quantity" in needs_of(question)) is is_asked


@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("上传文件怎么算签名", False),
        ("透传的消息怎么收", False),
        ("type 传什么", True),
        ("上传时要传哪个值", True),
        ("附件能传 80M 吗", False),
    ],
)
def test_upload_does_not_ask_for_parameters(question: str, is_asked: bool) -> None:
    assert ("parameter" in needs_of(question)) is is_asked


@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("怎么获取 boxToken", True),
        ("box_id 从哪里来", True),
        ("token怎么拿", True),
        ("How do I get an Access Token?", True),
        ("where do we find the refresh token?", True),
        ("怎么获取 SDK", False),
        ("how do I get a refund", False),
        ("怎么拿 boxToken() 的返回值", False),
    ],
)
def test_source_of_a_named_value_asks_for_what_a_call_returns(
    question: str, is_asked: bool
) -> None:
    assert (needs_of(question) == {"returned", "response"}) is is_asked


@pytest.mark.parametrize(
    ("question", "is_asked"),
    [
        ("建房间成功是200还是201", True),
        ("Is it 200 or 204?", True),
        ("take 2000 or 2040 rows", False),
    ],
)
def test_two_success_statuses_ask_for_the_response(question: str, is_asked: bool) -> None:
    assert ("response" in needs_of(question)) is is_asked


@pytest.mark.parametrize(
    ("question", "numbers"),
    [
        ("3.5.6 更新了什么", ["3.5.6"]),
        ("what is new in v3.5", ["3.5"]),
        ("changes since version 2.0.1", ["2.0.1"]),
        ("is TLS 1.2 supported", []),
        ("python 3.8 ok?", []),
        ("手续费 0.6%", []),
        ("1.5 元一条吗", []),
        ("call 2025.01.02", []),
        ("POST /v1/orders HTTP/1.1", []),
        ("GET /v2.0/orders", []),
        ("pip install requests==2.31.0", []),
        ("amount 1.2 fails", []),
        ("after 1.5 days", []),
        ("控制台 4.2 怎么配置", ["4.2"]),
        ("温度设为 0.7 报错", []),
        ("2.1.0 2.1.0 2.2.0 2.3.0 2.4.0", ["2.1.0", "2.2.0", "2.3.0"]),
    ],
)
def test_numbers_of_versions_and_chapters(question: str, numbers: list[str]) -> None:
    assert heading_numbers(question) == numbers


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("what was updated in 3.5.6", "ten devices"),
        ("3.5.6 更新了什么", "ten devices"),
        ("what is new in 3.5", "certificates"),
        ("4.2 怎么配置", "page Functions"),
    ],
)
def test_section_with_the_number_of_the_question_is_quoted(
    tmp_path: Path, question: str, fact: str
) -> None:
    assert fact in quoted_page(tmp_path, RELEASES, question)


def test_filter_finds_the_number_in_any_of_many_documents(tmp_path: Path) -> None:
    sections = (Section(kind="prose", heading=("4.2 Callbacks",), body="Enter the address."),)
    editions = [
        SourceDocument(
            id=f"manual-{year}",
            source="guides",
            title="Manual",
            language="en",
            metadata={"edition": str(year)},
            sections=sections,
        )
        for year in range(1990, 2026)
    ]
    collection = open_collection(read_settings(milvus_uri=str(tmp_path / "milvus.db")), "embedded")
    write(collection, [chunk for each in editions for chunk in chunk_document(each, 400)])
    for year in ("1990", "2025"):
        found = chunks_by_heading_number(
            collection, "what is in chapter 4.2", Filters(metadata={"edition": year})
        )
        assert [chunk.document_id for chunk in found] == [f"manual-{year}"]
    collection.close()


@pytest.mark.parametrize(
    ("question", "text"), [("标签会覆盖吗", "标签是全量更新"), ("把标签删掉", "传空则删除标签")]
)
def test_other_word_for_an_action_is_found(question: str, text: str, tmp_path: Path) -> None:
    terms = terms_of(tmp_path, question, f"# 标签\n\n{text}。\n")
    assert terms.share(terms.found_in(text)) == 1


@pytest.mark.parametrize(
    ("question", "names"), [("tags 传空数组会怎样", ["tags"]), ("file 传输失败", [])]
)
def test_word_before_a_value_to_send_is_a_field(question: str, names: list[str]) -> None:
    assert names_of_fields(question) == names


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("The kiln has a touch screen. What now", set()),
        ("what is glaze_id. And where", {"glaze_id"}),
        ("edit kiln.json. What now", {"kiln.json"}),
    ],
)
def test_word_before_a_full_stop_is_not_a_value(
    tmp_path: Path, question: str, values: set[str]
) -> None:
    assert terms_of(tmp_path, question).values == values
