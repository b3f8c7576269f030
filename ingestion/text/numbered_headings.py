"""Turns lines with Chinese numbers, such as `一、注意事项`, into headings.

Chinese documents without heading styles number their sections in this way: `一、` and, below it, `（一）`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from ingestion.text.markdown_blocks import MarkdownBlock, plain_text

MIN_HEADINGS = 2
"""Minimum number of headings of a kind. A single one may be part of the text around it."""

MAX_NUMBERED_CHARS = 40
"""Maximum length of a heading with its number. A longer line is an item of a list."""

_DIGITS = "一二三四五六七八九"
_NUMBER = rf"([{_DIGITS}]?十[{_DIGITS}]?|[{_DIGITS}])"
_SPACE = r"[ \t\u3000]*"
_STYLES = (
    (2, re.compile(rf"{_SPACE}{_NUMBER}{_SPACE}、{_SPACE}\S")),
    (3, re.compile(rf"{_SPACE}[(（]{_NUMBER}[)）]{_SPACE}、?{_SPACE}\S")),
)
"""The level of each kind of heading, and the start of its line."""
_FIRST = re.compile(r"一[ \t\u3000]*、|[(（]一[)）]")
_SENTENCE = re.compile(r"[。；，]|[:：;,.!！]\s*\Z")
"""Matches a line that is a sentence or introduces one."""


@dataclass(frozen=True)
class _Line:
    """A line of a paragraph, or any other block as a whole."""

    block: int
    index: int
    title: str = ""
    level: int = 0
    """The level of the heading that the line may be, else 0."""
    number: int = 0


def with_numbered_headings(blocks: Sequence[MarkdownBlock]) -> list[MarkdownBlock]:
    """Return the blocks of a page with headings instead of its lines with Chinese numbers.

    The numbers must begin at one and be consecutive, and text must follow each line: otherwise, the lines
    are a list or a table of contents. The blocks are unchanged if the page has a heading below its title.
    """
    may_have_headings = any(
        block.kind == "paragraph" and _FIRST.search(block.text) for block in blocks
    )
    if not may_have_headings or any(block.kind == "heading" for block in blocks[1:]):
        return list(blocks)
    headings = {(line.block, line.index): line for line in _headings(list(_lines(blocks)))}
    anchor = blocks[0].anchor
    return [part for i, block in enumerate(blocks) for part in _split(block, i, headings, anchor)]


def _lines(blocks: Sequence[MarkdownBlock]) -> Iterator[_Line]:
    for i, block in enumerate(blocks):
        if block.kind != "paragraph":
            yield _Line(i, 0)
            continue
        for j, line in enumerate(block.text.split("\n")):
            yield _read_line(line, i, j)


def _read_line(text: str, block: int, index: int) -> _Line:
    if len(text) <= MAX_NUMBERED_CHARS:
        title = " ".join(plain_text(text).split())
        for level, pattern in _STYLES:
            match = pattern.match(title)
            if match and not _SENTENCE.search(title):
                return _Line(block, index, title, level, _number(match[1]))
    return _Line(block, index)


def _number(text: str) -> int:
    tens, ten, units = text.rpartition("十")
    value = 10 * (_DIGITS.find(tens or "一") + 1) if ten else 0
    return value + _DIGITS.find(units or " ") + 1


def _headings(lines: list[_Line]) -> list[_Line]:
    """Return the lines that are headings, by their numbers and by what follows them."""
    followed = [
        line
        for line, following in pairwise(lines)
        if line.level and (following.level == 0 or following.level > line.level)
    ]
    upper = [line for line in followed if line.level == 2]
    upper = upper if _is_sequence(upper) else []

    def section(line: _Line) -> int:
        return sum((heading.block, heading.index) < (line.block, line.index) for heading in upper)

    lower = (line for line in followed if line.level == 3)
    groups = (list(group) for _, group in groupby(lower, section))
    return [*upper, *(line for group in groups if _is_sequence(group) for line in group)]


def _is_sequence(lines: Sequence[_Line]) -> bool:
    numbers = [line.number for line in lines]
    return len(numbers) >= MIN_HEADINGS and numbers == list(range(1, len(numbers) + 1))


def _split(
    block: MarkdownBlock, number: int, headings: dict[tuple[int, int], _Line], anchor: str
) -> Iterator[MarkdownBlock]:
    """Yield the headings in a block, and the text between them, as blocks."""
    lines = block.text.split("\n")
    found = [i for i in range(len(lines)) if (number, i) in headings]
    if not found:
        yield block
        return
    for start, end in pairwise([0, *(found if found[0] else found[1:]), len(lines)]):
        heading = headings.get((number, start))
        if heading:
            yield MarkdownBlock("heading", lines[start], heading.level, heading.title, anchor)
            start += 1
        if text := "\n".join(lines[start:end]).strip("\n"):
            yield MarkdownBlock("paragraph", text)
