"""Finds the blocks that belong to each operation of a page, and names the operations.

A call is a method with a URL, such as `GET /users`. An operation is named by a heading, the title of the
page, or the text next to the call.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from ingestion.sources.api_pages.calls import ANY_METHOD, CALL, OPENING_CALL, is_label, split_origin
from ingestion.sources.api_pages.columns import columns_of, is_parameter_table, text_of
from ingestion.sources.api_pages.labels import is_fact_label
from ingestion.sources.api_pages.located_calls import EXAMPLE, LocatedCall
from ingestion.sources.api_pages.permissions import is_scope_label
from ingestion.sources.api_pages.roles import begins_with_verb, role_of_title
from ingestion.text.markdown_blocks import MarkdownBlock, parse_table
from ingestion.text.typography import has_chinese

Range = tuple[LocatedCall, int, int]
"""The call of an operation with the range of the operation's blocks.

The range is the index of the first block, and the index after the last block.
"""

MAX_NAME_CHARS = 80
"""Maximum number of characters in a sentence that names an operation."""
_CALL_WITH_NAME = re.compile(
    rf"\W*{CALL.pattern}\W*\s(?:[-–—:]\s+|[(（])(?P<name>[^()（）]{{4,80}})[)）]?"
)
_GENERIC_HEADING = re.compile(
    r"[\W\d]*(?:(?:请求|基本|接口|调用|服务|功能|信息|概述|简介|介绍|地址|方式|方法|路径|说明|描述|定义|示例|结构|语法"
    r"|参数|详情|文档|使用|http|https|api|url)+"
    r"|(?:the )?(?:https? |api |rest )?(?:requests?|endpoints?|ur[li]s?|methods?|api|routes?|resource|call)"
    r"(?: (?:syntax|format|line|url|details?|info(?:rmation)?|method|path|definition|example|overview))?"
    r"|(?:(?:query|path|body|header|request|response|url) )?(?:param(?:eter)?s?|headers?)"
    r"|examples?(?: \w+)?|how to (?:call|use)(?: it)?"
    r"|overview|introduction|definition|syntax|usage|reference|summary|description|basic info(?:rmation)?"
    rf"|(?-i:{ANY_METHOD})(?:\s+/.*)?)\W*",
    re.IGNORECASE,
)
"""Headings that are not names of operations; see `is_generic_heading`."""
_METHOD_BEFORE_NAME = re.compile(rf"(?:{ANY_METHOD})\s+(?P<name>\w.*)", re.DOTALL)
_VERB_WITH_OBJECT = re.compile(r"\w+ (?:an?|the|all|by)\b", re.IGNORECASE)
_INCOMPLETE = re.compile(
    r"(?:.*\b)?(?:is|are|and|or|by|with|as follows|the following|below)\W*\Z"
    r"|.*(?:[是和或]|[以如]下)\W*\Z",
    re.IGNORECASE | re.DOTALL,
)
"""A label that is not complete without the code below it, such as "The API is" and "or"."""
_REMARK = re.compile(r"[(（][^()（）]*[)）]")
_WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")


def is_generic_heading(title: str) -> bool:
    """Return whether a heading names no particular operation, such as "Request" or "Overview"."""
    return _GENERIC_HEADING.fullmatch(title) is not None


def _is_topic(title: str) -> bool:
    """Return whether a heading names a topic, unlike "Request", "Parameters" or "Example".

    A verb with an object names a topic even if the verb is a word such as "query": "Query by name".
    """
    if is_generic_heading(title) or EXAMPLE.search(title):
        return False
    return not role_of_title(title) or _VERB_WITH_OBJECT.match(title) is not None


def are_of_one_topic(
    blocks: Sequence[MarkdownBlock], first: Sequence[int], second: Sequence[int]
) -> bool:
    """Return whether two blocks may be about the same topic, judged by the headings above them.

    `first` and `second` are the results of `headings_above` for the two blocks. The topics are different if
    each block is in a section that does not contain the other block, and the headings of both sections name
    topics, as in a manual. Headings such as "Example" and "Parameters" name no topics. If a block is in
    several such sections, the outermost one counts.
    """
    sections = [
        next((index for index in indexes if index not in others), None)
        for indexes, others in ((first, second), (second, first))
    ]
    return not all(index is not None and _is_topic(blocks[index].title) for index in sections)


def _without_other_topics(blocks: Sequence[MarkdownBlock], found: Range) -> Range:
    """Return a range, narrowed to the section with its call if that follows tables of several other topics.

    Only sections about topics with tables of parameters count, as in a manual of settings. They must be on
    the outermost level of the range, below the title of the page. The range then ends before the next
    topic, so it contains a section "Parameters" after the call. It is narrowed again if several such topics
    within the section precede the call.
    """
    located, start, end = found
    first = start + 1 if start else after_title(blocks)
    for section in headings_above(blocks, located.block):
        if section < first:
            continue
        level = blocks[section].level
        topics = [
            index
            for index in range(first, section)
            if blocks[index].level == level
            and _is_topic(blocks[index].title)
            and any(map(_has_parameters, blocks[index : _section_end(blocks, index)]))
        ]
        if len(topics) < 2 or not _is_topic(blocks[section].title):
            break
        later = (i for i in range(section + 1, end) if _ends_topic(blocks[i], level))
        start, end, first = section, next(later, end), section + 1
    return located, start, end


def _has_parameters(block: MarkdownBlock) -> bool:
    """Return whether a block is a table of parameters."""
    header, *rows = (parse_table(block.text) if block.kind == "table" else []) or [[]]
    return is_parameter_table(columns_of(header, rows))


def _ends_topic(block: MarkdownBlock, level: int) -> bool:
    """Return whether a block begins a section above `level`, or a section of `level` about a topic."""
    return 0 < block.level < level or (block.level == level and _is_topic(block.title))


def after_title(blocks: Sequence[MarkdownBlock]) -> int:
    """Return the index after the heading that is the title of the page, or 0 if there is no title.

    The first heading is the title if it is the only heading of level 1 and contains no call.
    """
    headings = [index for index, block in enumerate(blocks) if block.kind == "heading"]
    first = headings[0] if headings else -1
    is_title = [blocks[index].level for index in headings].count(1) == 1 and (
        blocks[first].level == 1 and not CALL.search(blocks[first].text)
    )
    return first + 1 if is_title else 0


def split_by_call(
    blocks: Sequence[MarkdownBlock], located_calls: Sequence[LocatedCall]
) -> list[Range]:
    """Return each call with the range of its operation's blocks.

    A single call has all blocks. The ranges are then narrowed (see `_without_other_topics`).
    """
    if len(located_calls) <= 1:
        ranges = [(located, 0, len(blocks)) for located in located_calls]
        return [_without_other_topics(blocks, found) for found in ranges]
    # Levels of the headings after the title, up to the first call. All operations are assumed to begin at
    # one of these levels, so headings of other levels are inside an operation.
    outer_levels = {
        block.level for block in blocks[after_title(blocks) : located_calls[0].block + 1]
    } - {0}
    starts = [
        _start(blocks, before.block + 1, located.block, outer_levels)
        for before, located in pairwise(located_calls)
    ]
    start_levels = [blocks[start].level for start in starts if blocks[start].kind == "heading"]
    starts.insert(0, _first_start(blocks, located_calls[0].block, min(start_levels, default=0)))
    ends = [*starts[1:], len(blocks)]
    levels = [_level_of_section(blocks, starts[: index + 1]) for index in range(len(starts))]
    flat_levels = _flat_levels(blocks, starts)
    titles = _titles_of_parts(blocks, min(filter(None, levels), default=0))
    ranges = [
        (
            located,
            start,
            _end(blocks, start, end, level, is_flat=level in flat_levels, part_titles=titles),
        )
        for located, start, end, level in zip(located_calls, starts, ends, levels, strict=True)
    ]
    return [_without_other_topics(blocks, found) for found in ranges]


def _flat_levels(blocks: Sequence[MarkdownBlock], starts: Sequence[int]) -> set[int]:
    """Return the levels at which headings such as "Parameters" and the headings of operations are mixed.

    At each of these levels, there are at least half as many headings such as "Parameters" as operations.
    """
    operation_starts = frozenset(starts)
    operations = Counter(blocks[start].level for start in operation_starts)
    others = Counter(
        block.level
        for index, block in enumerate(blocks)
        if index not in operation_starts and role_of_title(block.title) not in ("", "errors")
    )
    return {level for level, count in operations.items() if 2 * others[level] >= count}


def _titles_of_parts(blocks: Sequence[MarkdownBlock], level: int) -> set[str]:
    """Return the titles of the parts of operations, such as "Parameters".

    Each is the title of several headings below `level`, the outermost level of the operations. Titles about
    errors are left out, because errors may apply to all operations.
    """
    counts = Counter(block.title for block in blocks if block.level > level)
    return {
        title
        for title, count in counts.items()
        if count > 1 and role_of_title(title) not in ("", "errors")
    }


def _level_of_section(blocks: Sequence[MarkdownBlock], starts: Sequence[int]) -> int:
    """Return the level of the last heading among the blocks at `starts`; 0 if there is none.

    A call without a heading of its own belongs to the section of the last operation above it that begins
    with a heading.
    """
    return next((blocks[i].level for i in reversed(starts) if blocks[i].kind == "heading"), 0)


def _start(
    blocks: Sequence[MarkdownBlock], first_index: int, call_index: int, levels: Collection[int]
) -> int:
    """Return the index of the block with which the operation of a call begins.

    Usually, this is a heading between `first_index` and the call whose level is in `levels`: the last one
    of the outermost level. If there is no such heading, and the call has no name of its own, it can be a
    heading that separates the call from the previous call (see `_next_topic`). In all other cases, and if
    the call is in a heading, the operation begins with the call, or with a heading or label right above it.
    """
    has_block_above = call_index > first_index
    headings = [i for i in range(first_index, call_index + 1) if blocks[i].level in levels]
    if not headings and not _has_own_name(blocks, call_index):
        headings = _next_topic(blocks, first_index - 1, call_index)
    if not headings and has_block_above and blocks[call_index - 1].kind == "heading":
        return call_index if is_fact_label(blocks[call_index - 1].title) else call_index - 1
    if not headings or blocks[call_index].kind == "heading":
        has_label = has_block_above and is_label(blocks[call_index - 1])
        return call_index - 1 if has_label else call_index
    level = min(blocks[i].level for i in headings)
    return max(i for i in headings if blocks[i].level == level)


def _next_topic(
    blocks: Sequence[MarkdownBlock], previous_call_index: int, call_index: int
) -> list[int]:
    """Return a list with the index of the heading that separates two calls; empty if there is none.

    For example, the calls are below "### List devices" and "### Create a device", and the result is the
    index of the second heading. The heading must name a topic.
    """
    above = headings_above(blocks, call_index)
    above_previous = headings_above(blocks, previous_call_index)
    for heading, sibling in zip(above, above_previous, strict=False):
        if heading != sibling:
            has_same_level = blocks[heading].level == blocks[sibling].level
            is_topic = _is_topic(_without_call(blocks[heading].title))
            return [heading] if has_same_level and is_topic else []
    return []


def _end(
    blocks: Sequence[MarkdownBlock],
    start: int,
    end: int,
    level: int,
    *,
    is_flat: bool,
    part_titles: Collection[str],
) -> int:
    """Return the index after the last block of the section of `level` that begins at `start`.

    The index is at most `end`. Only a section that begins with a heading may contain headings of its own
    level. If the level is flat (see `_flat_levels`), these are all headings except those about errors,
    because such errors apply to all operations. Otherwise, they are the headings with a title in
    `part_titles` (see `_titles_of_parts`) that is new in the section.
    """
    may_have_own_level = blocks[start].kind == "heading"
    titles: set[str] = set()
    for index in range(start + 1, end):
        block = blocks[index]
        is_part = block.title in part_titles and block.title not in titles
        is_inside = may_have_own_level and (
            is_part or (is_flat and role_of_title(block.title) != "errors")
        )
        titles.add(block.title)
        if 0 < block.level < level or (0 < block.level == level and not is_inside):
            return index
    return end


def _first_start(blocks: Sequence[MarkdownBlock], call_index: int, level: int) -> int:
    """Return the index of the block with which the first operation begins.

    `level` is the outermost level of the headings with which the other operations begin; 0 if none of them
    begins with a heading. The title of the page does not count as a heading.
    """
    if level == 0:
        return call_index
    first = after_title(blocks)
    return max((i for i in range(first, call_index + 1) if 0 < blocks[i].level <= level), default=0)


def after_group_headings(
    blocks: Sequence[MarkdownBlock],
    start: int,
    located: LocatedCall,
    located_calls: Sequence[LocatedCall],
) -> int:
    """Return the index of the first heading that belongs only to the operation of `located`.

    `start` is the index of the first block of the operation. A heading such as "Users" above several
    operations belongs to all of them. Returns `start` if there is no such heading up to the call.
    """
    others = [other.block for other in located_calls if other is not located]
    for index in headings_above(blocks, located.block):
        end = _section_end(blocks, index)
        if index >= start and not any(index <= other < end for other in others):
            return index
    return start


def page_operation_name(
    located: LocatedCall, blocks: Sequence[MarkdownBlock], title: str, read_positions: Sequence[int]
) -> str:
    """Return the name of the only operation of a page.

    This is the outermost heading below the page's title whose section contains the call and all blocks with
    parameters or error codes. `read_positions` are the indexes of these blocks. Generic headings such as
    "Request" do not count. If no heading qualifies, the name is usually the title of the page. A heading of
    level 1 that contains all words of the title and more takes precedence over the title.
    """
    for index in headings_above(blocks, located.block):
        block = blocks[index]
        is_section = block.level >= 2 and not is_generic_heading(block.title)
        if (
            is_section
            and read_positions
            and index < min(read_positions)
            and max(read_positions) < _section_end(blocks, index)
        ):
            return _without_call(block.title) or _without_prefixes(title)
    above = (blocks[i] for i in headings_above(blocks, located.block) if blocks[i].level == 1)
    heading = next((_without_call(block.title) for block in above), "")
    if _is_longer_name(heading, title):
        return heading
    named = "" if is_generic_heading(title) else _without_prefixes(title)
    return named or section_operation_name(located, blocks, located.block, title, is_first=False)


def _is_longer_name(heading: str, title: str) -> bool:
    """Return whether a heading contains all words of a title and more, outside parentheses."""
    words, named = (set(_WORD.findall(_REMARK.sub("", t).lower())) for t in (title, heading))
    return bool(words) and words < named and len(heading) <= MAX_NAME_CHARS


def section_operation_name(
    located: LocatedCall, blocks: Sequence[MarkdownBlock], position: int, title: str, is_first: bool
) -> str:
    """Return the name of one of several operations.

    Usually, this is the first heading of the section or a text next to the call. Generic texts such as
    "Request" do not count. If no text qualifies, and the section has a heading, the name is a short
    sentence below the call. Otherwise, it consists of the page's title and the call.

    `position` is the index of the block with the call; later headings are ignored. `is_first` is true for
    the first operation of a page, which may have the page's title.
    """
    headings = [block.title for block in blocks[: position + 1] if block.kind == "heading"]
    candidates = [*headings[:1], *_texts_next_to_call(blocks, position)]
    if not headings and is_first:
        candidates.append(title)
    for name in map(_without_call, candidates):
        is_label = is_scope_label(name) and not begins_with_verb(name)
        if name and not is_generic_heading(name) and not is_label:
            return name
    call = f"{located.call.method} {split_origin(located.call.url)[1] or located.call.url}"
    summary = _sentence(blocks[position + 1 : position + 2]) if headings else ""
    return summary or " ".join(filter(None, [_without_prefixes(title), call]))


def _texts_next_to_call(blocks: Sequence[MarkdownBlock], position: int) -> Iterator[str]:
    """Yield the label before a call, and the text after it, in parentheses or after a dash or colon."""
    text = blocks[position].text if position < len(blocks) else ""
    labels: list[str] = []
    if opening := OPENING_CALL.search(text):
        labels.append(opening["label"] or "")
    if 0 < position <= len(blocks) and is_label(blocks[position - 1]):
        labels.append(text_of(blocks[position - 1].text))
    yield from (label.rstrip(":：") for label in labels if not _INCOMPLETE.match(label))
    if match := _CALL_WITH_NAME.fullmatch(text_of(text)):
        yield match["name"].strip()


def _has_own_name(blocks: Sequence[MarkdownBlock], position: int) -> bool:
    """Return whether a label before a call or a text after it names the operation."""
    texts = filter(None, _texts_next_to_call(blocks, position))
    return any(not is_generic_heading(text) for text in texts)


def _sentence(blocks: Sequence[MarkdownBlock]) -> str:
    """Return the first sentence of the first paragraph; empty if it is not a single short clause."""
    texts = (text_of(block.text) for block in blocks if block.kind == "paragraph")
    sentence = re.split(r"(?<=[.。!！])\s*", next(texts, ""))[0].rstrip(".。")
    is_clause = len(sentence) <= MAX_NAME_CHARS and not re.search("[:：,，;；、]", sentence)
    return sentence if is_clause and not is_scope_label(sentence) else ""


def headings_above(blocks: Sequence[MarkdownBlock], position: int) -> list[int]:
    """Return the indexes of the headings whose sections contain a block, the outermost first."""
    above: list[int] = []
    for index in range(min(position + 1, len(blocks))):
        if blocks[index].kind == "heading":
            above = [i for i in above if blocks[i].level < blocks[index].level] + [index]
    return above


def _section_end(blocks: Sequence[MarkdownBlock], heading: int) -> int:
    """Return the index after the last block of the section of the heading with the index `heading`."""
    following = (
        index
        for index in range(heading + 1, len(blocks))
        if 0 < blocks[index].level <= blocks[heading].level
    )
    return next(following, len(blocks))


def _without_call(heading: str) -> str:
    return _without_prefixes(CALL.sub("", heading))


def _without_prefixes(heading: str) -> str:
    """Return a heading without its section number and prefixes, and without punctuation around it.

    Prefixes are the name of a Confluence space (`Space : Title`), words such as `Endpoint:`, and a method
    before the name of the operation (`POST Publish`). The method stays if it takes the place of a verb, as
    in `GET Bucket`.
    """
    name = re.sub(r"^[^:]{1,60} : (?=\S)", "", heading)
    name = re.sub(r"^(?:end-?point|operation|接口)\s*[:：]\s*", "", name, flags=re.IGNORECASE)
    name = re.sub(r"^\s*\d+(?:\.\d+)*(?:[.、)）]?\s+|、|\.(?=[A-Z\u4e00-\u9fff]))", "", name)
    titled = _METHOD_BEFORE_NAME.match(name)
    if titled and not _needs_method(titled["name"]):
        name = titled["name"]
    return name.strip(" -–—:：`%|·•_*")


def _needs_method(name: str) -> bool:
    """Return whether a name is English and has no verb, so that a method before it is part of the name."""
    has_verb = has_chinese(name) or begins_with_verb(name)
    return not has_verb and not is_generic_heading(name)
