"""Rewrites the body of a Word document, so that the conversion to HTML finds its structure.

Examples in XML or JSON become code, paragraphs with an outline level become headings, and headings get
their automatic numbers. Tables are split at rows with a single cell. The table of contents is removed.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from xml.etree import ElementTree

from ingestion.sources.formats.docx_code import Examples, is_code
from ingestion.sources.formats.docx_numbering import HeadingNumbers
from ingestion.sources.formats.docx_styles import (
    CODE_STYLE,
    OUTLINE_STYLE,
    WORD,
    WordStyles,
    value,
)

MAX_HEADING_CHARS = 150
"""Maximum length of a paragraph that is a heading because of its outline level, in characters."""

MAX_ROW_LABEL_CHARS = 200
"""Maximum length, in characters, of the text in the only cell of a row at which a table is split."""

MAX_COPIED_ELEMENTS = 20_000
"""Maximum number of XML elements that copies of the header may add to a table."""

_Element = ElementTree.Element
_TEXTS = {f"{WORD}br": "\n", f"{WORD}cr": "\n", f"{WORD}tab": "\t", f"{WORD}noBreakHyphen": "-"}
_TOC_STYLE = re.compile(r"toc (?:heading|\d)|table of figures|目录 ?\d?|目錄 ?\d?")
_TOC_TITLE = re.compile(r"\s*(?:目\s*[录錄次]|(?:table of )?contents)\s*", re.IGNORECASE)
_LEADER_LINE = re.compile(r".*(?:[.．·…] ?){3}\s*\d{1,4}\s*$")
"""A line of a table of contents, which ends with dots and a page number."""
_TAB_LINE = re.compile(r".*[\t ]\d{1,4}\s*$")
"""A line of a table of contents that has a tab or space instead of the dots."""


def restructure(document: bytes, styles: WordStyles, numbers: HeadingNumbers) -> bytes:
    """Return the content of the part `word/document.xml` with its structure made explicit."""
    root = ElementTree.fromstring(document)
    body = root.find(f"{WORD}body")
    if body is None:
        return document
    blocks = _without_table_of_contents(list(_blocks(body)), styles)
    for block in blocks:
        if block.tag == f"{WORD}p":
            _mark_heading(block, styles, numbers)
    body[:] = [
        part
        for block in _join_examples(blocks, styles)
        for part in (_split_table(block) if block.tag == f"{WORD}tbl" else [block])
    ]
    return ElementTree.tostring(root)


def _blocks(container: _Element) -> Iterator[_Element]:
    """Yield the paragraphs and tables, also those in content controls, except a table of contents."""
    for block in container:
        content = block.find(f"{WORD}sdtContent") if block.tag == f"{WORD}sdt" else None
        if content is None:
            yield block
        elif value(block, "sdtPr/docPartObj/docPartGallery") != "Table of Contents":
            yield from _blocks(content)


def _text(paragraph: _Element) -> str:
    """Return the text of a paragraph with its line breaks and tabs."""
    return "".join(
        (part.text or "") if part.tag == f"{WORD}t" else _TEXTS.get(part.tag, "")
        for run in paragraph.iter(f"{WORD}r")
        for part in run
    )


def _level(paragraph: _Element, styles: WordStyles) -> int:
    """Return the heading level of a paragraph; 0 for text."""
    style_id = value(paragraph, "pPr/pStyle")
    if style_id.startswith(OUTLINE_STYLE):
        return int(style_id[-1])
    return styles.heading_level(style_id)


def _without_table_of_contents(blocks: list[_Element], styles: WordStyles) -> list[_Element]:
    """Return `blocks` without the table of contents.

    Lines with a style such as "toc 1" belong to it. Three or more consecutive lines that end in dots and a
    page number belong to it as well. After the title "Contents", a tab or a space may replace the dots.
    """
    kept: list[_Element] = []
    lines: list[_Element] = []  # may belong to the table of contents
    title: _Element | None = None  # the last of `kept`, if it is the title "Contents"
    # The element at the end is not in a table of contents. It makes the loop decide about the last lines.
    for block in [*blocks, ElementTree.Element("end")]:
        text = _text(block) if block.tag == f"{WORD}p" else "-"
        if block.tag == f"{WORD}p" and _TOC_STYLE.fullmatch(
            styles.name(value(block, "pPr/pStyle"))
        ):
            if title is not None:
                kept.pop()
                title = None
            continue
        may_follow_title = not text.strip() or _TAB_LINE.match(text)
        if _LEADER_LINE.match(text) or (title is not None and may_follow_title):
            lines.append(block)
            continue
        if sum(1 for line in lines if _text(line).strip()) < 3:
            kept += lines
        elif title is not None:
            kept.pop()
        lines, title = [], block if _TOC_TITLE.fullmatch(text) else None
        kept.append(block)
    return kept[:-1]


def _mark_heading(paragraph: _Element, styles: WordStyles, numbers: HeadingNumbers) -> None:
    """Give a paragraph with an outline level the style of a heading.

    Puts the automatic number of a heading before its text, unless the text begins with the number.
    """
    number = numbers.next_number(paragraph)
    outline = value(paragraph, "pPr/outlineLvl")
    text = _text(paragraph).strip()
    properties = paragraph.find(f"{WORD}pPr")
    has_outline_level = outline in tuple("012345678") and not _level(paragraph, styles)
    if properties is not None and has_outline_level and 0 < len(text) <= MAX_HEADING_CHARS:
        for style in properties.findall(f"{WORD}pStyle"):
            properties.remove(style)
        level = min(int(outline) + 1, 6)
        properties.insert(0, _Element(f"{WORD}pStyle", {f"{WORD}val": f"{OUTLINE_STYLE}{level}"}))
    if number and text and _level(paragraph, styles) and not text.startswith(number):
        paragraph.insert(0 if properties is None else 1, _run(f"{number} "))


def _run(text: str) -> _Element:
    run = _Element(f"{WORD}r")
    ElementTree.SubElement(run, f"{WORD}t").text = text
    return run


def _join_examples(blocks: list[_Element], styles: WordStyles) -> Iterator[_Element]:
    """Yield the blocks. The paragraphs of an example become one paragraph of code.

    A table whose only cell contains an example or code becomes a paragraph of code, too.
    """
    # "#" stands for headings and tables, because it is neither XML nor JSON.
    texts = [
        _text(block) if block.tag == f"{WORD}p" and not _level(block, styles) else "#"
        for block in blocks
    ]
    examples = Examples(texts)
    index = 0
    while index < len(blocks):
        end = examples.end(index)
        lines = _only_cell(blocks[index])
        if end > index:
            yield _code(texts[index:end])
        elif is_code(lines):
            yield _code(lines)
        else:
            yield blocks[index]
        index = max(end, index + 1)


def _only_cell(block: _Element) -> list[str]:
    """Return the lines of text in a table that has a single cell; empty for other blocks."""
    cells = list(block.iter(f"{WORD}tc")) if block.tag == f"{WORD}tbl" else []
    if len(cells) != 1:
        return []
    text = "\n".join(_text(paragraph) for paragraph in cells[0].iter(f"{WORD}p"))
    return text.split("\n")


def _code(lines: list[str]) -> _Element:
    paragraph = _Element(f"{WORD}p")
    properties = ElementTree.SubElement(paragraph, f"{WORD}pPr")
    ElementTree.SubElement(properties, f"{WORD}pStyle", {f"{WORD}val": CODE_STYLE})
    paragraph.append(_run("\n".join(lines)))
    return paragraph


def _split_table(table: _Element) -> list[_Element]:
    """Split a table at the rows with a single cell, which become paragraphs between the parts.

    Each part begins with the header of the table. A table is not split if copies of its header could have
    more than MAX_COPIED_ELEMENTS elements.
    """
    rows = table.findall(f"{WORD}tr")
    columns = max(map(_width, rows), default=0)
    labels = [_label_paragraphs(row, columns) for row in rows]
    plain = [row for row, label in zip(rows, labels, strict=True) if not label]
    header = plain[:1]
    size = sum(1 for row in header for _ in row.iter())
    if len(plain) == len(rows) or not header or size * len(rows) > MAX_COPIED_ELEMENTS:
        return [table]
    properties = [part for part in table if part.tag != f"{WORD}tr"]
    blocks: list[_Element] = []
    part: _Element | None = None
    for row, label in zip(rows, labels, strict=True):
        if label:
            blocks, part = [*blocks, *label], None
            continue
        if row is header[0] and plain[1:]:
            continue
        if part is None:
            part = _Element(f"{WORD}tbl")
            part.extend([*properties, *(deepcopy(header) if row is not header[0] else [])])
            blocks.append(part)
        part.append(row)
    return blocks


def _width(row: _Element) -> int:
    """Return the number of columns of a row."""
    spans = [value(cell, "tcPr/gridSpan") for cell in row.findall(f"{WORD}tc")]
    return sum(int(span) if span.isdecimal() and len(span) < 4 else 1 for span in spans)


def _label_paragraphs(row: _Element, columns: int) -> list[_Element]:
    """Return the paragraphs of a row whose single short cell spans all columns; empty for other rows."""
    cells = row.findall(f"{WORD}tc")
    has_table = bool(cells) and cells[0].find(f"{WORD}tbl") is not None
    if len(cells) != 1 or columns < 2 or _width(row) != columns or has_table:
        return []
    paragraphs = [part for part in cells[0].findall(f"{WORD}p") if _text(part).strip()]
    length = sum(len(_text(part)) for part in paragraphs)
    return paragraphs if 0 < length <= MAX_ROW_LABEL_CHARS else []
