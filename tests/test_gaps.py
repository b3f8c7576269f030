"""Grouping questions by meaning and detecting gaps."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from app.analytics.insights.gaps import (
    GapQuestion,
    find_gaps,
    is_gap_candidate,
    report_gap,
)
from app.analytics.insights.grouping import MAX_TEXTS, WordShares, group_texts
from app.service.answer_service import AnswerService
from runnables.grounding.support import coverage
from runnables.question.query_analysis import Glossary
from schemas.answer import Page
from tests.conftest import SHARED_DATA, needs_shared_data
from tests.gap_questions import ASKED_AT, DATA, gap_set, read_lines

PAGE = Page(title="Orders", page_url="https://open.example.com/orders")
OTHER_PAGE = Page(title="Refunds", page_url="https://open.example.com/refunds")


@pytest.fixture(scope="module")
def document_word_shares(sample_service: AnswerService) -> WordShares:
    """Word frequencies of the samples."""
    collection = sample_service.collection
    collection.load()
    total = collection.manifest.words

    def shares(words: Iterable[str]) -> dict[str, float]:
        return {word: count / total for word, count in collection.word_counts(words).items()}

    return shares


def asked(text: str, **fields: Any) -> GapQuestion:
    """A well answered question, with `fields` changed."""
    answered = GapQuestion(text, ASKED_AT, "general", "high", cited=(PAGE,), coverage=1.0)
    return replace(answered, **fields)


def check_first_three(
    labels: Sequence[str | None], groups: Sequence[Sequence[int]], least: float
) -> None:
    """Assert that the first three groups are the topics, each with a share of `least` of its wordings."""
    topics = []
    for members in groups[:3]:
        topic, count = Counter(labels[index] for index in members).most_common(1)[0]
        assert count >= 0.9 * len(members), [index for index in members if labels[index] != topic]
        assert count >= least * 15, topic
        topics.append(topic)
    assert set(topics) == {label for label in labels if label}


@pytest.mark.parametrize("name", ["zh", "en"])
def test_topics_are_the_largest_groups(name: str, document_word_shares: WordShares) -> None:
    ours = gap_set(name)
    ours += [(line["question"], None) for line in read_lines(DATA / "on_topic.jsonl")]
    groups = group_texts([text for text, _ in ours], document_word_shares=document_word_shares)
    check_first_three([label for _, label in ours], [each.members for each in groups], 0.6)


@pytest.mark.acceptance
@needs_shared_data
@pytest.mark.parametrize("name", ["zh", "en"])
def test_off_topic_questions_are_no_gap(name: str, document_word_shares: WordShares) -> None:
    """Off-topic questions can join a gap but not form one, even if forty ask for a hotel."""
    gaps = [(asked(text, coverage=0.3), topic) for text, topic in gap_set(name)]
    chatter = [line["query"] for line in read_lines(SHARED_DATA / "offtopic.jsonl")]
    refused = [(asked(text, type="unknown", cited=()), None) for text in chatter[:300]]
    questions = gaps + refused
    candidates = [question for question, _ in questions]
    found = asyncio.run(find_gaps(candidates, document_word_shares=document_word_shares))
    assert found
    for gap in found:
        strangers = [index for index in gap.members if questions[index][1] is None]
        assert len(strangers) <= 0.1 * len(gap.members), gap


@pytest.mark.parametrize(
    ("fields", "is_candidate"),
    [
        ({}, False),
        ({"type": "unknown", "cited": ()}, True),
        ({"confidence": "low"}, True),
        ({"cited": ()}, True),
        ({"coverage": 0.3}, True),
        ({"coverage": None, "confidence": "medium"}, True),
        ({"coverage": None}, False),
        ({"feedback": -1}, True),
        ({"confidence": "low", "coverage": 0.1, "feedback": 1}, False),
    ],
)
def test_is_gap_candidate(fields: dict[str, Any], is_candidate: bool) -> None:
    assert is_gap_candidate(asked("怎么发货", **fields)) is is_candidate


def test_gap_has_representative_size_and_most_common_page() -> None:
    texts = ["Is there a drone API?", "drone delivery", "drone delivery price", "refund an order"]
    pages = [PAGE, OTHER_PAGE, OTHER_PAGE, PAGE]
    failed = [
        asked(text, confidence="low", cited=(), nearest=page)
        for text, page in zip(texts, pages, strict=True)
    ]
    (group,) = asyncio.run(find_gaps(failed, document_word_shares=lambda _: {}))
    assert group.members == (0, 1, 2)
    gap = report_gap(group, failed)
    assert gap.size == 3
    assert gap.question == "drone delivery"
    assert gap.nearest == OTHER_PAGE
    assert gap.missing[0] == "drone"


def test_missing_words_are_whole_words() -> None:
    texts = ["invoices of a shop", "invoices for a shop", "two invoices, one shop"]
    failed = [asked(text, feedback=-1) for text in texts]

    def document_word_shares(words: Iterable[str]) -> dict[str, float]:
        return {word: 0.1 for word in words if word == "shop"}

    (group,) = asyncio.run(find_gaps(failed, document_word_shares=document_word_shares))
    assert report_gap(group, failed).missing == ("invoices",)


def test_words_with_documented_forms_are_neither_missing_nor_a_gap() -> None:
    answered = [asked(f"invoices of {shop}", coverage=0.5) for shop in ("one", "two", "three")]
    find = partial(find_gaps, answered, document_word_shares=lambda _: {})
    (group,) = asyncio.run(find(is_documented=lambda word: word != "invoices"))
    assert group.undocumented == ("invoices",)
    assert asyncio.run(find(is_documented=lambda _: True)) == []


def test_deleted_page_is_not_the_nearest() -> None:
    failed = [
        asked("drone delivery", feedback=-1, nearest=page) for page in (PAGE, PAGE, OTHER_PAGE)
    ]
    (group,) = asyncio.run(find_gaps(failed))
    assert report_gap(group, failed).nearest == PAGE
    assert report_gap(group, failed, lambda page: page != PAGE).nearest == OTHER_PAGE
    assert report_gap(group, failed, lambda _: False).nearest is None


def test_word_of_most_questions_does_not_join_them() -> None:
    """The central noun of a platform joins nothing, but a topic that the documents lack is found."""
    rest = (
        "shift in Samoa",
        "emoji",
        "webinar",
        "timezone",
        "no email",
        "chargeback",
        "Excel",
        "VAT",
    )
    bookings = [f"booking {other}" for other in rest] * 5
    texts = [*bookings, "booking a drone", "drone", "is there a drone for a booking"]

    def document_word_shares(words: Iterable[str]) -> dict[str, float]:
        return {word: 0.002 for word in words if word == "booking"}

    groups = group_texts(texts, document_word_shares=document_word_shares)
    assert max(len(group.members) for group in groups) <= 5
    drones = next(group for group in groups if len(texts) - 1 in group.members)
    assert drones.members == tuple(range(len(bookings), len(texts)))


def test_no_words_are_missing_if_the_documented_words_are_unknown() -> None:
    failed = [asked("invoices of a shop", feedback=-1)] * 3
    (group,) = asyncio.run(find_gaps(failed))
    assert report_gap(group, failed).missing == ()


def test_documented_topic_is_a_gap_only_if_answers_fail() -> None:
    def document_word_shares(words: Iterable[str]) -> dict[str, float]:
        return dict.fromkeys(words, 2e-4)

    texts = ["drone delivery price", "price of a drone delivery", "drone delivery: which price"]
    answered = [asked(text, coverage=0.5) for text in texts]
    failed = [asked(text, feedback=-1) for text in texts]
    assert asyncio.run(find_gaps(answered, document_word_shares=document_word_shares)) == []
    (gap,) = asyncio.run(find_gaps(failed, document_word_shares=document_word_shares))
    assert gap.members == (0, 1, 2)


@pytest.mark.parametrize(
    ("text", "cited", "expected"),
    [
        ("how do I ship an order", "An order is shipped in two steps.", 1.0),
        ("drone", "An order is shipped in two steps.", 0.0),
        ("怎么", "", 1.0),
    ],
)
def test_coverage(text: str, cited: str, expected: float) -> None:
    assert coverage(text, cited) == expected


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        ([], []),
        (["怎么发货"], [1]),
        (["drone delivery"] * 4, [4]),
        (["drone delivery", "", "😀😀", "直播间 " * 20_000], [1, 1, 1, 1]),
        (["1 + 1", "?", "怎么"], [1, 1, 1]),
    ],
)
def test_unusual_texts_are_grouped(texts: list[str], sizes: list[int]) -> None:
    assert [len(each.members) for each in group_texts(texts)] == sizes


@pytest.mark.acceptance
def test_texts_beyond_the_limit_are_ignored() -> None:
    topics = ("drone", "coupon", "terraform", "webinar", "chargeback")
    groups = group_texts([f"{topics[n % 5]} {n}" for n in range(MAX_TEXTS + 500)])
    assert [len(each.members) for each in groups] == [MAX_TEXTS // 5] * 5


def test_glossary_joins_languages() -> None:
    texts = ["无人机", "无人机价格", "drone", "drone price"]
    assert len(group_texts(texts)) > 1
    assert len(group_texts(texts, glossary=Glossary({"无人机": ["drone"]}))) == 1


def test_vectors_join_texts_without_common_words() -> None:
    texts = ["drone", "unmanned aircraft", "coupon", "voucher"]
    vectors = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    assert [each.members for each in group_texts(texts, vectors)] == [(0, 1), (2, 3)]
