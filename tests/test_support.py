"""Tests of lexical support: what the rules distinguish, what they cannot, and their error rates."""

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from ingestion.chunking import chunk_document
from ingestion.platform_config import read_platform
from ingestion.sources.registry import read_source
from ingestion.text.language import detect_language
from runnables.grounding.quantities import extract_quantities
from runnables.grounding.support import MIN_WORD_SHARE, is_supported, word_share
from schemas.document import Chunk, SourceDocument
from schemas.platform import SourceLimits
from schemas.settings import SAMPLE_PLATFORM
from tests.chunks import page

DATA = Path(__file__).parent / "data"

PAGE = """打印数据 30 天过期。审核需要 2 个工作日，大促期间最多 5 到 10 个工作日。

1. 请求体不超过 2 MB，一次最多 1,000 条，成功率不低于 99.5%。
2. 运费 158.00 元。最低 TLS 1.2。每天 04:00 重置，2026-11-20 起生效。
3. 等待半小时再试；读取超时设为 20000 毫秒。
7. 调用 `waybill_create`，见 https://open.example.com/docs/print?id=77 。

| 次数 | 秒 |
|---|---|
| 第 2 次 | 45 |"""
ENGLISH = "Print data expires after 30 days. Up to ten parcels fit one request of 8 KB."


def chunk(body: str = PAGE, title: str = "打印") -> Chunk:
    (only_chunk,) = page(title, body)
    return only_chunk


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("打印数据三十天过期", True),
        ("打印数据 30 days 过期", True),
        ("打印数据１个月过期", True),
        ("打印数据 30 小时过期", False),
        ("打印数据三十一天过期", False),
        ("打印数据 3 天过期", False),
        ("审核需要两个工作日", True),
        ("审核需要三个工作日", False),
        ("审核最多 5 个工作日", True),
        ("审核需要 48 小时", True),
        ("请求体不超过 2MB", True),
        ("请求体不超过 2048 KB", True),
        ("请求体不超过 2 KB", False),
        ("请求一次最多 1000 条", True),
        ("请求一次最多一千条", True),
        ("请求一次最多 100 条", False),
        ("成功率不低于 99.5 %", True),
        ("成功率不低于 99%", False),
        ("运费 15800 分", True),
        ("运费 158 元", True),
        ("运费 1.58 元", False),
        ("最低 TLS 1.2", True),
        ("最低 TLS 1.20", False),
        ("打印数据 SHA-256 过期", True),  # an identifier, which the fact check covers
        ("每天 4 点重置", True),
        ("每天 16:00 重置", True),  # a 12-hour clock
        ("每天 6 点重置", False),
        ("每天 05:00 重置", False),
        ("2026 年 11 月 20 日起生效", True),
        ("2026-12-20 起生效", False),
        ("等待 30 分钟再试", True),
        ("读取超时设为 20 秒", True),
        ("第 2 次等待 45 秒再试", True),
        ("第 2 次等待 45 分钟再试", True),  # a number without a unit, as in a table, matches any
        ("打印数据一次过期", True),
        ("打印数据最多三万个", False),
        ("打印数据最多三十个", True),
        ("打印数据最多五百个", False),
        ("打印数据千万不要过期，万一过期，审核一下", True),
        ("打印数据十分重要，审核请求分两个", True),
        ("1. 打印数据过期", True),
        ("6）打印数据过期", True),
        ("第 6 步：打印数据过期", True),
        ("打印数据过期，注意 3 点：审核", True),
        ("打印数据和审核有 2 个元素", True),
        ("打印数据过期 [6][12]", True),
        ("打印数据过期，见 https://example.com/6?x=88", True),
        ("打印数据过期，见 `a[6]` 和 order_6", True),
        ("打印最多 7 条请求", False),  # the 7 of the page is a list number
        ("打印数据 640 天过期", True),
    ],
)
def test_numbers_are_compared_with_their_units(statement: str, expected: bool) -> None:
    assert is_supported(statement, [chunk()], "我有 640 天前的打印数据") is expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("Print data expires after thirty days.", True),
        ("Print data is kept for a 30-day period.", True),
        ("Print data expires after forty days.", False),
        ("A request takes up to 10 parcels.", True),
        ("Two kinds of print data expire.", True),
        ("A request of 9 KB fits the parcels.", False),
        ("In step 4 print data expires.", True),
        ("A request takes up to twenty thousand parcels.", False),
        ("A request takes up to five hundred parcels.", False),
        ("A request takes a thousand parcels.", False),
        ("A request takes one or more parcels.", True),
        ("One of the parcels expires.", True),
    ],
)
def test_english_numbers_are_compared_with_their_units(statement: str, expected: bool) -> None:
    assert is_supported(statement, [chunk(ENGLISH, "Printing")], "") is expected


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("一百二十、三千、二〇二六、两万五千、十二", ["120", "3000", "2026", "25000", "12"]),
        ("5 万, 1.5 亿, 1,234,567.50", ["50000", "150000000", "1234567.50"]),
        ("3.10 and 3.1 and 1.2.3 and 158.00", ["3.10", "3.1", "1.2.3", "158"]),
        ("18:30, 2026/1/02", ["18:30", "2026-1-2"]),
        ("9" * 5_000, ["9" * 5_000]),
        ("零" * 5_000, ["零" * 5_000]),
        ("twenty-one, five hundred, one thousand and fifty", ["21", "500", "1050"]),
        ("from one hundred to two hundred thousand, two million", ["100", "200000", "2000000"]),
        ("between one hundred and five hundred", ["100", "500"]),
        ("3千个，每秒 5 百次，2百万，5千米", ["3000", "500", "2000000", "5", "1000"]),
        ("the twenty-first day, twenty two items", ["22"]),
        ("two ten-second pauses, two thirty-second timeouts", ["2", "10", "2", "30"]),
        ("one of them, none", []),
    ],
)
def test_extract_quantities(text: str, values: list[str]) -> None:
    assert [quantity.value for quantity in extract_quantities(text)] == values


@pytest.mark.parametrize("body", ["20,000", "20000", "20k", "20 thousand", "2 万", "2w", "两万"])
@pytest.mark.parametrize("amount", ["twenty thousand", "两万"])
def test_numbers_in_words_equal_other_spellings(body: str, amount: str) -> None:
    statement = "The upload quota of a workspace is {} tokens."
    for cited, expected in ((statement.format(body), True), (statement.format(20), False)):
        assert is_supported(statement.format(amount), [chunk(cited, "Quota")], "") is expected


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("打印数据会过期。", True),
        ("请检查网络连接后重试。", False),
        ("退款原路退回买家账户。", False),
        ("可以。", True),
        ("", True),
        ("Print data expires after 30 days.", True),  # another language: compared by numbers
        ("Print data expires after 31 days.", False),
        ("Call waybill_create to get the print data.", True),  # and by identifiers
        ("Call refund_agree to give the money back.", False),
    ],
)
def test_content_words_must_occur(statement: str, expected: bool) -> None:
    assert is_supported(statement, [chunk()], "") is expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Also, a parcel is deleted without notice if the owner ignores the invoice.", False),
        ("Also, every request carries up to ten parcels.", True),
        ("See below.", True),
        (
            "\n```python\nimport requests\nclient = Session(token=secret, retries=nothing)\n```",
            True,
        ),
    ],
)
def test_each_long_sentence_must_share_words(sentence: str, expected: bool) -> None:
    statement = f"{ENGLISH} {sentence}"
    assert is_supported(statement, [chunk(ENGLISH, "Printing")], "") is expected


def test_without_chunks_nothing_is_supported() -> None:
    assert not is_supported("打印数据 30 天过期", [], "打印数据 30 天过期")


def test_words_of_the_question_support_nothing() -> None:
    assert not is_supported("退款原路退回买家账户", [chunk()], "退款原路退回买家账户吗")


def test_words_repeated_from_the_question_do_not_count_against_a_statement() -> None:
    statement = "A photo of a friend's phone screen opens static tickets, but no rotating code."
    cited = chunk("Static tickets keep their codes. Rotating codes change every day.", "Tickets")
    assert is_supported(
        statement, [cited], "does a photo of a friend's phone screen open the door?"
    )
    assert not is_supported(statement, [cited], "")


def test_identifiers_count_as_words_of_a_statement() -> None:
    statement = "Any other number is wrong, so choose `0`, `300` or `900` for `remind_before`."
    cited = chunk("| remind_before | 0, 300, 900 | seconds |", "Reminders")
    assert is_supported(statement, [cited], "")
    assert not is_supported(statement.replace("`", "").replace("_", " "), [cited], "")


def test_several_chunks_support_a_statement_together() -> None:
    statement = "打印数据 30 天过期，退款原路退回买家账户，3 天到账"
    both = [chunk("退款原路退回买家账户，3 天到账。", "退款"), chunk()]
    assert is_supported(statement, both, "")
    assert [is_supported(statement, [each], "") for each in both] == [False, False]


# --- measured -------------------------------------------------------------------------------------


@lru_cache
def sample_chunks() -> list[Chunk]:
    found = [
        d
        for source in read_platform(SAMPLE_PLATFORM).sources
        for d in read_source(source, SourceLimits())
    ]
    return [c for d in found if isinstance(d, SourceDocument) for c in chunk_document(d, 400)]


def labelled(name: str) -> Iterator[tuple[str, bool, str, list[Chunk]]]:
    """Yield labelled statements: text, whether it is supported, kind, and cited chunks."""
    places = defaultdict(list)
    for each in sample_chunks():
        places[each.title, each.section].append(each)
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        cited = zip(row["documents"], row["sections"], strict=True)
        chunks = [each for place in cited for each in places[place]]
        assert chunks, line
        yield row["statement"], row["supported"], row["kind"], chunks


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page and its tables, without code."""
    prose = re.sub(r"```.*?(?:```|\Z)", "", text, flags=re.DOTALL)
    for part in re.split(r"[\n|]|(?<=[。！？])|(?<=[.!?])\s", prose):
        sentence = re.sub(r"^\s*(?:[-*]|\d+\.)\s+|\[|\]\([^)]*\)", "", part.strip())
        if len(sentence) >= 15 and sentence.endswith(("。", "！", "？", ".", "!", "?")):
            yield sentence


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [("support.jsonl", 1.0, 0.96), ("support_held_out.jsonl", 0.86, 0.93)],
)
def test_labelled_statements_are_classified(name: str, accepted: float, refused: float) -> None:
    """All kinds except opposites, which lexical rules cannot detect; the judge does."""
    right: dict[bool, list[bool]] = {True: [], False: []}
    for statement, supported, kind, chunks in labelled(name):
        if kind != "opposite":
            right[supported].append(is_supported(statement, chunks, "") is supported)
    assert sum(right[True]) / len(right[True]) >= accepted
    assert sum(right[False]) / len(right[False]) >= refused


@pytest.mark.acceptance
def test_sentence_about_another_topic_is_found_behind_a_true_one() -> None:
    rows = [*labelled("support.jsonl"), *labelled("support_held_out.jsonl")]
    true = [row for row in rows if row[2] == "paraphrase"]
    other = [row for row in rows if row[2] in ("filler", "other_topic")]

    def accepted(second: list[tuple[str, bool, str, list[Chunk]]], cites_both: bool) -> float:
        pairs = [
            (a, b)
            for a in true
            for b in second
            if a is not b and detect_language(a[0]) == detect_language(b[0])
        ]
        results = [
            is_supported(f"{a[0]}\n\n{b[0]}", [*a[3], *(b[3] if cites_both else [])], "")
            for a, b in random.Random(0).sample(pairs, 300)
        ]
        return sum(results) / len(results)

    assert accepted(true, cites_both=True) >= 0.96
    assert accepted(other, cites_both=False) <= 0.22


def test_threshold_separates_paraphrases_from_other_topics() -> None:
    shares: dict[str, list[float]] = defaultdict(list)
    for statement, _, kind, chunks in labelled("support.jsonl"):
        text = "\n".join(f"{c.title}\n{c.section}\n{c.body}" for c in chunks)
        statement = statement.removesuffix(" [1]")
        if detect_language(statement) == detect_language(text):
            shares[kind].append(word_share(statement, text))
    assert (
        max(shares["filler"] + shares["other_topic"]) < MIN_WORD_SHARE < min(shares["paraphrase"])
    )


@pytest.mark.acceptance
def test_sentences_are_supported_by_their_own_chunk_only() -> None:
    """Sentences of the samples; other chunks are tried only with sentences unique to one document."""
    all_sentences = [(sentence, c) for c in sample_chunks() for sentence in sentences(c.body)]
    documents = defaultdict(set)
    for sentence, own in all_sentences:
        documents[sentence].add(own.document_id)
    draw = random.Random(0)
    by_own, by_other = [], []
    for sentence, own in draw.sample(all_sentences, 600):
        by_own.append(is_supported(sentence, [own], ""))
        other = draw.choice(sample_chunks())
        comparable = detect_language(other.body) == detect_language(sentence)
        if comparable and documents[sentence] == {own.document_id} != {other.document_id}:
            by_other.append(is_supported(sentence, [other], ""))
    assert sum(by_own) / len(by_own) >= 0.98
    assert len(by_other) > 200
    assert sum(by_other) / len(by_other) <= 0.05
