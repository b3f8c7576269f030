"""Splits the lines of a PDF into sections by the size of headings, or by the bookmarks."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ingestion.sources.formats.pdf_lines import PdfLine
from ingestion.sources.formats.pdf_paragraphs import join_lines, lines_to_markdown, typical_width

MAX_HEADING_CHARS = 150
"""Characters of one line of a heading."""

MAX_HEADING_LINES = 3

MIN_HEADING_SCALE = 1.12
"""Minimum ratio of a heading's font size to that of the body text."""

_SECTION_NUMBER = re.compile(r"\s*(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+[^\W\d_]")
_TWO_LETTERS = re.compile(r"[^\W\d_].*[^\W\d_]")
_MARKUP = re.compile(r"([\\*_`<\[{#])")

PdfOutline = Mapping[str, tuple[int, int]]
"""Bookmarks: title -> (level from 1, page from 1)."""

_HeadingLevel = Callable[[PdfLine], int]
"""Returns the heading level of a line; 0 for body text."""


@dataclass(frozen=True)
class PdfSection:
    """A heading and the text under it."""

    page: int
    """The page it begins on, from 1."""
    parents: tuple[str, ...]
    """Headings above its own, outermost first."""
    markdown: str
    """Heading and text."""


@dataclass
class _LineRun:
    """The lines of one heading, or (level 0) the body text up to the next heading."""

    level: int
    lines: list[PdfLine]


def split_sections(lines: list[PdfLine], outline: PdfOutline) -> Iterator[PdfSection]:
    """Yield the sections in order; text before the first heading is a section without one."""
    width = typical_width(lines)
    headings: list[tuple[int, str]] = []
    page, heading_line = 1, ""
    for run in _group_lines(lines, _heading_levels(lines, outline)):
        if run.level:
            if heading_line:  # the previous heading has no text of its own
                yield PdfSection(page, _parent_headings(headings), heading_line)
            text = join_lines([line.text.strip() for line in run.lines])
            headings = [h for h in headings if h[0] < run.level] + [(run.level, text)]
            page, heading_line = run.lines[0].page, "# " + _MARKUP.sub(r"\\\1", text)
        else:
            body = lines_to_markdown(run.lines, width)
            page = page if heading_line else run.lines[0].page
            yield PdfSection(
                page, _parent_headings(headings), f"{heading_line}\n\n{body}".strip("\n")
            )
            heading_line = ""


def _parent_headings(headings: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(text for _, text in headings[:-1])


def _group_lines(lines: list[PdfLine], level_of: _HeadingLevel) -> Iterator[_LineRun]:
    """Group consecutive lines of the same level; too many lines are no heading but large text."""
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
    return run if len(run.lines) <= MAX_HEADING_LINES else _LineRun(0, run.lines)


def _continues_heading(line: PdfLine, following: PdfLine) -> bool:
    """Whether two consecutive lines of one size belong to the same heading."""
    near = 0 <= line.y - following.y <= 1.7 * line.size
    return line.page == following.page and near and not _SECTION_NUMBER.match(following.text)


def _heading_levels(lines: list[PdfLine], outline: PdfOutline) -> _HeadingLevel:
    """Detect headings by font size if any line is larger than the text, else by the bookmarks."""
    text = _body_text_size(lines)
    larger = [
        line for line in lines if line.size > text * MIN_HEADING_SCALE and _may_be_heading(line)
    ]
    if not larger:
        return _levels_from_outline(outline)
    sizes = sorted({line.size for line in larger}, reverse=True)
    levels = {size: min(level, 5) for level, size in enumerate(sizes, 1)}
    lowest = max(levels.values())
    text_is_bold = sum(line.bold for line in lines) * 2 > len(lines)

    def level(line: PdfLine) -> int:
        if not _may_be_heading(line):
            return 0
        number = _SECTION_NUMBER.match(line.text)
        if line.size == text and line.bold and not text_is_bold and number:
            return min(lowest + 1 + number[1].count("."), 9)
        return levels.get(line.size, 0)

    return level


def _body_text_size(lines: list[PdfLine]) -> float:
    """Return the font size of most characters."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return max(sizes, key=lambda size: sizes[size])


def _may_be_heading(line: PdfLine) -> bool:
    return len(line.text) <= MAX_HEADING_CHARS and bool(_TWO_LETTERS.search(line.text))


def _levels_from_outline(outline: PdfOutline) -> _HeadingLevel:
    places = {(_without_spaces(title), page): level for title, (level, page) in outline.items()}
    return lambda line: places.get((_without_spaces(line.text), line.page), 0)


def _without_spaces(text: str) -> str:
    return "".join(text.split()).lower()
