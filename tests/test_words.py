"""Tests of the words of full-text search and their frequencies."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ingestion.text.language import RAREST_ZIPF, listed_words, zipf_frequency
from ingestion.text.words import (
    index_terms,
    index_words,
    inflected_forms,
    joined_word,
    normalise,
    query_terms,
    query_words,
    split_words,
    stem,
    vocabulary_words,
)
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
def test_query_of_a_text_uses_its_index_words(text: str) -> None:
    asked, indexed = query_words(text), index_words(text)
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
def test_identifier_matches_another_spelling(document: str, question: str) -> None:
    assert set(query_words(question)) & set(index_words(document))


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("cancel_pick_up", "cancelpickup"),
        ("isv.invalid-signature", "isvinvalidsignatur"),
        ("https://open.example.com/api/v1/order_ship", "ordership"),
        ("https://open.example.com/api/v1/order_ship", "apiv1ordership"),
    ],
)
def test_identifier_is_indexed_in_joined_form(text: str, joined: str) -> None:
    """The joined form is rarer than the parts, so it ranks higher."""
    for words in (index_words(text), query_words(text)):
        assert any(word.startswith(joined) for word in words)


@pytest.mark.parametrize(
    ("question", "kept", "dropped"),
    [
        ("how is the signature made", {"signatur"}, {"the", "is"}),
        ("订单的签名", {"签名"}, {"的"}),
        ("does the go sdk retry", {"go", "sdk"}, {"the"}),
        ("sign a token in Go?", {"token", "go"}, {"in"}),
        ("where does the token go after that", {"token"}, {"go"}),
        ("work群能解散吗", {"work"}, set()),
        ("返回 it is not the user 怎么办", {"user"}, {"it", "is", "the"}),
        ("whats new in the last release", {"releas"}, {"what"}),
    ],
)
def test_query_omits_common_words(question: str, kept: set[str], dropped: set[str]) -> None:
    words = set(query_words(question))
    assert not words & dropped
    assert all(any(word.startswith(stem) for word in words) for stem in kept)
    assert dropped <= set(index_words(question))


@pytest.mark.parametrize(
    ("question", "document", "shared"),
    [
        ("如何开发票", "开票和发票", {"发票", "开", "发", "票"}),
        ("泄漏", "泄露", {"泄"}),
        ("订单的签名", "订单签名", {"订单", "签名", "订", "单", "签", "名"}),
        ("signatures of orders", "the order signature", {"signatur", "order"}),
        ("INVALID_SIGN", "`invalid_sign`", {"invalid", "sign", "invalidsign"}),
        ("的", "的", {"的"}),
    ],
)
def test_question_finds_the_terms_of_a_document(
    question: str, document: str, shared: set[str]
) -> None:
    indexed = index_terms(document, vocabulary_words(document))
    assert set(query_terms(question)) & set(indexed) == shared


@pytest.mark.parametrize(
    ("word", "forms", "others"),
    [
        ("refund", {"refunds", "refunded"}, {"refund"}),
        ("cancelling", {"cancel", "cancels", "cancelled"}, set()),
        ("policies", {"policy"}, set()),
        ("deleted", {"delete", "deletes", "deleting"}, set()),
        ("important", set(), {"import", "imports"}),
        ("退款", set(), {"退款"}),
    ],
)
def test_inflected_forms_differ_only_in_the_ending(
    word: str, forms: set[str], others: set[str]
) -> None:
    assert inflected_forms(word) >= forms
    assert not inflected_forms(word) & others


def test_terms_of_a_question_weigh_twice_as_much_as_those_of_its_synonyms() -> None:
    terms = Counter(query_terms("退款 order", ["refund", "of orders", "退钱", "赔"]))
    assert terms == {"退": 4, "款": 4, "退款": 4, "order": 4, "refund": 2, "退钱": 2}
    assert set(Counter(query_terms("退款 order", ["order"])).values()) == {1}


def test_chinese_translations_of_an_english_question_weigh_more_than_synonyms() -> None:
    terms = Counter(query_terms("refund order", ["退款", "money back"]))
    assert (terms["refund"], terms["退款"], terms["money"]) == (4, 3, 2)


@pytest.mark.parametrize(
    "identifier",
    ["isv.invalid-signature", "INVALID_SIGN", "items[].sku_id", "40014", "-1001", "a/b"],
)
def test_joined_word_is_indexed(identifier: str) -> None:
    assert joined_word(identifier) in vocabulary_words(f"{identifier} is here")


@pytest.mark.parametrize("question", ["the", "的", "is the", "???", ""])
def test_query_of_common_words_keeps_them(question: str) -> None:
    assert query_words(question) == question.split()


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
def test_split_words_are_lower_case_without_punctuation(text: str, expected: list[str]) -> None:
    assert split_words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ＡＢＣ－１２３，：", "ABC-123,:"), ("中文 abc", "中文 abc"), ("①ﬁ", "1fi")],
)
def test_full_width_becomes_half_width(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("怎麼取消訂閱 API", "怎么取消订阅 API"),
        ("關於著作權", "关于著作权"),
        ("显著", "显著"),
        ("於 著 徵", "於 著 徵"),
    ],
)
def test_traditional_characters_become_simplified(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize("length", [399, 400, 401, 800, 5_000])
def test_no_run_is_longer_than_400_characters(length: int) -> None:
    text = normalise("订单" * length)
    assert max(map(len, re.findall(r"\w+", text))) <= 400
    assert text.replace(" ", "") == "订单" * length


def test_zipf_frequency_orders_words() -> None:
    assert zipf_frequency("的") > zipf_frequency("订单") > zipf_frequency("揽收") >= RAREST_ZIPF
    assert zipf_frequency("the") > zipf_frequency("signature") > RAREST_ZIPF
    for unlisted in ("cancelpickup", "", "龘龘龘龘", "\ud800", "zzzzzz"):
        assert zipf_frequency(unlisted) == RAREST_ZIPF


@pytest.mark.parametrize("language", ["zh", "en"])
def test_zipf_frequency_covers_every_listed_word(language: Language) -> None:
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
def frequent_thread_switches() -> Iterator[None]:
    """Make threads switch as often as possible."""
    seconds = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(seconds)


@pytest.mark.usefixtures("frequent_thread_switches")
def test_stem_is_thread_safe() -> None:
    words = [f"{start}{end}" for start in "abcdefghijklmnop" for end in ENDINGS]
    expected = list(map(stem, words))
    stem.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda turn: list(map(stem, words[turn:])), range(4))
        assert [each == expected[turn:] for turn, each in enumerate(found)] == [True] * 4
