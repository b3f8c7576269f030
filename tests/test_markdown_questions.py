"""The questions of FAQ pages become sections of their own."""

from pathlib import Path

import pytest

from ingestion.chunking import chunk_document
from tests.source_kinds import KINDS, read, write

ZH = """# 常见问题

## 支付

**Q：支付成功了，状态没有变化怎么办？**
A：查询订单。

**Q2. 可以修改金额吗**

A：不可以。

- 关闭订单

**问：`attach` 是什么**：
附加数据。

## 物流

**面单可以退吗？** <br>
可以。
"""

EN = """# FAQ

<details><summary>Can I <b>cancel</b>?</summary>

Yes.

</details>
<details>
<summary>
  How do I use <code>limit</code>?
</summary>

As a query parameter.

</details>

#### Refunds

They take two days.
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            ZH,
            [
                (("支付", "支付成功了，状态没有变化怎么办？"), "查询订单。"),
                (("支付", "可以修改金额吗"), "不可以。\n\n- 关闭订单"),
                (("支付", "attach 是什么"), "附加数据。"),
                (("物流", "面单可以退吗？"), "可以。"),
            ],
        ),
        (
            EN,
            [
                (("Can I cancel?",), "Yes."),
                (("How do I use limit?",), "As a query parameter."),
                (("Refunds",), "They take two days."),
            ],
        ),
    ],
    ids=["bold lines", "summaries"],
)
def test_questions_begin_a_section(
    text: str, expected: list[tuple[tuple[str, ...], str]], tmp_path: Path
) -> None:
    write(tmp_path / "faq.md", text)
    (document,) = read(KINDS["markdown"].make, tmp_path)
    assert [(section.heading, section.body) for section in document.sections] == expected
    assert [chunk.body for chunk in chunk_document(document, 400)] == [body for _, body in expected]


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        ("A: Yes.", "Yes."),
        ("Answer 1: Yes.", "Yes."),
        ("答：可以。", "可以。"),
        ("答案：可以。", "可以。"),
        ("**A:** Yes.", "Yes."),
        ("**答**：可以。", "可以。"),
        ("**A: Yes.**", "**Yes.**"),
        ("**答：能**", "**能**"),
        ("A: Basic. B: Pro.", "A: Basic. B: Pro."),
        ("API: yes.", "API: yes."),
        ("A plan: yes.", "A plan: yes."),
        ("Yes.\nA: more", "Yes.\nA: more"),
    ],
)
def test_mark_of_an_answer_is_removed(answer: str, body: str, tmp_path: Path) -> None:
    write(tmp_path / "faq.md", f"# FAQ\n\n**Why?**\n\n{answer}\n\nA: kept\n\n**How?**\n\nB.\n")
    (document,) = read(KINDS["markdown"].make, tmp_path)
    assert document.sections[0].body == f"{body}\n\nA: kept"


@pytest.mark.parametrize(
    "text",
    [
        "**Why?**\n\nBecause.",
        "**Why?**\n\n**How?**\n\nThus.",
        "**Note**\n\nA.\n\n**Careful: is it?** yes\n\nB.\n\n- **Why?**\n- **How?**",
        "<details><summary>Example</summary>\n\nA.\n\n</details>\n<details><summary>Code</summary>\n\nB.\n\n</details>",
    ],
    ids=["a single question", "only one has an answer", "no whole line", "no questions"],
)
def test_other_bold_text_begins_no_section(text: str, tmp_path: Path) -> None:
    write(tmp_path / "page.md", f"# Page\n\n{text}\n")
    (document,) = read(KINDS["markdown"].make, tmp_path)
    assert [section.heading for section in document.sections] == [()]


def test_sections_of_questions_have_the_anchor_of_the_heading_above(tmp_path: Path) -> None:
    write(tmp_path / "faq.md", "# FAQ\n\n## Pay\n\n**Why?**\n\nA.\n\n**How?**\n\nB.\n")
    (document,) = read(KINDS["markdown"].make, tmp_path, page_url="https://x.y/{path}#{anchor}")
    assert {section.page_url for section in document.sections} == {"https://x.y/faq#pay"}


def test_marks_of_headings_that_are_questions_are_removed(tmp_path: Path) -> None:
    write(
        tmp_path / "faq.md",
        "# FAQ\n\n### Q1：支持退款吗？\n\nA：支持。\n\nA：保留\n\n### Q2: Plans\n\nA: Basic",
    )
    (document,) = read(KINDS["markdown"].make, tmp_path)
    assert [(section.heading, section.body) for section in document.sections] == [
        (("支持退款吗？",), "支持。\n\nA：保留"),
        (("Q2: Plans",), "A: Basic"),
    ]
