"""Specifications in Word and PDF: examples, numbers, contents, merged rows, columns and broken cells."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from docx import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn

from ingestion.sources.formats.docx import read_docx
from ingestion.sources.formats.docx_code import Examples
from ingestion.sources.formats.pdf_lines import PdfLine, remove_page_furniture
from ingestion.sources.formats.pdf_sections import lines_to_markdown, split_sections, typical_widths
from schemas.document import SourceDocument
from tests.document_files import LIMITS, read_results, saved, word, word_xml

pytestmark = pytest.mark.acceptance  # each file is read in a process of its own

XML = ['<?xml version="1.0"?>', '<Order guid="1">', "  <no>7</no>", "</Order>"]
JSON = ["{", '  "ship": {', '    "name": "Tern"', "  }", "}"]
NUMBERING = """<w:abstractNum w:abstractNumId="9">
<w:lvl w:ilvl="0"><w:start w:val="2"/><w:numFmt w:val="{format}"/><w:lvlText w:val="{text}"/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:isLgl/><w:pStyle w:val="h2"/>
<w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum>
<w:num w:numId="5"><w:abstractNumId w:val="9"/></w:num>"""
NUMBERED_STYLES = "".join(
    f'<w:style w:type="paragraph" w:styleId="h{level}"><w:name w:val="heading {level}"/>'
    '<w:pPr><w:numPr><w:numId w:val="5"/></w:numPr></w:pPr></w:style>'
    for level in (1, 2)
)


def markdown(document: Any) -> str:
    (part,) = read_docx(saved(document), LIMITS).parts
    return part.markdown


def paragraphs(document: Any, lines: list[str]) -> None:
    for line in lines:
        document.add_paragraph(line)


def broken_lines(document: Any, lines: list[str]) -> None:
    document.add_paragraph("\n".join(lines))


def cell_paragraphs(document: Any, lines: list[str]) -> None:
    cell = document.add_table(1, 1).cell(0, 0)
    cell.text = lines[0]
    for line in lines[1:]:
        cell.add_paragraph(line)


def cell_lines(document: Any, lines: list[str]) -> None:
    document.add_table(1, 1).cell(0, 0).text = "\n".join(lines)


@pytest.mark.parametrize("write", [paragraphs, broken_lines, cell_paragraphs, cell_lines])
@pytest.mark.parametrize("lines", [XML, JSON, ["{", "# 订单", '"a": [1,', "2]", "}"]])
def test_example_in_word_is_one_block_of_code(
    write: Callable[[Any, list[str]], None], lines: list[str]
) -> None:
    document = Document()
    document.add_paragraph("请求示例：")
    write(document, lines)
    document.add_paragraph("字段见下表。")
    code = "\n".join(["```", *lines, "```"])
    assert markdown(document) == f"请求示例：\n\n{code}\n\n字段见下表。"


def test_statements_in_a_cell_are_code() -> None:
    document = Document()
    cell_lines(document, ["String sign = key.sign(text);", "request.add(sign);"])
    assert markdown(document).startswith("```\nString sign")


@pytest.mark.parametrize(
    "lines",
    [
        ["注意：每次最多上传100条。", "超过的部分将被忽略。"],
        ["<Tag> 表示标签。", "另见第2节。"],
        ["[1] RFC 9110", "[2] RFC 9112"],
        ["{", "一段文字，没有结束的括号。"],
        ["<OrderHead>", "第一段文字。", "第二段文字。", "第三段文字。", "</OrderHead>"],
    ],
)
def test_text_is_not_taken_for_an_example(lines: list[str]) -> None:
    assert Examples(lines).end(0) == 0


def test_example_without_its_end_stops_before_the_text() -> None:
    assert Examples(['{"a": 1,', '"b": {', "...", "以上为示例。"]).end(0) == 3


def test_many_unclosed_examples_are_read_in_reasonable_time() -> None:
    start = time.monotonic()
    Examples(["{", "text", '<a "' + '"' * 1_000] * 10_000).end(0)
    examples = Examples(["{", "text"] * 20_000)
    assert all(examples.end(index) == index for index in range(40_000))
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("number_format", "text", "first"),
    [("decimal", "%1", "2 "), ("chineseCounting", "第%1章", "第二章 "), ("ordinal", "%1", "")],
)
def test_automatic_numbers_stand_before_headings(number_format: str, text: str, first: str) -> None:
    def heading(level: int, title: str) -> str:
        style = f'<w:pPr><w:pStyle w:val="h{level}"/></w:pPr>'
        return f"<w:p>{style}<w:r><w:t>{title}</w:t></w:r></w:p>"

    body = heading(1, "报文") + heading(2, "订单") + heading(2, "2.2 运单") + heading(1, "附录")
    numbering = NUMBERING.format(format=number_format, text=text)
    data = word(
        {
            "word/document.xml": word_xml(body),
            "word/styles.xml": word_xml(NUMBERED_STYLES, "styles"),
            "word/numbering.xml": word_xml(numbering, "numbering"),
        }
    )
    last = first.replace("2", "3").replace("二", "三")
    (part,) = read_docx(data, LIMITS).parts
    assert part.markdown.split("\n\n") == [
        f"# {first}报文",
        "## 2.1 订单",
        "## 2.2 运单",
        f"# {last}附录",
    ]


def test_list_with_a_start_of_its_own_restarts_the_numbers() -> None:
    def heading(number: int, level: int, title: str) -> str:
        properties = f'<w:pStyle w:val="h{level}"/><w:numPr><w:numId w:val="{number}"/></w:numPr>'
        return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{title}</w:t></w:r></w:p>"

    start = '<w:lvlOverride w:ilvl="{}"><w:startOverride w:val="{}"/></w:lvlOverride>'
    other = f'<w:abstractNumId w:val="9"/>{start.format(0, 1)}{start.format(1, 4)}'
    numbering = (
        NUMBERING.format(format="decimal", text="%1") + f'<w:num w:numId="6">{other}</w:num>'
    )
    headings = [(5, 1), (5, 1), (6, 1), (6, 2), (6, 2), (6, 1), (5, 1), (6, 1)]
    data = word(
        {
            "word/document.xml": word_xml("".join(heading(*each, "订单") for each in headings)),
            "word/styles.xml": word_xml(NUMBERED_STYLES, "styles"),
            "word/numbering.xml": word_xml(numbering, "numbering"),
        }
    )
    (part,) = read_docx(data, LIMITS).parts
    lines = part.markdown.split("\n\n")
    numbers = [line.removesuffix(" 订单").lstrip("# ") for line in lines]
    assert numbers == ["2", "3", "1", "1.4", "1.5", "2", "3", "4"]


@pytest.mark.parametrize(
    ("headings", "title"),
    [
        ([(1, "概述"), (1, "报文格式")], "通关接口规范"),
        ([(1, "1. Introduction"), (2, "Scope"), (1, "2. Messages")], "通关接口规范"),
        ([(0, "通关平台"), (1, "概述")], "通关平台"),
        ([(1, "通关报文"), (1, "附录")], "通关报文"),
        ([(1, "概述")], "概述"),
    ],
)
def test_first_chapter_is_not_the_title(
    tmp_path: Path, headings: list[tuple[int, str]], title: str
) -> None:
    document = Document()
    document.core_properties.title = ""
    for level, text in headings:
        document.add_heading(text, level)
        document.add_paragraph("正文")
    (tmp_path / "通关接口规范.docx").write_bytes(saved(document))
    (result,) = read_results(tmp_path, LIMITS)
    assert isinstance(result, SourceDocument)
    assert result.title == title


@pytest.mark.parametrize("style", ["toc 1", ""])
@pytest.mark.parametrize("gap", ["\t", "........", ". . . . "])
def test_contents_of_a_word_document_are_left_out(style: str, gap: str) -> None:
    document = Document()
    if style:
        document.styles.add_style(style, WD_STYLE_TYPE.PARAGRAPH)
    document.add_paragraph("前面的话")
    document.add_paragraph("目  录")
    for line in (f"1 引言{gap}3", f"1.1 目的{gap}3", f"2 报文{gap}12"):
        document.add_paragraph(line, style=style or None)
    document.add_heading("1 引言", 1)
    document.add_paragraph("超时时间（秒） 60")
    assert markdown(document) == "前面的话\n\n# 1 引言\n\n超时时间（秒） 60"


def test_paragraph_with_an_outline_level_is_a_heading() -> None:
    document = Document()
    for text, outline in (("订单", "0"), ("字段", "1"), ("正文", "9")):
        level = OxmlElement("w:outlineLvl")
        level.set(qn("w:val"), outline)
        document.add_paragraph(text)._p.get_or_add_pPr().append(level)
    assert markdown(document) == "# 订单\n\n## 字段\n\n正文"


def test_merged_row_splits_a_word_table() -> None:
    document = Document()
    table = document.add_table(0, 2)
    for first, second in (
        ("字段", "类型"),
        ("表头", None),
        ("no", "C3"),
        ("表体", None),
        ("qty", "N"),
    ):
        cells = table.add_row().cells
        cells[0].text = first
        if second is None:
            cells[0].merge(cells[1])
        else:
            cells[1].text = second
    header = "| 字段 | 类型 |\n| --- | --- |"
    assert markdown(document) == (f"表头\n\n{header}\n| no | C3 |\n\n表体\n\n{header}\n| qty | N |")


def test_contents_of_a_pdf_are_left_out() -> None:
    page = [PdfLine("目 录", 1, 200, 700, 12)]
    for number in range(3):
        y = 680 - 20 * number
        page += [PdfLine(" .  .  .  .  .  . 3", 1, 120, y, 10)]
        page += [PdfLine(f"{number} 引言", 1, 60, y, 10)]
    text = PdfLine("正文", 2, 60, 700, 10)
    assert remove_page_furniture([page, [text]]) == [text]


def test_lines_of_narrow_columns_are_joined() -> None:
    full, narrow = "全" * 40, "窄" * 18
    lines = [PdfLine(full, 1, 60, 700 - 14 * i, 10) for i in range(20)]
    lines += [PdfLine(narrow, 2, x, 700 - 14 * i, 10) for x in (60, 300) for i in range(12)]
    assert lines_to_markdown(lines, typical_widths(lines)).endswith(narrow * 24)


@pytest.mark.parametrize(
    ("text", "is_heading"),
    [("2.3.1 扫码设备", True), ("2.3.1 扫码设备应支持二维码。", False), ("3 台设备", False)],
)
def test_slightly_larger_numbered_line_is_a_heading(text: str, is_heading: bool) -> None:
    lines = [PdfLine("2 条件", 1, 60, 740, 16), PdfLine("正文" * 20, 1, 60, 700, 10.5)]
    lines += [PdfLine(text, 1, 60, 660, 11), PdfLine("正文" * 20, 1, 60, 620, 10.5)]
    sections = list(split_sections(lines, {}))
    assert [section.markdown.startswith(f"# {text}") for section in sections] == (
        [False, True] if is_heading else [False]
    )


def test_broken_lines_in_the_cells_of_a_pdf_table_are_joined() -> None:
    lines = [
        *[PdfLine(text, 1, x, 700, 9) for x, text in ((60, "类型"), (160, "方式"), (260, "备注"))],
        PdfLine("三级", 1, 60, 674, 9),  # in the middle of its row
        PdfLine("双运营商", 1, 160, 680, 9),
        PdfLine("专线", 1, 160, 668, 9),
        PdfLine("自动", 1, 260, 674, 9),
        PdfLine("二级", 1, 60, 650, 9),  # at the top of its row
        PdfLine("单专线", 1, 160, 650, 9),
        PdfLine("主备", 1, 260, 650, 9),
        PdfLine("切换", 1, 260, 638, 9),
        PdfLine("药店", 1, 60, 620, 9),
        PdfLine("无", 1, 260, 620, 9),
    ]
    assert lines_to_markdown(lines, typical_widths(lines)) == (
        "| 类型 | 方式 | 备注 |\n| --- | --- | --- |\n| 三级 | 双运营商专线 | 自动 |\n"
        "| 二级 | 单专线 | 主备切换 |\n| 药店 |  | 无 |"
    )
