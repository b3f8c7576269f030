"""Tests of the terms of a question."""

import asyncio
from pathlib import Path

import pytest

from app.service.answer_service import open_answer_service
from ingestion.store.collection import Collection
from runnables.question.extract_details import extract_details
from runnables.question.needs import needs_of
from runnables.question.query_analysis import Glossary
from runnables.retrieval.query_terms import QueryTerms
from tests.small_platform import PLATFORM, guides, settings_of


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
        ("上传文件怎么算签名", False),
        ("透传的消息怎么收", False),
        ("type 传什么", True),
        ("上传时要传哪个值", True),
    ],
)
def test_upload_does_not_ask_for_parameters(question: str, is_asked: bool) -> None:
    assert ("parameter" in needs_of(question)) is is_asked
