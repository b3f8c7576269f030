"""Converts API pages that follow a common template to a form that the other modules of the package read.

In this form, a call (a method with a path, such as `GET /boats`) is a line of its own, and labels are above
their content. The main templates are:

- Lists of labels, such as `* **URL**`.
- Lists and quotations that contain tables.
- API Blueprint (https://apiblueprint.org/documentation/specification.html). It puts the method and the path
  into headings such as `## Boats [/boats]` and `### List [GET]`, and other content into lists such as
  `+ Parameters` and `+ Response 200`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from textwrap import dedent

from ingestion.sources.api_pages.calls import ANY_METHOD
from ingestion.sources.api_pages.columns import text_of
from ingestion.sources.api_pages.labels import is_fact_heading, is_fact_label
from ingestion.sources.api_pages.required import required_mark
from ingestion.sources.api_pages.roles import role_of_title
from ingestion.sources.api_pages.sections import MAX_NAME_CHARS
from ingestion.text.markdown_blocks import MarkdownBlock, parse_blocks, split_list_items

_QUOTE = re.compile(r"^> ?", re.MULTILINE)
_TABLE_IN_LIST = re.compile(
    r"^[ \t]+\|[^\n]*\n[ \t]+\|[ \t:|-]+\n(?:[ \t]+\|[^\n]*(?:\n|\Z))*", re.MULTILINE
)
_LABEL_ITEM = re.compile(
    r"(?:\*\*([^*\n]{1,40})\*\*[ \t]*[:：]?|([^*`\n:：]{1,40})[:：])[ \t]*(?:\n|\Z)"
)
"""The start of a list item whose first line is only a label, in bold or with a colon."""
_FACT_ITEM = re.compile(r"(?:\*\*)?([^*`\n:：]{1,40})[:：]?(?:\*\*)?(?:[:：]|[ \t]*(?:\n|\Z))")
"""The start of a list item with a label, possibly with its value in the same line."""
_ITALIC_LABEL = re.compile(r"([*_])(?![*_])([^*_\n]{1,24})\1[ \t]*[:：]?")
"""A paragraph that is only a label in italics: "*Method:*"."""
_DEFINITION = re.compile(r"[A-Za-z_$][\w.$\[\]-]*\n(?::[ \t].*(?:\n|\Z))+")
"""A name with its definitions, as in Markdown Extra."""
_EMPHASIS = re.compile(r"[*_]{1,2}([^*_]+)[*_]{1,2}[ \t,]*")
_CALL_ITEM = re.compile(rf"(`(?:{ANY_METHOD}) /[^`\n]*`)\s+(\S.*)\Z", re.DOTALL)
"""A list item that begins with a call: "`GET /boats` returns all boats"."""
_LABELLED_NAMES = re.compile(r"[*_]{1,2}([^*_`\n]{1,40})[*_]{1,2}[:：]\s*(`[\w.\[\]-]+`.*)")
"""A label and sentences about parameters: "**Parameters**: `title` for the name"."""
_PARAMETERS = re.compile(r"\b(?:param(?:eter)?|argument|field)s?\b|参数|字段", re.IGNORECASE)
_NEXT_NAME = re.compile(r"(?<=[.。])(?<!e\.g\.)(?<!i\.e\.)\s+(?=`[\w.\[\]-]+`)")
_NAMES = re.compile(r"`[\w.\[\]-]+`(?:(?:,|、|\s|and\b|or\b|和|或){1,9}`[\w.\[\]-]+`)*")
_SPAN = re.compile(r"`[^`]+`")
_STATUS_ITEM = re.compile(r"[-*+] ([^\n|`]{1,20}[(（][1-5]\d\d[)）])")
"""A list that only labels a response with its status: `* Success (200)`."""
_CALL_IN_TWO_LINES = re.compile(rf"\s*(?:{ANY_METHOD})\s*\n\s*(?:https?://|/)\S+\s*")
_TYPED_SPANS = re.compile(
    r"^(?:[ \t]*`[\w.$-]+\s*(?:=|\s-)\s*\[\w[\w ]*\][^`\n]*`[ \t]*(?:\n\s*)?)+", re.MULTILINE
)
"""Paragraphs such as "`id=[integer]`", each of which is a parameter in a code span."""

_ACTION = re.compile(rf"(?P<name>.*?)\s*\[(?P<method>{ANY_METHOD})(?:\s+(?P<path>/[^\]]*))?\]")
"""The heading of an operation in API Blueprint: `List boats [GET]`, `List boats [GET /boats]`.

The name may be the path: `/boats [GET]`.
"""
_RESOURCE = re.compile(r"(?P<name>.*?)\s*\[(?P<path>/[^\]]*)\]")
"""The heading of a resource in API Blueprint: `Boats [/boats]`."""
_KEYWORD_ITEM = re.compile(
    r"((?:Parameters|Attributes|Headers|Body|Schema|Request|Response \d{3})\b.*)(?:\n|\Z)"
)
"""The start of a list item in API Blueprint: `+ Response 200 (application/json)`."""
_QUERY = re.compile(r"\{[?&#][^}]*\}")
"""A template of a query or fragment in a path, such as `{?limit}` or `{#section}`."""

MAX_CALL_ITEMS = 20
"""Maximum number of items in a list of calls that is converted. Longer lists are overviews."""

MAX_NESTED_LISTS = 10
"""Maximum depth of nested lists of keywords in API Blueprint. Deeper lists are not converted."""

_URI_PARAMETERS = MarkdownBlock("paragraph", "**URI parameters**")
"""Replaces the label "Parameters" of API Blueprint, which means URI parameters even below a response."""

ParseItem = Callable[[str], Sequence[MarkdownBlock]]
"""Parses the content of a list item."""


def convert_templates(blocks: Sequence[MarkdownBlock]) -> list[MarkdownBlock]:
    """Return the blocks of a page, with its templates converted.

    Lists and quotations that describe an operation are replaced by the blocks in them. Definition lists and
    sentences about parameters become lists. A heading that only states a method or URL becomes a paragraph.
    """
    if any(block.kind == "heading" and _ACTION.fullmatch(block.title) for block in blocks):
        blocks = list(_convert_blueprint(blocks))
    blocks = list(_convert_definitions(_convert_call_lists(blocks)))
    return [inner for block in _with_unfolded_lists(blocks) for inner in _converted(block)]


def _converted(block: MarkdownBlock) -> Sequence[MarkdownBlock]:
    """Return the blocks that replace a block; only the block itself if it follows no template."""
    if is_fact_heading(block):  # a line about the operation, not the start of a section
        return [MarkdownBlock("paragraph", block.title)]
    if block.kind == "paragraph" and (label := _ITALIC_LABEL.fullmatch(block.text.strip())):
        title = label[2].strip(" :：")
        is_label = is_fact_label(title) or role_of_title(title)
        return [MarkdownBlock("paragraph", f"**{title}**")] if is_label else [block]
    if block.kind == "paragraph" and (named := _labelled_parameters(block.text)):
        return named
    if block.kind == "list" and (status := _STATUS_ITEM.fullmatch(block.text.strip())):
        return [MarkdownBlock("paragraph", f"**{status[1]}**")]
    inner: Sequence[MarkdownBlock] = ()
    if block.kind == "other" and block.text.startswith(">"):
        text = _QUOTE.sub("", block.text)
        if _CALL_IN_TWO_LINES.fullmatch(text):
            return [MarkdownBlock("paragraph", " ".join(text.split()))]
        inner = parse_blocks(text) if "|" in text else ()
    elif block.kind == "list" and _TABLE_IN_LIST.search(block.text):
        inner = parse_blocks(_TABLE_IN_LIST.sub(_outdented_table, block.text))
    return inner if any(each.kind == "table" for each in inner) else [block]


def _labelled_parameters(text: str) -> list[MarkdownBlock]:
    """Return the blocks of lines such as "**Required parameters**: `title` for the new name".

    The label stays a paragraph, and its parameters become a list. A line without a label continues the line
    above it. The result is empty if the first line has no such label.
    """
    found: list[MarkdownBlock] = []
    labelled: list[tuple[str, str]] = []
    for line in map(str.strip, text.strip().splitlines()):
        match = _LABELLED_NAMES.fullmatch(line)
        if match and _PARAMETERS.search(match[1]):
            labelled.append((match[1], match[2]))
        elif labelled:
            label, above = labelled.pop()
            labelled.append((label, f"{above} {line}"))
        else:
            return []
    for label, parameters in labelled:
        found.append(MarkdownBlock("paragraph", f"**{label}**"))
        found.append(MarkdownBlock("list", "\n".join(_parameter_items(parameters))))
    return found


def _parameter_items(text: str) -> Iterator[str]:
    """Yield a list item for each name in sentences such as "`title` for the name. `tags` as an array."."""
    for sentence in _NEXT_NAME.split(text):
        if names := _NAMES.match(sentence):
            about = sentence[names.end() :].strip(" ,:–-")
            yield from (f"- {name} – {about}" for name in _SPAN.findall(names[0]))


def _outdented_table(match: re.Match[str]) -> str:
    return f"\n\n{dedent(match[0]).strip()}\n\n"


# --- lists of calls -------------------------------------------------------------------------------


def _convert_call_lists(blocks: Sequence[MarkdownBlock]) -> Iterator[MarkdownBlock]:
    """Yield the blocks. A list of calls right below a heading becomes paragraphs.

    Each item begins with a call and says what the call does: "`GET /boats` returns all boats".
    """
    above = None
    for block in blocks:
        items = split_list_items(block.text) if block.kind == "list" else []
        calls = list(filter(None, map(_CALL_ITEM.match, items)))
        are_calls = 0 < len(calls) == len(items) <= MAX_CALL_ITEMS
        if above and above.kind == "heading" and are_calls:
            for call in calls:
                yield MarkdownBlock("paragraph", call[1])
                yield MarkdownBlock("paragraph", call[2][:1].upper() + call[2][1:])
        else:
            yield block
        above = block


# --- definition lists -----------------------------------------------------------------------------


def _convert_definitions(blocks: Iterable[MarkdownBlock]) -> Iterator[MarkdownBlock]:
    """Yield the blocks, with one list in place of adjacent names with definitions."""
    for is_definition, group in groupby(blocks, key=_is_definition):
        if is_definition:
            yield MarkdownBlock("list", "\n".join(_defined_item(block.text) for block in group))
        else:
            yield from group


def _is_definition(block: MarkdownBlock) -> bool:
    return block.kind == "paragraph" and _DEFINITION.fullmatch(block.text.strip()) is not None


def _defined_item(text: str) -> str:
    """Return a name and its definitions as a list item.

    The first definition may consist of emphasised words, which give the type and say whether the name is
    required: `: *Optional* **string**`.
    """
    name, first, *others = (line.lstrip(": \t") for line in text.strip().splitlines())
    if re.fullmatch(f"(?:{_EMPHASIS.pattern})+", first):
        words = sorted(_EMPHASIS.findall(first), key=_is_mark)  # the type before `Optional`
        first = f"({', '.join(words)})"
    return " ".join([f"- `{name}`", first, *others])


def _is_mark(word: str) -> bool:
    return required_mark(word) is not None


# --- lists of labels ------------------------------------------------------------------------------


def _with_unfolded_lists(blocks: Sequence[MarkdownBlock]) -> Iterator[MarkdownBlock]:
    """Yield the blocks. Lists of labels are replaced by the blocks in them (see `_labelled_blocks`).

    A short line above a list with bold labels becomes a heading of level 2, because it names the operation.
    """
    unfolded = [_labelled_blocks(block) for block in blocks]
    for index, block in enumerate(blocks):
        below = index + 1
        has_labels_below = below < len(blocks) and unfolded[below] and "**" in blocks[below].text
        if has_labels_below and _is_name(block):
            yield MarkdownBlock("heading", block.text, level=2, title=text_of(block.text))
        else:
            yield from unfolded[index] or [block]


def _labelled_blocks(block: MarkdownBlock) -> Sequence[MarkdownBlock]:
    """Return the blocks of a list with labels, such as `**URL**` or `Headers:`, each above its content.

    A widely copied template describes an operation with such a list. The result is empty unless one label
    announces a URL or a method, and the first line of some item is only a label.
    """
    items = split_list_items(block.text) if block.kind == "list" else []
    # In a list with tables, only a label alone on its line counts: its table is below it.
    has_table = _TABLE_IN_LIST.search(block.text)
    labels = map((_LABEL_ITEM if has_table else _FACT_ITEM).match, items)
    states_fact = any(label and is_fact_label(_label_text(label)) for label in labels)
    if not states_fact or not any(map(_LABEL_ITEM.match, items)):
        return ()
    return _unfold(block, _LABEL_ITEM, _read_typed_spans)


def _unfold(
    block: MarkdownBlock, label_pattern: re.Pattern[str], read: ParseItem
) -> list[MarkdownBlock]:
    """Return the items of a list as blocks. A label becomes a bold paragraph above its content.

    `read` parses the content. The label is the group of `label_pattern` that matches. Items without a label
    become lists of one item, or paragraphs if they only announce a table or list.
    """
    found: list[MarkdownBlock] = []
    for item in split_list_items(block.text):
        if label := label_pattern.match(item):
            found.append(MarkdownBlock("paragraph", f"**{_label_text(label)}**"))
            found += read(dedent(item[label.end() :]))
        elif len(item) <= MAX_NAME_CHARS and role_of_title(item) and not _PARAMETERS.search(item):
            found.append(MarkdownBlock("paragraph", f"**{text_of(item)}**"))
        else:
            found.append(MarkdownBlock("list", "- " + item.replace("\n", "\n  ")))
    return found


def _label_text(label: re.Match[str]) -> str:
    return label[label.lastindex or 0].strip(" :：")


def _read_typed_spans(text: str) -> Sequence[MarkdownBlock]:
    return parse_blocks(_TYPED_SPANS.sub(_as_list, text))


def _as_list(spans: re.Match[str]) -> str:
    lines = filter(None, map(str.strip, spans[0].splitlines()))
    return "".join(f"- {line}\n" for line in lines) + "\n"


def _is_name(block: MarkdownBlock) -> bool:
    """Return whether a block is a short line that may name an operation."""
    text = text_of(block.text)
    is_line = block.kind == "paragraph" and "\n" not in block.text.strip()
    return is_line and len(text) <= MAX_NAME_CHARS and text[-1:].isalnum()


# --- API Blueprint --------------------------------------------------------------------------------


def _convert_blueprint(blocks: Sequence[MarkdownBlock]) -> Iterator[MarkdownBlock]:
    """Yield the blocks with a line such as `GET /boats` below each operation's heading.

    An operation whose path is not known gets no line. Headings lose the method and path in brackets. Lists
    with keywords, such as `+ Parameters`, become bold labels above the content of the items.
    """
    path, level = "", 0
    for block in blocks:
        if 0 < block.level <= level:
            path, level = "", 0
        if action := _ACTION.fullmatch(block.title):
            named = action["name"] if action["name"].startswith("/") else ""
            path_of_action = _QUERY.sub("", action["path"] or named or path)
            yield _renamed(block, action["name"])
            if path_of_action:
                yield MarkdownBlock("paragraph", f"`{action['method']} {path_of_action}`")
        elif resource := _RESOURCE.fullmatch(block.title):
            path, level = resource["path"], block.level
            yield _renamed(block, resource["name"])
        else:
            yield from _keyword_blocks(block)


def _renamed(heading: MarkdownBlock, name: str) -> MarkdownBlock:
    return replace(heading, text=f"{'#' * heading.level} {name}", title=name) if name else heading


def _keyword_blocks(block: MarkdownBlock, depth: int = 0) -> Sequence[MarkdownBlock]:
    """Return the blocks in a list with keywords, such as `+ Parameters`. Other blocks are unchanged.

    `depth` is the number of such lists that contain the block.
    """
    is_list = block.kind == "list" and depth < MAX_NESTED_LISTS
    if is_list and any(map(_KEYWORD_ITEM.match, split_list_items(block.text))):
        unfolded = _unfold(block, _KEYWORD_ITEM, partial(_read_keywords, depth=depth + 1))
        return [_URI_PARAMETERS if each.text == "**Parameters**" else each for each in unfolded]
    return [block]


def _read_keywords(text: str, depth: int) -> Sequence[MarkdownBlock]:
    return [inner for block in parse_blocks(text) for inner in _keyword_blocks(block, depth)]
