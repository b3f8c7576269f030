"""Divides a page with several operations into their blocks, and names each operation.

An operation is named by a heading, the title of the page, or the text next to the call.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from ingestion.sources.api_calls import CALL, METHODS, OPENING_CALL, is_label, path_of
from ingestion.sources.api_columns import text_of
from ingestion.sources.api_facts import is_scope_label
from ingestion.sources.api_marks import Mark, is_fact_label
from ingestion.sources.api_roles import role_of_title
from ingestion.text.markdown_blocks import MarkdownBlock

Range = tuple[Mark, int, int]
"""A mark, and the first block and the end of the blocks that belong to it."""

MAX_NAME_CHARS = 80
"""Maximum length of a sentence that names an operation."""
_CALL_WITH_NAME = re.compile(
    rf"\W*{CALL.pattern}\W*\s(?:[-–—:]\s+|[(（])(?P<name>[^()（）]{{4,80}})[)）]?"
)
_GENERIC_HEADING = re.compile(
    r"[\W\d]*(?:(?:请求|基本|接口|调用|服务|功能|信息|概述|地址|方式|方法|路径|说明|描述|定义|示例|结构|语法"
    r"|参数|详情|文档|使用|http|https|api|url)+"
    r"|(?:the )?(?:https? |api |rest )?(?:requests?|endpoints?|urls?|methods?|api|routes?|resource|call)"
    r"(?: (?:syntax|format|line|url|details?|info(?:rmation)?|method|path|definition|example|overview))?"
    r"|overview|definition|syntax|usage|reference|summary|description|basic info(?:rmation)?"
    rf"|(?-i:{METHODS})\b.*)\W*",
    re.IGNORECASE,
)
"""Headings that stand on the pages of all operations and name none of them."""


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


def page_operation_name(
    mark: Mark, blocks: Sequence[MarkdownBlock], title: str, parts: Sequence[int]
) -> str:
    """Return the name of the only operation of a page.

    This is the heading of the section that holds the call and all its tables and lists, the blocks with
    the indexes `parts`, if there is one below the page's own heading; otherwise the title of the page.
    """
    for index in _headings_above(blocks, mark.block):
        block = blocks[index]
        is_section = block.level >= 2 and not _GENERIC_HEADING.fullmatch(block.title)
        if is_section and parts and index < min(parts) and max(parts) < _section_end(blocks, index):
            return _without_call(block.title) or _without_number(title)
    return _without_number(title) or section_operation_name(
        mark, blocks, mark.block, title, is_first=False
    )


def section_operation_name(
    mark: Mark, blocks: Sequence[MarkdownBlock], position: int, title: str, is_first: bool
) -> str:
    """Return the name of one of several operations.

    It is the heading of its section, else the text next to the call, else the sentence below a heading
    that is only the call, else the title of the page with the call. If `is_first`, an operation without
    its own name has the title alone. `position` is the index of the block with the call; headings below
    it are within the operation.
    """
    headings = [block.title for block in blocks[: position + 1] if block.kind == "heading"]
    candidates = [*headings[:1], *_beside_call(blocks, position)]
    if not headings and is_first:
        candidates.append(title)
    for own in map(_without_call, candidates):
        if own and not _GENERIC_HEADING.fullmatch(own) and not is_scope_label(own):
            return own
    call = f"{mark.call.method} {path_of(mark.call.url)}"
    summary = _sentence(blocks[position + 1 : position + 2]) if headings else ""
    return summary or " ".join(filter(None, [_without_number(title), call]))


def _beside_call(blocks: Sequence[MarkdownBlock], position: int) -> Iterator[str]:
    """Yield the label before a call, and the text in parentheses or after a dash behind it."""
    text = blocks[position].text if position < len(blocks) else ""
    if opening := OPENING_CALL.search(text):
        yield (opening["label"] or "").rstrip(":：")
    if position and is_label(blocks[position - 1]):
        yield text_of(blocks[position - 1].text).rstrip(":：")
    if match := _CALL_WITH_NAME.fullmatch(text_of(text)):
        yield match["name"].strip()


def _sentence(blocks: Sequence[MarkdownBlock]) -> str:
    """Return the first sentence of a paragraph if it is one short clause."""
    texts = (text_of(block.text) for block in blocks if block.kind == "paragraph")
    sentence = re.split(r"(?<=[.。!！])\s*", next(texts, ""))[0].rstrip(".。")
    is_clause = len(sentence) <= MAX_NAME_CHARS and not re.search("[:：,，;；、]", sentence)
    return sentence if is_clause and not is_scope_label(sentence) else ""


def _headings_above(blocks: Sequence[MarkdownBlock], block: int) -> list[int]:
    """Return the headings of the sections that contain a block, the outermost first."""
    above: list[int] = []
    for index in range(min(block + 1, len(blocks))):
        if blocks[index].kind == "heading":
            above = [i for i in above if blocks[i].level < blocks[index].level] + [index]
    return above


def _section_end(blocks: Sequence[MarkdownBlock], heading: int) -> int:
    """Return the index after the last block of the section of a heading."""
    following = (
        index
        for index in range(heading + 1, len(blocks))
        if 0 < blocks[index].level <= blocks[heading].level
    )
    return next(following, len(blocks))


def _without_call(heading: str) -> str:
    return _without_number(CALL.sub("", heading))


def _without_number(heading: str) -> str:
    """Return a heading without its section number and, as Confluence writes it, its space."""
    own = re.sub(r"^[^:]{1,60} : (?=\S)", "", heading)
    own = re.sub(r"^(?:end-?point|operation|接口)\s*[:：]\s*", "", own, flags=re.IGNORECASE)
    return re.sub(r"^\s*\d+(?:\.\d+)*[.、)）]?\s+", "", own).strip(" -–—:：`%|·•")
