"""Structure without Markdown headings: Chinese numbers, definition lists and labels in lists."""

from pathlib import Path

import pytest

from ingestion.sources.registry import read_source
from schemas.document import SourceDocument
from schemas.platform import FilesSourceConfig, MarkdownSourceConfig, SourceLimits
from tests.source_kinds import write

RULES = """规则引擎 V2

一、基本语法
SELECT 1

最长 2000 个字符。

二、函数
（一）时间函数
now()
（二）编码函数
to_base64()

三、验签
HMAC-SHA1。
"""


def sections(folder: Path, name: str, text: str) -> list[tuple[str, str]]:
    write(folder / name, text)
    make = FilesSourceConfig if name.endswith(".txt") else MarkdownSourceConfig
    kind = "files" if name.endswith(".txt") else "markdown"
    (document,) = read_source(make(name="docs", kind=kind, path=folder), SourceLimits())
    assert isinstance(document, SourceDocument)
    return [(" > ".join(section.heading), section.body) for section in document.sections]


@pytest.mark.parametrize("name", ["rules.txt", "rules.md"])
def test_lines_with_chinese_numbers_are_headings(tmp_path: Path, name: str) -> None:
    assert sections(tmp_path, name, RULES) == [
        ("", "规则引擎 V2"),
        ("一、基本语法", "SELECT 1\n\n最长 2000 个字符。"),
        ("二、函数 > （一）时间函数", "now()"),
        ("二、函数 > （二）编码函数", "to_base64()"),
        ("三、验签", "HMAC-SHA1。"),
    ]


def test_numbered_lines_below_the_title_of_a_page_are_headings(tmp_path: Path) -> None:
    text = "# 订阅\n\n简介\n\n**一、限制**\n\n- 一天\n\n二、属性\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    found = sections(tmp_path, "page.md", text)
    assert [heading for heading, _ in found] == ["", "一、限制", "二、属性"]


def test_numbered_lines_with_a_colon_are_headings_without_it(tmp_path: Path) -> None:
    found = sections(tmp_path, "a.txt", "一、接口说明：\n文字\n\n二、参数:\n文字")
    assert found == [("一、接口说明", "文字"), ("二、参数", "文字")]


def test_more_than_ten_headings_are_in_order(tmp_path: Path) -> None:
    numbers = [*"一二三四五六七八九十", "十一", "十二"]
    text = "\n".join(f"{number}、标题\n文字{number}" for number in numbers)
    assert len(sections(tmp_path, "a.txt", text)) == len(numbers)


@pytest.mark.parametrize(
    "text",
    [
        "一、甲\n二、乙\n三、丙\n\n文字",
        "一、甲\n文字",
        "二、甲\n文字\n三、乙\n文字",
        "一、甲\n文字\n三、乙\n文字",
        "一、不得转载。\n文字\n二、不得出租。\n文字",
        f"一、{'很长' * 30}\n文字\n二、乙\n文字",
        "    一、甲\n    文字\n    二、乙\n    文字",
    ],
    ids=["a list", "one", "not from one", "a gap", "sentences", "long lines", "code"],
)
def test_other_numbered_lines_are_text(tmp_path: Path, text: str) -> None:
    ((heading, body),) = sections(tmp_path, "a.txt", text)
    assert (heading, body.split()) == ("", text.split())


def test_numbered_lines_on_a_page_with_headings_are_text(tmp_path: Path) -> None:
    text = "# 页\n\n## 上\n\n一、甲\n文字\n\n二、乙\n文字\n"
    assert [heading for heading, _ in sections(tmp_path, "page.md", text)] == ["上"]


def test_only_the_second_list_of_numbered_lines_are_headings(tmp_path: Path) -> None:
    contents = "目录\n一、甲\n二、乙\n\n"
    found = sections(tmp_path, "a.txt", f"{contents}一、甲\n文字\n二、乙\n文字")
    assert [heading for heading, _ in found] == ["", "一、甲", "二、乙"]
    assert found[0][1] == contents.strip()


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("**甲**\n: 一\n\n乙 (B)\n: 二\n: 三\n\nEnd.", "- **甲**: 一\n- **乙 (B)**: 二\n  三\n\nEnd."),
        ("A\n: It is\nbut so\nB\n: b", "- **A**: It is\n  but so\n- **B**: b"),
        ("`a`\n: one\nmore\n`b`\n: two", "- **`a`**: one\n  more\n- **`b`**: two"),
        ("`a`\n\n:   One\n\n    More.\n\n`b`\n\n:   Two", "- **`a`**: One\n\n  More.\n- **`b`**: Two"),
        ("A\n\n: x\n\n: y\n\nB\n\n: z", "- **A**: x\n  y\n- **B**: z"),
        (
            "*class* **Boat**(*id*)\n\n:   A boat.\n\n    Parameters\n\n    :   -   **id** (`str`) -- The\n"
            "            id.\n        -   **size** -- In metres.\n\n    Raises\n\n    :   **Lost** -- if lost.\n\nEnd.",
            "*class* **Boat**(*id*): A boat.\n\n**Parameters**:\n\n- **id** (`str`) -- The\n    id.\n"
            "- **size** -- In metres.\n\n**Raises**: **Lost** -- if lost.\n\nEnd.",
        ),
        ("a\n\n:   One\n\n        code\n\nEnd.", "- **a**: One\n\n      code\n\nEnd."),
        ("One\n: term", "One\n: term"),
        ("two\nlines\n: text\n\na\n: b\n\nBody\n\n- c", "two\nlines\n: text\n\na\n: b\n\nBody\n\n- c"),
        ("Body\n\n: one\n: two", "Body\n\n: one\n: two"),
        ("```\na\n: b\nc\n: d\n```", "```\na\n: b\nc\n: d\n```"),
    ],
)  # fmt: skip
def test_definition_list_has_an_item_per_term(tmp_path: Path, text: str, body: str) -> None:
    assert sections(tmp_path, "page.md", f"# Page\n\n{text}\n") == [("", body)]


@pytest.mark.parametrize(
    ("text", "body"),
    [
        (
            "Row it:\n\n    oar a\n\n      oar b\n\nEnd.",
            "Row it:\n\n```\noar a\n\n  oar b\n```\n\nEnd.",
        ),
        ("**划船：**\n\n\toar a", "**划船：**\n\n```\noar a\n```"),
        ("Row it.\n\n    It is a boat.", "Row it.\n\n    It is a boat."),
        ("Row it:\n\n    - with one oar", "Row it:\n\n    - with one oar"),
        ("Row it:\n\n    ```\n    oar a\n    ```", "Row it:\n\n    ```\n    oar a\n    ```"),
    ],
)
def test_indented_code_below_a_colon_gets_a_fence(tmp_path: Path, text: str, body: str) -> None:
    assert sections(tmp_path, "page.md", f"# Page\n\n{text}\n") == [("", body)]


TABLE = "| oar | length |\n| --- | --- |\n| a | 2 |"


@pytest.mark.parametrize(
    ("text", "body"),
    [
        (f"- **Oars**\n\n{TABLE}", f"**Oars**\n\n{TABLE}"),
        (f"We list:\n\n- **Oars**\n\n{TABLE}", f"We list:\n\n**Oars**\n\n{TABLE}"),
        ("- A boat.\n- **Code:**\n```\nrow\n```", "- A boat.\n\n**Code:**\n\n```\nrow\n```"),
        ("* **其他**\n\n划船。", "**其他**\n\n划船。"),
        ("We need:\n\n- **Oars**\n\nEnd.", "We need:\n\n- **Oars**\n\nEnd."),
        (f"- **Oars**\n- **Sails**\n\n{TABLE}", f"- **Oars**\n- **Sails**\n\n{TABLE}"),
        ("- A boat.\n- **Oars**\n\nEnd.", "- A boat.\n- **Oars**\n\nEnd."),
    ],
)
def test_list_item_that_labels_the_next_block_is_a_paragraph(
    tmp_path: Path, text: str, body: str
) -> None:
    assert sections(tmp_path, "page.md", f"# Page\n\n{text}\n") == [("", body)]


@pytest.mark.acceptance
def test_deeply_nested_definitions_are_read_to_a_limit(tmp_path: Path) -> None:
    nested = "".join(f"{'    ' * n}term {n}\n\n{'    ' * n}:   text {n}\n\n" for n in range(300))
    ((_, body),) = sections(tmp_path, "page.md", f"# Page\n\n{nested}")
    assert "**term 4**: text 4" in body
    assert "text 299" in body
