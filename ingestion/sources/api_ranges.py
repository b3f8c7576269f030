"""Divides a page with several operations: the blocks that belong to each of them."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from ingestion.sources.api_calls import CALL, is_label
from ingestion.sources.api_marks import Mark, is_fact_label
from ingestion.sources.api_roles import role_of_title
from ingestion.text.markdown_blocks import MarkdownBlock

Range = tuple[Mark, int, int]
"""A mark, and the first block and the end of the blocks that belong to it."""


def after_title(blocks: Sequence[MarkdownBlock]) -> int:
    """Return the index after the heading that is the title of the page; 0 if there is none.

    It is the first heading, the only one of level 1, and contains no call.
    """
    headings = [index for index, block in enumerate(blocks) if block.kind == "heading"]
    first = headings[0] if headings else -1
    is_title = [blocks[index].level for index in headings].count(1) == 1 and (
        blocks[first].level == 1 and not CALL.search(blocks[first].text)
    )
    return first + 1 if is_title else 0


def split_by_mark(blocks: Sequence[MarkdownBlock], marks: Sequence[Mark]) -> list[Range]:
    """Return each mark with the range of blocks that belong to it: all blocks if it is the only one."""
    if len(marks) <= 1:
        return [(mark, 0, len(blocks)) for mark in marks]
    # Headings of other levels are within operations: the first operation has none above it.
    known = {block.level for block in blocks[after_title(blocks) : marks[0].block + 1]} - {0}
    starts = [
        _start(blocks, before.block + 1, mark.block, known) for before, mark in pairwise(marks)
    ]
    levels = [blocks[start].level for start in starts if blocks[start].kind == "heading"]
    starts.insert(0, _first_start(blocks, marks[0].block, min(levels, default=0)))
    ends = [*starts[1:], len(blocks)]
    levels = [_level_of_section(blocks, starts[: index + 1]) for index in range(len(starts))]
    return [
        (mark, start, _end(blocks, start, end, level))
        for mark, start, end, level in zip(marks, starts, ends, levels, strict=True)
    ]


def _level_of_section(blocks: Sequence[MarkdownBlock], starts: Sequence[int]) -> int:
    """Return the level of the heading at the last start, or of the start before it that has one.

    A call without a heading is in the section of the operation before it. 0 if there is no heading.
    """
    return next((blocks[i].level for i in reversed(starts) if blocks[i].kind == "heading"), 0)


def _start(blocks: Sequence[MarkdownBlock], lowest: int, mark: int, levels: Collection[int]) -> int:
    """Return the last of the highest headings of `levels` from `lowest` to the block of the mark.

    Without such headings, it is the heading or label right above the mark.
    """
    headings = [i for i in range(lowest, mark + 1) if blocks[i].level in levels]
    if not headings and mark > lowest and blocks[mark - 1].kind == "heading":
        return mark if is_fact_label(blocks[mark - 1].title) else mark - 1
    if not headings or blocks[mark].kind == "heading":
        return mark - 1 if mark > lowest and is_label(blocks[mark - 1]) else mark
    level = min(blocks[i].level for i in headings)
    return max(i for i in headings if blocks[i].level == level)


def _end(blocks: Sequence[MarkdownBlock], start: int, end: int, level: int) -> int:
    """Return where the section of `level` with the block `start` ends, at most `end`.

    Errors under a heading of the same level are those of all operations. A section that begins without a
    heading ends at any heading of its level.
    """
    is_headed = blocks[start].kind == "heading"
    for index in range(start + 1, end):
        block = blocks[index]
        is_other = not is_headed or role_of_title(block.title) == "errors"
        if 0 < block.level < level or (0 < block.level == level and is_other):
            return index
    return end


def _first_start(blocks: Sequence[MarkdownBlock], mark: int, level: int) -> int:
    """Return the last heading of the level of the other operations or above, else the start of the page.

    Without such a level, the operations begin where their calls stand.
    """
    if level == 0:
        return mark
    first = after_title(blocks)
    return max((i for i in range(first, mark + 1) if 0 < blocks[i].level <= level), default=0)
