"""Tests of parsing Markdown into blocks, tables and list items."""

import random

import pytest

from ingestion.text.markdown_blocks import (
    MAX_HEADING_CHARS,
    parse_blocks,
    parse_list_items,
    parse_table,
    plain_text,
)

TABLE = "| a | b |\n| --- | --- |\n| 1 | 2 |"
FENCE = "```json\n# not a heading\n\n| a | b |\n```"
LINES = [
    "# h", "text", "", "- item", "  more", "1. one", "```", "~~~", "| a | b |", "| - | - |", "> q",
    "    code", "---", "===", "[x]: /y", "<div>", "</div>", "\t* tab", "\\", "<!--",
]  # fmt: skip
LIST = "- one\n\n  still one\n- two\n  - below two"


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("\n \n", [], id="blank"),
        pytest.param("one\ntwo\n\nthree", ["paragraph", "paragraph"], id="paragraphs"),
        pytest.param(LIST, ["list"], id="bullets, loose and nested"),
        pytest.param("1. one\n2. two", ["list"], id="numbers"),
        pytest.param(TABLE, ["table"], id="table"),
        pytest.param(FENCE, ["fence"], id="fence with everything in it"),
        pytest.param("~~~\na\n~~~", ["fence"], id="fence of tildes"),
        pytest.param("```\nnever closed\n\n# x", ["fence"], id="fence left open"),
        pytest.param("    indented\n    code", ["fence"], id="indented code"),
        pytest.param("> a\n> b", ["other"], id="quotation"),
        pytest.param("<Tabs>\n<Tab />\n</Tabs>", ["other"], id="html"),
        pytest.param("a\n\n***\n\nb", ["paragraph", "other", "paragraph"], id="rule"),
        pytest.param("# a\nb\n## c", ["heading", "paragraph", "heading"], id="headings"),
        pytest.param("a\n\n[a]: http://x.y\n\nb", ["paragraph", "other", "paragraph"], id="link"),
        pytest.param("a\n\n[a]: http://x.y", ["paragraph", "other"], id="link at the end"),
        pytest.param("中\r\n文\r\n\r\n字", ["paragraph", "paragraph"], id="CRLF"),
        pytest.param("a\u2028b\x0cc\x85d\n\ne", ["paragraph", "paragraph"], id="odd line ends"),
    ],
)
def test_blocks_have_their_kind_and_full_text(markdown: str, expected: list[str]) -> None:
    blocks = parse_blocks(markdown)
    assert [block.kind for block in blocks] == expected
    kept = [line for block in blocks for line in block.text.split("\n") if line.strip()]
    source = markdown.replace("\r\n", "\n").split("\n")
    assert kept == [line for line in source if line.strip()]


@pytest.mark.parametrize(
    ("markdown", "level", "title"),
    [
        ("# Title", 1, "Title"),
        ("###### Deep ##", 6, "Deep"),
        ("## `cancel_pick_up` **now**", 2, "cancel_pick_up now"),
        ("## [签名算法](signing.md) {#sign}", 2, "签名算法"),
        ("Above\n=====", 1, "Above"),
        ("two\nlines\n---", 2, "two lines"),
        ("## Keys &amp;&nbsp;`List&lt;Key&gt;`", 2, "Keys & List<Key>"),
        ("#", 1, ""),
    ],
)
def test_heading_has_level_and_title(markdown: str, level: int, title: str) -> None:
    (block,) = parse_blocks(markdown)
    assert (block.kind, block.level, block.title) == ("heading", level, title)


def test_long_underlined_paragraph_is_not_a_heading() -> None:
    paragraph = "很长的一段话。" * (MAX_HEADING_CHARS // 7 + 1)
    assert [b.kind for b in parse_blocks(f"{paragraph}\n---\n\nnext")] == ["paragraph", "paragraph"]


@pytest.mark.parametrize("seed", range(20))
def test_blocks_contain_every_line(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        page = rng.choices(LINES, k=rng.randrange(1, 25))
        kept = [line for b in parse_blocks("\n".join(page)) for line in b.text.split("\n")]
        assert [k for k in kept if k.strip()] == [p for p in page if p.strip()], page


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        pytest.param("no table", [], id="none"),
        pytest.param(TABLE, [["a", "b"], ["1", "2"]], id="plain"),
        pytest.param(f"before\n\n{TABLE}\n\n{TABLE}", [["a", "b"], ["1", "2"]], id="the first"),
        pytest.param("|a|b|\n|-|-|\n|||\n|1|", [["a", "b"], ["", ""], ["1", ""]], id="empty cells"),
        pytest.param("|a|\n|-|\n|x\\|y|", [["a"], ["x|y"]], id="escaped bar"),
        pytest.param("|a|\n|-|\n|`x\\|y`|", [["a"], ["`x|y`"]], id="escaped bar in code"),
        pytest.param(f"```\n{TABLE}\n```", [], id="inside a fence"),
    ],
)
def test_parse_table_returns_the_rows(markdown: str, expected: list[list[str]]) -> None:
    assert parse_table(markdown) == expected


@pytest.mark.parametrize(
    "table", ["a | b\n--|--\n1 | 2", "  a | b |\n  --|--|\n  1 | 2 |", "a | b\n--|--\n| 1 | 2"]
)
def test_table_gets_its_outer_borders(table: str) -> None:
    (block,) = parse_blocks(table)
    assert all(line.startswith("| ") and line.endswith(" |") for line in block.text.split("\n"))
    assert parse_table(block.text) == [["a", "b"], ["1", "2"]]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("no list", []),
        ("- one\n* two\n+ three", ["one", "two", "three"]),
        ("1. one\n2) two", ["one", "two"]),
        ("10. ten\n    more", ["ten more"]),
        (LIST, ["one  still one", "two - below two"]),
        ("text\n\n- 2020 was\n- -5 degrees", ["2020 was", "-5 degrees"]),
        ("- a\u2028b\n- c", ["a\u2028b", "c"]),
    ],
)
def test_parse_list_items_returns_the_items(markdown: str, expected: list[str]) -> None:
    assert parse_list_items(markdown) == expected


@pytest.mark.parametrize(
    ("inline", "expected"),
    [
        ("**必填** _maybe_ `code`", "必填 maybe code"),
        ("**注意：**文字", "注意：文字"),
        ("snake_case_name", "snake_case_name"),
        ("Channel.recall(_:)", "Channel.recall(_:)"),
        ("set(_ value:)", "set(_ value:)"),
        ("_id and __v_ of `_x`", "_id and __v_ of _x"),
        ("__Note__ (_see_ below), 用_x_说", "Note (see below), 用_x_说"),
        ("_a_b_ ___c___", "a_b c"),
        (r"cancel\_pick\_up", "cancel_pick_up"),
        (r"a \* b, \[c\], C\#", "a * b, [c], C#"),
        (r"C:\temp", r"C:\temp"),
        ("[text](http://x.y) ![alt](i.png)", "text alt"),
        ("a<br/>b {#anchor}", "ab"),
        ("  padded  ", "padded"),
        ("starts with `pc_`, `<b>` *or* `a*`", "starts with pc_, <b> or a*"),
    ],
)
def test_plain_text_has_no_markup(inline: str, expected: str) -> None:
    assert plain_text(inline) == expected
