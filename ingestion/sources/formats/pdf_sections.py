"""Lines of a PDF -> its sections, by the size of their headings."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ingestion.sources.formats.pdf_lines import PdfLine, joined, paragraphs, usual_width

LONGEST_HEADING = 150
"""Characters of one of its lines."""

MOST_HEADING_LINES = 3

LARGER = 1.12
"""How much larger than the text a heading is set."""

_NUMBERED = re.compile(r"\s*(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+[^\W\d_]")
_WORDY = re.compile(r"[^\W\d_].*[^\W\d_]")
_MARKUP = re.compile(r"([\\*_`<\[{#])")

PdfOutline = Mapping[str, tuple[int, int]]
"""Bookmarks: title -> (level, page)."""

_LevelOf = Callable[[PdfLine], int]
"""The level of the heading that a line is, 0 for one that is none."""


@dataclass(frozen=True)
class PdfSection:
    """What stands under a heading."""

    page: int
    """Where it begins, from 1."""
    above: tuple[str, ...]
    """The headings over its own."""
    markdown: str
    """Its heading and its text."""


@dataclass
class _Run:
    """Lines of one heading, or (level 0) those up to the next."""

    level: int
    lines: list[PdfLine]


def sections(lines: list[PdfLine], outline: PdfOutline) -> Iterator[PdfSection]:
    """The document's sections in order; what stands before the first heading is one without."""
    width = usual_width(lines)
    headings: list[tuple[int, str]] = []
    page, opening = 1, ""
    for run in _runs(lines, _level_of(lines, outline)):
        if run.level:
            if opening:  # nothing stands under it but further headings
                yield PdfSection(page, _above(headings), opening)
            text = joined([line.text.strip() for line in run.lines])
            headings = [h for h in headings if h[0] < run.level] + [(run.level, text)]
            page, opening = run.lines[0].page, "# " + _MARKUP.sub(r"\\\1", text)
        else:
            body = paragraphs(run.lines, width)
            page = page if opening else run.lines[0].page
            yield PdfSection(page, _above(headings), f"{opening}\n\n{body}".strip("\n"))
            opening = ""


def _above(headings: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(text for _, text in headings[:-1])


def _runs(lines: list[PdfLine], level_of: _LevelOf) -> Iterator[_Run]:
    """The lines in runs; a heading of too many lines is text set large."""
    run = _Run(0, [])
    for line in lines:
        level = level_of(line)
        if run.lines and (level != run.level or (level and not _follows(run.lines[-1], line))):
            yield _checked(run)
            run = _Run(level, [])
        run.level = level
        run.lines.append(line)
    if run.lines:
        yield _checked(run)


def _checked(run: _Run) -> _Run:
    return run if len(run.lines) <= MOST_HEADING_LINES else _Run(0, run.lines)


def _follows(line: PdfLine, following: PdfLine) -> bool:
    """Whether two lines of one size are one heading, and not two."""
    near = 0 <= line.y - following.y <= 1.7 * line.size
    return line.page == following.page and near and not _NUMBERED.match(following.text)


def _level_of(lines: list[PdfLine], outline: PdfOutline) -> _LevelOf:
    """By size where headings are set larger than the text; else by the bookmarks."""
    text = _text_size(lines)
    larger = [line for line in lines if line.size > text * LARGER and _may_be_heading(line)]
    if not larger:
        return _by_outline(outline)
    sizes = sorted({line.size for line in larger}, reverse=True)
    levels = {size: min(level, 5) for level, size in enumerate(sizes, 1)}
    lowest = max(levels.values())
    text_is_bold = sum(line.bold for line in lines) * 2 > len(lines)

    def level(line: PdfLine) -> int:
        if not _may_be_heading(line):
            return 0
        number = _NUMBERED.match(line.text)
        if line.size == text and line.bold and not text_is_bold and number:
            return min(lowest + 1 + number[1].count("."), 9)
        return levels.get(line.size, 0)

    return level


def _text_size(lines: list[PdfLine]) -> float:
    """The size that most characters have."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return max(sizes, key=lambda size: sizes[size])


def _may_be_heading(line: PdfLine) -> bool:
    return len(line.text) <= LONGEST_HEADING and bool(_WORDY.search(line.text))


def _by_outline(outline: PdfOutline) -> _LevelOf:
    places = {(_squeezed(title), page): level for title, (level, page) in outline.items()}
    return lambda line: places.get((_squeezed(line.text), line.page), 0)


def _squeezed(text: str) -> str:
    return "".join(text.split()).lower()
