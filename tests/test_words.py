"""Words of full-text search: whatever a question writes like the document is found in it."""

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ingestion.text.word_frequency import RAREST_ZIPF, listed_words, zipf_frequency
from ingestion.text.words import index_words, normalise, query_text, split_words, stem
from schemas.choices import Language

TEXTS = [
    "cancel_pick_up",
    "用getUserInfo接口查询",
    "getOrders returns policies",
    "isv.invalid-signature",
    "/dop/api/v1/invoice/cancel_pick_up",
    "https://open.example.com/api/order/search?apiId=1180",
    "ＡＢＣ＿ｄｅｆ，错误码：４０００１",
    "X-Dop-Trace-Id",
    "refund_policies[].createdTimes",
    "HTTPServerError at http://host:8080/a//b",
    "错误码 isv.missing-parameters:app_keys",
    "__init__ a__b -x- ..",
    "取消\ud800揽收",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_found_by_all_of_itself(text: str) -> None:
    asked, indexed = split_words(query_text(text)), index_words(text)
    assert asked
    assert set(asked) <= set(indexed)


@pytest.mark.parametrize(
    ("document", "question"),
    [
        ("cancel_pick_up", "cancelPickUp"),
        ("cancelPickUp", "cancel_pick_up"),
        ("cancel_pick_up", "CancelPickup"),
        ("调用getUserInfo接口", "user"),
        ("get_userInfo", "info"),
        ("/api/order/search", "https://open.example.com/api/order/search"),
        ("/api/order-list/search", "order_list"),
        ("isv.invalid-signature", "ISV.INVALID_SIGNATURE"),
        ("ＡＢＣ＿ｄｅｆ", "abc_def"),
        ("abc_def", "ＡＢＣ＿ｄｅｆ"),
        ("错误码：４０００１", "40001"),
    ],
)
def test_a_name_is_found_in_another_spelling(document: str, question: str) -> None:
    assert set(split_words(query_text(question))) & set(index_words(document))


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("cancel_pick_up", "cancelpickup"),
        ("isv.invalid-signature", "isvinvalidsignatur"),
        ("https://open.example.com/api/v1/order_ship", "ordership"),
        ("https://open.example.com/api/v1/order_ship", "apiv1ordership"),
    ],
)
def test_an_identifier_is_also_one_word(text: str, joined: str) -> None:
    """A whole identifier is rarer than its parts, so that it outranks them."""
    for words in (index_words(text), split_words(query_text(text))):
        assert any(word.startswith(joined) for word in words)


@pytest.mark.parametrize(
    ("question", "kept", "dropped"),
    [
        ("how is the signature made", {"signatur"}, {"the", "is"}),
        ("订单的签名", {"签名"}, {"的"}),
    ],
)
def test_common_words_are_not_asked_for(question: str, kept: set[str], dropped: set[str]) -> None:
    words = set(split_words(query_text(question)))
    assert not words & dropped
    assert all(any(word.startswith(stem) for word in words) for stem in kept)
    assert dropped <= set(index_words(question))


@pytest.mark.parametrize("question", ["the", "的", "is the", "???", ""])
def test_a_question_of_nothing_else_is_asked_as_it_is(question: str) -> None:
    assert query_text(question) == question


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("isv.invalid-signature", ["isv", "invalid", "signature"]),
        ("Order_No：12", ["order", "no", "12"]),
        ("a__b", ["a", "b"]),
        ("签名 错误！", ["签名", "错误"]),
        (" ，。_ -- / ", []),
    ],
)
def test_words_are_lower_case_and_no_punctuation(text: str, expected: list[str]) -> None:
    assert split_words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ＡＢＣ－１２３，：", "ABC-123,:"), ("中文 abc", "中文 abc"), ("①ﬁ", "1fi")],
)
def test_full_width_becomes_half_width(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize("length", [399, 400, 401, 800, 5_000])
def test_no_run_is_longer_than_400_characters(length: int) -> None:
    text = normalise("订单" * length)
    assert max(map(len, re.findall(r"\w+", text))) <= 400
    assert text.replace(" ", "") == "订单" * length


def test_how_common_a_word_is() -> None:
    assert zipf_frequency("的") > zipf_frequency("订单") > zipf_frequency("揽收") >= RAREST_ZIPF
    assert zipf_frequency("the") > zipf_frequency("signature") > RAREST_ZIPF
    for unlisted in ("cancelpickup", "", "龘龘龘龘", "\ud800", "zzzzzz"):
        assert zipf_frequency(unlisted) == RAREST_ZIPF


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_listed_word_is_found(language: Language) -> None:
    of_the_language = [
        (word, zipf)
        for word, zipf in listed_words(language)
        if word.isascii() == (language == "en")
    ]
    for word, zipf in of_the_language[::500]:
        assert zipf_frequency(word) == max(zipf, RAREST_ZIPF)


ENDINGS = (
    "ationalized",
    "ousnesses",
    "izations",
    "fulnesses",
    "ivenesses",
    "entialities",
    "abilities",
)


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    seconds = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(seconds)


@pytest.mark.usefixtures("hasty_threads")
def test_threads_stem_their_own_words() -> None:
    words = [f"{start}{end}" for start in "abcdefghijklmnop" for end in ENDINGS]
    expected = list(map(stem, words))
    stem.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda turn: list(map(stem, words[turn:])), range(4))
        assert [each == expected[turn:] for turn, each in enumerate(found)] == [True] * 4
