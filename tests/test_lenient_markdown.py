"""Markdown that CommonMark reads differently is read as its authors meant it."""

import pytest

from ingestion.text.clean_markdown import to_plain_markdown
from ingestion.text.lenient_markdown import repair_markdown
from ingestion.text.markdown_blocks import parse_blocks, parse_table


def test_delimiters_with_spaces_make_a_table() -> None:
    page = "| 字段 | 必填 |\n| ---- |: ---- :|\n| boat | 是 |"
    (block,) = parse_blocks(to_plain_markdown(page))
    assert [list(row) for row in parse_table(block.text)] == [["字段", "必填"], ["boat", "是"]]


@pytest.mark.parametrize(
    ("head", "titles"),
    [
        ("名称|说明\n:---|:---|:---", ["名称", "说明", ""]),
        ("| a | b | c |\n| --- | --- |", ["a", "b", "c"]),
    ],
)
def test_table_whose_lines_have_different_numbers_of_cells_is_a_table(
    head: str, titles: list[str]
) -> None:
    (block,) = parse_blocks(to_plain_markdown(f"{head}\nx|y|z\n"))
    assert [list(row) for row in parse_table(block.text)] == [
        titles,
        ["x", "y", "z"],
    ]


def test_notes_that_mintlify_adds_to_pages_are_removed() -> None:
    page = (
        "> ## Documentation Index\n> Fetch the complete documentation index at: https://a.example\n\n"
        "# Boats\n\nText.\n\nBuilt with [Mintlify](https://mintlify.com).\n"
    )
    assert repair_markdown(page).strip() == "# Boats\n\nText."


def test_row_that_is_continued_on_further_lines_is_one_row() -> None:
    page = (
        "|名称|描述|\n|--|--|\n|Id|编号。\n\n |\n"
        "|State|状态：\n\n -   OPEN（开）。\n-   SHUT（关）。\n\n |\n|Name|名字。|\n"
    )
    (block,) = parse_blocks(to_plain_markdown(page))
    rows = [list(row) for row in parse_table(block.text)]
    assert [row[0] for row in rows] == ["名称", "Id", "State", "Name"]
    assert "OPEN（开）" in rows[2][1]
    assert "SHUT（关）" in rows[2][1]


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("?> 提示", "> 提示"),
        ("!> Mind the gap", "> Mind the gap"),
        ("~> **Note** Mind the gap", "> **Note** Mind the gap"),
        ("Text\n\n-> Mind the gap", "Text\n\n> Mind the gap"),
        ("##Errors", "## Errors"),
        ('Use `<md-table>` or `<perm-tag name="x">`', 'Use `<md-table>` or `<perm-tag name="x">`'),
        ('<md-td>x</md-td><md-perm name="a:b" tags="">y</md-perm>', "<td>x</td>`a:b` y</md-perm>"),
    ],
)
def test_text_is_repaired(text: str, repaired: str) -> None:
    assert repair_markdown(text) == repaired


@pytest.mark.parametrize(
    "text",
    [
        "```\n##Errors\n?> 1\n|a\n\n |\n```",
        "| a | b |\n| --- | :---: |\n| 1 | 2 |",
        "|a row without a border at its end\n\nA paragraph.",
        "<?php if ($a !> 1) ?>",
        "Settings\n-> Keys\n-> New",
        'version = "\n~>1.8 and ~> 2"',
        '<sl-icon name="gear"></sl-icon> Settings',
    ],
)
def test_other_text_is_not_changed(text: str) -> None:
    assert repair_markdown(text) == text


_TWO_ROWS = "| 错误码 | 说明 |\n| 1 | a \\| b |\n"


@pytest.mark.parametrize(
    "page",
    [
        _TWO_ROWS,
        f"# 错误码\n{_TWO_ROWS}",
        f"列表：\n{_TWO_ROWS}以上。",
        f"```\nx\n```\n\n{_TWO_ROWS}",
    ],
)
def test_rows_without_a_delimiter_are_a_table(page: str) -> None:
    blocks = parse_blocks(to_plain_markdown(page))
    (table,) = (block for block in blocks if block.kind == "table")
    assert parse_table(table.text) == [["错误码", "说明"], ["1", "a | b"]]


@pytest.mark.parametrize(
    "page",
    [
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n",
        "a | b\n--- | ---\n| 1 | 2 |\n| 3 | 4 |\n",
        "| a | b |\n| --- | --- |\n| 1 | 2 |\nx\n| 3 | 4 |\n| 5 | 6 |\n",
        "| a | b |\n| 1 | 2 | 3 |\n",
        "| a |\n| b |\n",
        "| a | b |\n",
        "+---+---+\n| a | b |\n| c | d |\n+---+---+\n",
        "- x\n| a | b |\n| c | d |\n",
        "```\n| a | b |\n| c | d |\n```\n",
        "x\n\n    | a | b |\n    | c | d |\n",
        "```\nx\n```\n| a | b |\n| c | d |\n",
    ],
)
def test_other_rows_do_not_change(page: str) -> None:
    assert repair_markdown(page) == page
