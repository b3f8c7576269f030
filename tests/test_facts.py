"""Tests of the fact check: known names pass, invented ones are listed."""

import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from ingestion.chunking import chunk_document
from ingestion.platform_config import read_platform
from ingestion.sources.registry import read_source
from runnables.answer.segments import split_chunk
from runnables.grounding.facts import FactIndex, find_unverified_facts
from runnables.grounding.markdown_text import remove_sentences_with
from schemas.document import Chunk, SourceDocument
from schemas.platform import MarkdownSourceConfig, OpenApiSourceConfig, SourceConfig, SourceLimits
from tests.conftest import SHARED_DATA, needs_shared_data

ROOT = Path(__file__).resolve().parents[1]
MIN_RECALL = 0.95
MAX_FALSE_ALARMS = 0.05
MAX_FALSE_ALARMS_VERBATIM = 0.02

FOREIGN: list[SourceConfig] = [
    MarkdownSourceConfig(name="dify", kind="markdown", path=SHARED_DATA / "markdown/dify_zh"),
    MarkdownSourceConfig(
        name="milvus", kind="markdown", path=SHARED_DATA / "markdown/milvus_en/site/en"
    ),
    OpenApiSourceConfig(
        name="dify_api", kind="openapi", path=SHARED_DATA / "openapi/dify.zh.openapi30.json"
    ),
]


def read_chunks(source: SourceConfig, limit: int = 100) -> list[Chunk]:
    """Return the chunks of the first `limit` documents of `source`."""
    found = islice(read_source(source, SourceLimits()), limit)
    documents = (document for document in found if isinstance(document, SourceDocument))
    return [chunk for document in documents for chunk in chunk_document(document, 400)]


@cache
def sample_chunks() -> list[Chunk]:
    sources = read_platform(ROOT / "samples/platform.toml").sources
    return [chunk for source in sources for chunk in read_chunks(source)]


@dataclass(frozen=True)
class Outcome:
    """Result of checking a file of statements."""

    recall: float
    """Share of the invented identifiers that were listed."""
    false_alarms: float
    """Share of all statements for which a true name was listed."""


def evaluate(name: str) -> Outcome:
    lines = (ROOT / "tests/data" / name).read_text(encoding="utf-8").splitlines()
    invented = found = false_alarms = 0
    for case in map(json.loads, lines):
        listed = find_unverified_facts(case["statement"], index_of_documents(case["documents"]))
        hits = [fact for fact in listed if case["invented"] and case["invented"] in fact]
        invented += case["invented"] is not None
        found += bool(hits)
        false_alarms += len(listed) > len(hits)
    return Outcome(found / invented, false_alarms / len(lines))


def index_of_documents(titles: list[str]) -> FactIndex:
    return FactIndex(chunk.text for chunk in sample_chunks() if chunk.title in titles)


IDENTIFIER = re.compile(
    r"`(/[\w/{}.-]+|[A-Za-z_][\w.:\[\]-]*|\d{4,6})`"  # a code span that is one word
    r"|^\| (\d{4,6}) \|"  # the code of an error table
    r"|(?<![\w/.:-])((?:/[A-Za-z][\w{}-]*){2,})(?![\w/])"
    r"|(?<![\w./:=&?@$%-])([A-Za-z]\w*_\w+|[a-z]{2,}[A-Z]\w+|[A-Z]{5,}|[a-z]{2,}(?:\.[a-z]{2,}(?:-[a-z]+)*)+)"
    r"(?![\w./*-])",
    re.ASCII,
)
NO_FACT = re.compile(
    r".*(?:\d{5,}\w|\w\d{5,}|[0-9a-f]{12}|__$|\.(?:json|ya?ml|md|py|js|go|txt|sh|gz|tgz|com|cn|io|ai|org)$)"
    r"|v?\d+(?:\.\d+)+|(?:[A-Z]+[a-z0-9]+)+$|my[-_]|/path/to"
)
"""Example values, file names, versions, class names, placeholders: not meant to be checked."""


def verbatim_cases(chunks: list[Chunk], count: int) -> list[tuple[str, Chunk]]:
    """Return sentences and table rows with an identifier, each with its chunk."""
    cases = [
        (text, chunk) for chunk in chunks for text in lines_of(chunk) if IDENTIFIER.search(text)
    ]
    return random.Random(11).sample(cases, min(count, len(cases)))


def lines_of(chunk: Chunk) -> Iterator[str]:
    for segment in split_chunk(chunk, chunk.language):
        if segment.kind != "code":
            yield from segment.text.split("\n")


def mutated_cases(chunks: list[Chunk], count: int) -> Iterator[tuple[str, str, Chunk]]:
    """Yield sentences with one identifier changed, the changed identifier, and the chunk."""
    choose = random.Random(7)
    for text, chunk in verbatim_cases(chunks, count * 2):
        matches = [m for m in IDENTIFIER.finditer(text) if not NO_FACT.match(m[m.lastindex or 0])]
        if not matches or not count:
            continue
        match = choose.choice(matches)
        group = match.lastindex or 0
        name = mutate(match[group], chunk.text, choose)
        if name:
            count -= 1
            yield text[: match.start(group)] + name + text[match.end(group) :], name, chunk


def mutate(name: str, text: str, choose: random.Random) -> str:
    """Return `name` with one word changed to one that `text` does not contain; empty if impossible."""
    parts = re.split(r"([A-Za-z]+|\d+)", name)
    places = [i for i, part in enumerate(parts) if len(part) > 2 and part.isalnum()]
    if not places:
        return ""
    place = choose.choice(places)
    part = parts[place]
    letters = "0123456789" if part.isdigit() else "abcdefghijklmnopqrstuvwxyz"
    for _ in range(20):
        at = choose.randrange(1, len(part))
        letter = choose.choice(letters)
        changed = part[:at] + (letter.upper() if part.isupper() else letter) + part[at + 1 :]
        if changed.lower() not in text.lower():
            return "".join([*parts[:place], changed, *parts[place + 1 :]])
    return ""


@cache
def index_of_text(text: str) -> FactIndex:
    return FactIndex([text])


def false_alarm_rate(chunks: list[Chunk], count: int) -> float:
    cases = verbatim_cases(chunks, count)
    wrong = [
        (text, listed)
        for text, chunk in cases
        if (listed := find_unverified_facts(text, index_of_text(chunk.text)))
    ]
    return len(wrong) / len(cases)


def recall_rate(chunks: list[Chunk], count: int) -> float:
    cases = list(mutated_cases(chunks, count))
    assert len(cases) > count * 0.7
    found = sum(
        any(
            name in fact or fact in name
            for fact in find_unverified_facts(text, index_of_text(chunk.text))
        )
        for text, name, chunk in cases
    )
    return found / len(cases)


REFERENCE = """---
apiUrl: /shop/v2/parcels/{parcel_id}/label
---
# Print a label > Request URL

Prints the label of a parcel; see `GET https://api.shop.example/shop/v2/parcels?state=OPEN`.

- Method: `POST`
- API URL: `/shop/v2/parcels/{parcel_id}/label`
"""
FIELDS = """# Print a label > Request parameters

| Name | Type | Required | Description | Example |
| --- | --- | --- | --- | --- |
| X-Shop-Nonce | string | Yes | Random, at most 32 characters. | 7f0c1a |
| label | object | Yes | What to print. |  |
| label.paper | string | No | 纸张，不传时为 A6。可选值: `A6` 小; `A4_LANDSCAPE` 大 | A6 |
| mode | string | No | Values: `QUEUED` later; `DIRECT` at once | QUEUED |

```json
{"label": {"paper": "A4_LANDSCAPE", "lines": [{"lineNo": 1, "note": "fragile"}]}, "mode": "DIRECT"}
```
"""
ERRORS = """# Print a label > Error codes

| Error code | Message | Cause | Remedy |
| --- | --- | --- | --- |
| 51001 | No such parcel | Deleted, or of another shop. | Look it up first. |
| biz.paper-empty | Out of paper | | Refill. |

应用需要标签打印权限包，也可能需要 Parcel Read Package。事件 `parcel.printed` 随后发出。
"""
EVIDENCE = FactIndex([REFERENCE, FIELDS, ERRORS, "how do I use `print_copies`?"])

VALID = {
    "method and path": "Call POST /shop/v2/parcels/{parcel_id}/label first.",
    "placeholder filled in": "Call `POST /shop/v2/parcels/88123/label/`.",
    "another style of placeholder": "请求 POST /shop/v2/parcels/:id/label 即可。",
    "path inside a url": "GET https://api.shop.example/shop/v2/parcels",
    "host of one url, path of another": "https://api.shop.example/shop/v2/parcels/123/label",
    "query string": "/shop/v2/parcels?state=OPEN",
    "method after the path": "向 `/shop/v2/parcels/{parcel_id}/label` (POST) 提交",
    "beginning of paths": "All paths below /shop/v2/ need it.",
    "header in another case": "把 x-shop-nonce 请求头设为随机串；Send X-SHOP-NONCE: abc",
    "standard headers": "Set Content-Type to application/json; Retry-After 以它为准, `Authorization: Bearer`",
    "methods and statuses alone": "A GET returns 404 NOT FOUND, 用 DELETE 会得到 METHOD NOT ALLOWED。",
    "dotted field": "`label.lines[].lineNo` 与 label.paper",
    "dotted, levels left out": "`label.lineNo`",
    "field and value": "mode=QUEUED，label.paper=A4_LANDSCAPE",
    "behind a variable": '`response.label.paper` and resp["label"]["paper"]',
    "attributes of HTTP libraries": "Check response.statusCode or resp.status_code.",
    "JSON with example values": '{"label": {"paper": "A4_LANDSCAPE", "lines": [{"note": "shop_1_abc", "lineNo": 51099}]}}',
    "from the question": "`print_copies` is not documented.",
    "code": "错误码 51001 表示包裹不存在；biz.paper-empty 则要加纸。",
    "event": "Wait for parcel.printed.",
    "permission": "先申请标签打印权限包，缺哪个权限包就申请哪个；你的应用没有对应权限包时不能调用。",
    "permission in English": "Ask for the Parcel Read Package; this Package is free.",
    "amounts, dates, durations": "Costs 13900 fen, since 2026-11-20, 5000 items, 60000 ms, port 8443, 返回2000条，v1.2.3，1.5 秒。",
    "number after a table row": "| 1 | 2 |\nThe limit is now 12000.",
    "advice": "用 try/except 包住 requests.post，`for` 循环里等 time.sleep(1)；see Node.js, JSON.parse, StringBuilder, "
    "unittest.mock, axios.get(url), the `tenacity` library, config.json, .env, `None`, OAuth2, UTF-8, SHA-256, e.g. macOS.",
    "words of the trade": "IMPORTANT: you MUST send HTTPS; the read-only, case-insensitive JSON is UTF-8. POST it.",
    "mail, local addresses": "Write to help@shop_x.example, run http://localhost:8080/cb, store /etc/shop/key.pem.",
    "a variable of one's own": "Put the secret into an environment variable such as SHOP_SECRET.",
    "a program's own names": "```python\nmy_list = fetch_all(page_count)\nrequests.post(url, json={'mode': 'DIRECT'})\n```",
    "placeholder values": "Replace YOUR_APP_KEY and `your_token`.",
    "nothing": "",
}
INVENTED = {
    "path": ("Call /shop/v2/parcels/{parcel_id}/labels.", "/shop/v2/parcels/{parcel_id}/labels"),
    "version of the path": ("POST /shop/v3/parcels/1/label", "POST /shop/v3/parcels/1/label"),
    "a word is no value of a placeholder": (
        "/shop/v2/parcels/export/label",
        "/shop/v2/parcels/export/label",
    ),
    "shortened path": ("用 `/shop/v2` 查询。", "/shop/v2"),
    "method": (
        "Send DELETE to /shop/v2/parcels/{parcel_id}/label.",
        "DELETE to /shop/v2/parcels/{parcel_id}/label",
    ),
    "method of another path": ("GET /shop/v2/parcels/7/label", "GET /shop/v2/parcels/7/label"),
    "method after the path": (
        "`/shop/v2/parcels/{id}/label`（PUT）",
        "/shop/v2/parcels/{id}/label`（PUT",
    ),
    "host": (
        "https://pay.shop.example/shop/v2/parcels",
        "https://pay.shop.example/shop/v2/parcels",
    ),
    "snake_case": ("填写parcel_weight即可", "parcel_weight"),
    "camelCase": ("set lineCount to 1", "lineCount"),
    "same name in another style": ("set line_no to 1", "line_no"),
    "plain word in code": ("The field `weight` is optional.", "weight"),
    "plain word beside its kind": ("weight字段可不传", "weight"),
    "key of a pair": ("传 copies=2", "copies"),
    "value of a pair": ("传 mode=queued", "queued"),
    "plain word of a language beside its kind": ("Set the `email` field.", "email"),
    "capitals that a status phrase has too": ("状态变为ACCEPTED", "ACCEPTED"),
    "list": ("Read `parcel_notes[]` (Select).", "parcel_notes[]"),
    "behind a variable": ("response.label.weight_unit", "response.label.weight_unit"),
    "camelCase behind a variable": ("response.labelKind: the kind", "response.labelKind"),
    "key in JSON": ('{"weight": 3}', "weight"),
    "value in JSON": ('{"mode": "DELAYED"}', "DELAYED"),
    "part of a dotted name": ("`label.lines[].lineCount`", "label.lines[].lineCount"),
    "header": ("Send X-Shop-Signature too.", "X-Shop-Signature"),
    "single capitals": ("状态变为PAUSED后再试", "PAUSED"),
    "capitals with a stroke": ("use A3_LANDSCAPE", "A3_LANDSCAPE"),
    "code": ("否则返回51009。", "51009"),
    "code in English": ("error 51777 means that", "51777"),
    "code like known ones": ("51044：包裹已删除", "51044"),
    "dotted code": ("you get biz.paper-jam", "biz.paper-jam"),
    "event": ("subscribe to `parcel.shipped`", "parcel.shipped"),
    "scope": ("needs parcel:write", "parcel:write"),
    "permission": ("先申请标签下载权限包。", "标签下载权限包"),
    "permission in English": ("You need the Parcel Write Package.", "Parcel Write Package"),
    "string in a program": (
        "```python\nrequests.post(url, json={'print_mode': 1})\n```",
        "print_mode",
    ),
}


@pytest.mark.parametrize("statement", VALID.values(), ids=VALID)
def test_known_names_and_other_text_pass(statement: str) -> None:
    assert find_unverified_facts(statement, EVIDENCE) == []


@pytest.mark.parametrize(("statement", "fact"), INVENTED.values(), ids=INVENTED)
def test_invented_names_are_listed_as_written(statement: str, fact: str) -> None:
    assert find_unverified_facts(statement, EVIDENCE) == [fact]
    assert fact in statement


@pytest.mark.parametrize("order", [1, -1])
def test_parts_of_nested_names_are_fields_in_any_order_of_the_texts(order: int) -> None:
    texts = ["| `kiln` | A kiln. |", "See `kiln.lid`.", "See lid.hinge.", "See hinge.pin."]
    index = FactIndex(texts[::order])
    assert find_unverified_facts("Read `kiln.pin`.", index) == []
    assert find_unverified_facts("Read `kiln.bolt`.", index) == ["kiln.bolt"]
    index.add("See pin.bolt.")
    assert find_unverified_facts("Read `kiln.bolt`.", index) == []


def test_method_and_path_must_occur_in_one_text() -> None:
    apart = FactIndex(["Use `POST`.", "See `/shop/v2/parcels`."])
    assert find_unverified_facts("POST /shop/v2/parcels", apart) == ["POST /shop/v2/parcels"]


def test_facts_are_listed_once_in_order() -> None:
    statement = "先传zz_two，再传`aa_one`，最后核对zz_two与 aa_one。"
    assert find_unverified_facts(statement, EVIDENCE) == ["zz_two", "aa_one"]


WITHOUT_FACT = {
    "a sentence in Chinese": ("先传a_b [1]。再传x_y [2]。最后看`c。d`。[3]", "先传a_b [1]。最后看`c。d`。[3]"),
    "a sentence in English": ("Use v1.5, e.g. `q`. [1] Then x_y. Ends at https://a.b/c.d. [2]", "Use v1.5, e.g. `q`. [1] Ends at https://a.b/c.d. [2]"),
    "numbers and abbreviations": ("It costs 1.5 CNY, i.e. 150 fen, for x_y. Done.", "Done."),
    "questions and exclamations": ("Is it x_y? No! 是x_y吗？不是！", "No! 不是！"),
    "a list item": ("Do:\n1. set x_y. Then wait.\n2. go on\n- end", "Do:\n2. go on\n- end"),
    "a fence": ("Send:\n```json\n{\"x_y\": 1}\n\n{}\n```\nGood. [1]", "Send:\nGood. [1]"),
    "an unclosed fence": ("Send.\n```\n{\"x_y\": 1}", "Send."),
    "a row": ("| a | b |\n| - | - |\n| x_y | 1 |\n| c | 2 |", "| a | b |\n| - | - |\n| c | 2 |"),
    "a part of a longer name stays": ("sub_x_y stays. x_y goes. x_y.z too.", "sub_x_y stays."),
    "nothing is left": ("Only x_y [1][2].", ""),
    "only a mark is left": ("Only x_y. \n\n[1]", ""),
    "nothing to take": ("Stays. As it is.", "Stays. As it is."),
    "empty": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize(("statement", "expected"), WITHOUT_FACT.values(), ids=WITHOUT_FACT)
def test_remove_sentences_with(statement: str, expected: str) -> None:
    assert remove_sentences_with(statement, ["x_y"]) == expected


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ["statements.jsonl", "statements_held_out.jsonl"])
def test_recall_and_false_alarms_on_labelled_statements(name: str) -> None:
    outcome = evaluate(name)
    assert outcome.recall >= MIN_RECALL
    assert outcome.false_alarms <= MAX_FALSE_ALARMS


@pytest.mark.acceptance
def test_recall_and_false_alarms_on_mutated_samples() -> None:
    assert false_alarm_rate(sample_chunks(), 300) <= MAX_FALSE_ALARMS_VERBATIM
    assert recall_rate(sample_chunks(), 300) >= MIN_RECALL


@pytest.mark.acceptance
@needs_shared_data
@pytest.mark.parametrize("source", FOREIGN, ids=lambda source: str(source.name))
def test_recall_and_false_alarms_on_mutated_foreign_documents(
    source: SourceConfig,
) -> None:
    chunks = read_chunks(source)
    assert false_alarm_rate(chunks, 150) <= MAX_FALSE_ALARMS_VERBATIM
    assert recall_rate(chunks, 600) >= MIN_RECALL


HOSTILE = ["`", "`a", "f", "aA", "x_", "a.", "a-", "A", "1234 ", "/a{", "\n ", "GET ", "权限包 ", "A Package ", '"a":',
           "http://", "```\n", "a[0].", "e.g. ", ".", "!", "[1]", "字段", "| a ", "/1a", "~~~x\n'", "a@", "a=", "{", "\\_"]  # fmt: skip


@pytest.mark.acceptance
@pytest.mark.parametrize("part", HOSTILE)
def test_long_input_is_read_in_linear_time(part: str) -> None:
    """No time is asserted: a quadratic run on 20 kB would show in the duration of the tests."""
    statement = part * (20_000 // len(part)) + "x"
    listed = find_unverified_facts(statement, FactIndex([statement[: len(statement) // 2]]))
    assert statement.endswith(remove_sentences_with(statement, listed)[-1:])


@pytest.mark.acceptance
@needs_shared_data
def test_naughty_strings_are_handled() -> None:
    strings: Iterable[str] = json.loads((SHARED_DATA / "blns.json").read_text(encoding="utf-8"))
    for text in strings:
        assert find_unverified_facts(text, FactIndex([text])) == [], text
        assert set(find_unverified_facts(text, FactIndex([]))) <= {
            text[i:j] for i in range(len(text)) for j in range(i, len(text) + 1)
        }
        remove_sentences_with(text, find_unverified_facts(text, EVIDENCE))
