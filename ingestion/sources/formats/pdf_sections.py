"""Splits the lines of a PDF into sections by headings or bookmarks, and joins them into Markdown."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from ingestion.sources.formats.pdf_lines import PdfLine
from ingestion.sources.formats.text import escape_markdown
from ingestion.text.markdown_blocks import markdown_table

PageWidths = Mapping[int, int]
"""Width of a full line by page number, in Latin characters; see `typical_widths`."""

PdfOutline = Mapping[tuple[str, int], int]
"""Levels of the bookmarks by title and page. Levels and pages are counted from 1."""

FULL_LINE_SHARE = 0.7
"""Minimum width of a full line, as a share of the typical width.

After a full line, the paragraph continues. After a shorter line, the author began a new line.
"""

MAX_HEADING_CHARS = 150
"""Maximum length of one line of a heading, in characters."""

MAX_HEADING_LINES = 3
"""Maximum number of lines of a heading."""

MAX_CELL_LINES = 5
"""Maximum number of lines in a cell of a table. More lines below each other are a column of text."""

MAX_NUMBERED_WIDTH = 80
"""Maximum width, in Latin characters, of a numbered heading that is only slightly larger than body text."""

MIN_HEADING_SCALE = 1.12
"""Minimum ratio of a heading's font size to that of the body text."""

_HeadingLevel = Callable[[PdfLine], int]
"""Returns the heading level of a line; 0 for body text."""

_HAN = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_BULLET = re.compile(r"\A\s*[•●▪■◦‣·∙○]\s*")
_LIST_ITEM = re.compile(
    r"\s*(?:[-–*•●▪■◦‣·∙○]\s|\(?\d{1,3}[.)]\s|\d{1,3}、|[（(]\d{1,3}[）)]|\[\d{1,3}\]\s)"
)
_LINE_END_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_SENTENCE_ENDS = tuple(".!?:;。！？：；")
_SECTION_NUMBER = re.compile(r"\s*(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+[^\W\d_]")
_TWO_LETTERS = re.compile(r"[^\W\d_].*[^\W\d_]")
_MARKUP = re.compile(r"([\\*_`<\[{#])")


@dataclass(frozen=True)
class PdfSection:
    """A heading and the text under it."""

    page: int
    """Number of the page on which the section begins, from 1."""
    parents: tuple[str, ...]
    """Headings of the enclosing sections, outermost first."""
    markdown: str
    """Heading and text as Markdown."""


@dataclass
class _LineRun:
    """The lines of one heading or, with level 0, of the text between two headings."""

    level: int
    lines: list[PdfLine]


def typical_widths(lines: list[PdfLine]) -> PageWidths:
    """Return the width of a full line on each page: the 90th percentile of the line widths.

    A page with several columns has a width of its own. All other pages have the width of the document. The
    unit is the width of a Latin character. Chinese characters are twice as wide.
    """
    width = _typical_width(lines)
    pages = [list(group) for _, group in groupby(lines, key=lambda line: line.page)]
    return {page[0].page: _typical_width(page) if _has_columns(page) else width for page in pages}


def _typical_width(lines: list[PdfLine]) -> int:
    widths = sorted(_text_width(line.text) for line in lines)
    return widths[len(widths) * 9 // 10] if widths else 0


def _has_columns(lines: list[PdfLine]) -> bool:
    """Return whether the text of a page continues at the top of another column."""
    return any(
        below.y - line.y > 10 * line.size and below.x - line.x > 10 * line.size
        for line, below in pairwise(lines)
    )


def lines_to_markdown(lines: list[PdfLine], widths: PageWidths) -> str:
    """Return the lines of a section as Markdown; `widths` is the result of `typical_widths`."""
    # A long section entirely in a monospaced font is text, not code.
    is_monospaced_text = all(line.is_monospaced for line in lines) and len(lines) > 50
    blocks: list[str] = []
    for is_code, group in groupby(
        lines, key=lambda line: line.is_monospaced and not is_monospaced_text
    ):
        run = list(group)
        blocks.append(_code_block(run) if is_code else _text_to_markdown(run, widths))
    return "\n\n".join(blocks)


def _code_block(lines: list[PdfLine]) -> str:
    """Return a fenced code block, with the indentation restored from the lines' positions."""
    left = min(line.x for line in lines)
    indents = (min(40, round((line.x - left) / (0.6 * line.size or 1))) for line in lines)
    indented = (" " * indent + line.text for indent, line in zip(indents, lines, strict=True))
    fence = "~~~~" if any("```" in line.text for line in lines) else "```"
    return "\n".join([fence, *indented, fence])


def _text_to_markdown(lines: list[PdfLine], widths: PageWidths) -> str:
    """Return the lines as paragraphs and tables.

    A table consists of consecutive rows that have the same number of cells, at least two.
    """
    blocks: list[str] = []
    rows = list(_fill_rows(_group_rows(_merge_cells(lines))))
    for cells, group in groupby(rows, key=len):
        run = list(group)
        if cells > 1 and len(run) > 1:
            blocks.append(_table(run))
        else:
            blocks += _paragraphs([line for row in run for line in row], widths)
    return "\n\n".join(blocks)


def _merge_cells(lines: list[PdfLine]) -> list[PdfLine]:
    """Join the lines of each table cell. Lines that are not part of a cell are unchanged.

    Lines directly below each other are a cell in two cases:

    - The cell to the left or right is at the height of their middle.
    - Two cells to the left, or one cell to the right, are at the height of their first line.
    """
    stacks = list(_group_stacks(lines))
    cells: list[PdfLine] = []
    for index, stack in enumerate(stacks):
        first = stack[0]
        middle = (first.y + stack[-1].y) / 2
        left = [cell for cell in cells[-2:] if cell.page == first.page and cell.x < first.x]
        following = [other[0] for other in stacks[index + 1 : index + 2]]
        right = [line for line in following if line.page == first.page and line.x > first.x]

        def near(line: PdfLine, y: float, size: float = first.size) -> bool:
            return abs(line.y - y) < 0.2 * size

        is_centred = any(near(line, middle) for line in [*left[-1:], *right])
        lefts_at_top = [line for line in left if near(line, first.y)]
        is_at_top = len(lefts_at_top) == 2 or any(near(line, first.y) for line in right)
        if 1 < len(stack) <= MAX_CELL_LINES and (is_centred or is_at_top):
            text = join_lines([line.text.strip() for line in stack])
            cells.append(replace(first, text=text, y=middle if is_centred else first.y))
        else:
            cells += stack
    return cells


def _group_stacks(lines: list[PdfLine]) -> Iterator[list[PdfLine]]:
    """Group consecutive lines that begin at the same position directly below each other."""
    stack: list[PdfLine] = []
    for line in lines:
        last = stack[-1] if stack else None
        if last and not (
            last.page == line.page
            and abs(last.x - line.x) < 1
            and 0 < last.y - line.y < 1.6 * line.size
        ):
            yield stack
            stack = []
        stack.append(line)
    if stack:
        yield stack


def _group_rows(lines: list[PdfLine]) -> Iterator[list[PdfLine]]:
    """Group lines at the same height, from left to right, into the cells of a row."""
    row: list[PdfLine] = []
    for line in lines:
        last = row[-1] if row else None
        if last and not (
            last.page == line.page and abs(last.y - line.y) < 0.2 * line.size and last.x < line.x
        ):
            yield row
            row = []
        row.append(line)
    if row:
        yield row


def _fill_rows(rows: Iterable[list[PdfLine]]) -> Iterator[list[PdfLine]]:
    """Yield the rows. Add the empty cells that a row lacks in comparison with the previous row.

    Cells are added only if each cell of the row is below a cell of the previous row.
    """
    last: list[PdfLine] = []
    for row in rows:
        cells = {round(cell.x): cell for cell in row}
        if 1 < len(row) < len(last) and cells.keys() <= {round(cell.x) for cell in last}:
            row = [cells.get(round(cell.x)) or replace(cell, text="", y=row[0].y) for cell in last]
        last = row
        yield row


def _table(rows: list[list[PdfLine]]) -> str:
    texts = [[line.text.strip().replace("|", "\\|") for line in row] for row in rows]
    return markdown_table(texts)


def _paragraphs(lines: list[PdfLine], widths: PageWidths) -> list[str]:
    return [
        escape_markdown(
            "\n".join(join_lines([line.text.strip() for line in part]) for part in block)
        )
        for block in _split_paragraphs(lines, widths)
    ]


def _split_paragraphs(lines: list[PdfLine], widths: PageWidths) -> Iterator[list[list[PdfLine]]]:
    """Yield paragraphs, each as a list of parts. A part ends where the author began a new line."""
    block: list[list[PdfLine]] = []
    for line in lines:
        if not block:
            block = [[line]]
        elif _starts_paragraph(block, line):
            yield block
            block = [[line]]
        elif _LIST_ITEM.match(line.text) or not _is_full_line(block[-1][-1], widths):
            block.append([line])
        else:
            block[-1].append(line)
    if block:
        yield block


def _starts_paragraph(block: list[list[PdfLine]], line: PdfLine) -> bool:
    last = block[-1][-1]
    down = last.y - line.y
    if line.page != last.page or down < 0:  # a new page or column
        return last.text.endswith(_SENTENCE_ENDS)
    is_item = bool(_LIST_ITEM.match(block[-1][0].text))
    indented = line.x - last.x > 0.8 * line.size and not is_item and down > 0
    return down > 1.75 * max(last.size, line.size) or (
        indented and last.text.endswith(_SENTENCE_ENDS)
    )


def _is_full_line(line: PdfLine, widths: PageWidths) -> bool:
    return _text_width(line.text) >= FULL_LINE_SHARE * widths[line.page] or bool(
        _LINE_END_HYPHEN.search(line.text)
    )


def _text_width(text: str) -> int:
    return len(text) + len(_HAN.findall(text))


def join_lines(lines: list[str]) -> str:
    """Join lines into one.

    Hyphenated words are rejoined, and Chinese is joined without spaces. A bullet at the start becomes `- `.
    """
    text = _BULLET.sub("- ", lines[0])
    for line in lines[1:]:
        if _LINE_END_HYPHEN.search(text) and line[:1].islower():
            text = text[:-1] + line
        elif _HAN.match(text[-1:]) or _HAN.match(line[:1]):
            text += line
        else:
            text += " " + line
    return text


def split_sections(lines: list[PdfLine], outline: PdfOutline) -> Iterator[PdfSection]:
    """Yield the sections in order. Text before the first heading is a section without a heading."""
    widths = typical_widths(lines)
    headings: list[tuple[int, str]] = []
    page, heading_line = 1, ""
    for run in _group_lines(lines, _heading_levels(lines, outline)):
        if run.level:
            if heading_line:  # the previous heading has no text of its own
                yield PdfSection(page, _parent_headings(headings), heading_line)
            text = join_lines([line.text.strip() for line in run.lines])
            parents = [heading for heading in headings if heading[0] < run.level]
            headings = [*parents, (run.level, text)]
            page, heading_line = run.lines[0].page, "# " + _MARKUP.sub(r"\\\1", text)
        else:
            body = lines_to_markdown(run.lines, widths)
            page = page if heading_line else run.lines[0].page
            yield PdfSection(
                page, _parent_headings(headings), f"{heading_line}\n\n{body}".strip("\n")
            )
            heading_line = ""
    if heading_line:  # the last line is a heading
        yield PdfSection(page, _parent_headings(headings), heading_line)


def _parent_headings(headings: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(text for _, text in headings[:-1])


def _group_lines(lines: list[PdfLine], level_of: _HeadingLevel) -> Iterator[_LineRun]:
    """Group consecutive lines of the same level into headings and texts."""
    run = _LineRun(0, [])
    for line in lines:
        level = level_of(line)
        if run.lines and (
            level != run.level or (level and not _continues_heading(run.lines[-1], line))
        ):
            yield _demote_long_heading(run)
            run = _LineRun(level, [])
        run.level = level
        run.lines.append(line)
    if run.lines:
        yield _demote_long_heading(run)


def _demote_long_heading(run: _LineRun) -> _LineRun:
    """Turn a run that has too many lines for a heading into body text; return other runs unchanged."""
    return run if len(run.lines) <= MAX_HEADING_LINES else _LineRun(0, run.lines)


def _continues_heading(line: PdfLine, following: PdfLine) -> bool:
    """Return whether two consecutive lines with the same heading level belong to the same heading."""
    near = 0 <= line.y - following.y <= 1.7 * line.size
    return line.page == following.page and near and not _SECTION_NUMBER.match(following.text)


def _heading_levels(lines: list[PdfLine], outline: PdfOutline) -> _HeadingLevel:
    """Return a function that detects headings by font size.

    A line that begins with a section number is also a heading if it is bold and the body text is not. It is
    a heading as well if it is short and slightly larger than the body text, and its section number contains
    a dot. If no line is large enough to be a heading, and the document has bookmarks, the function detects
    headings only by bookmarks.
    """
    body_size = _body_text_size(lines)
    larger = [
        line
        for line in lines
        if line.size > body_size * MIN_HEADING_SCALE and _may_be_heading(line)
    ]
    if not larger and outline:
        return _levels_from_outline(outline)
    sizes = sorted({line.size for line in larger}, reverse=True)
    levels = {size: min(level, 5) for level, size in enumerate(sizes, 1)}
    deepest = max(levels.values(), default=0)
    body_is_bold = sum(line.is_bold for line in lines) * 2 > len(lines)

    def level(line: PdfLine) -> int:
        if not _may_be_heading(line):
            return 0
        number = _SECTION_NUMBER.match(line.text)
        if line.size in levels or not number or line.size < body_size:
            return levels.get(line.size, 0)
        is_larger = "." in number[1] and line.size > body_size and _is_short(line.text)
        is_bold = line.is_bold and not body_is_bold and line.size == body_size
        return min(deepest + 1 + number[1].count("."), 9) if is_bold or is_larger else 0

    return level


def _body_text_size(lines: list[PdfLine]) -> float:
    """Return the most frequent font size of the characters."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return max(sizes, key=lambda size: sizes[size])


def _may_be_heading(line: PdfLine) -> bool:
    return len(line.text) <= MAX_HEADING_CHARS and bool(_TWO_LETTERS.search(line.text))


def _is_short(text: str) -> bool:
    return _text_width(text) <= MAX_NUMBERED_WIDTH and not text.rstrip().endswith(_SENTENCE_ENDS)


def _levels_from_outline(outline: PdfOutline) -> _HeadingLevel:
    levels = {(_without_spaces(title), page): level for (title, page), level in outline.items()}
    return lambda line: levels.get((_without_spaces(line.text), line.page), 0)


def _without_spaces(text: str) -> str:
    return "".join(text.split()).lower()
