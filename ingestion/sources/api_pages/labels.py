"""Reads labels and their values on API pages, such as `Method: POST` and `**URL**`.

In function names, a fact is the URL or the method of an operation.
"""

import re
from collections.abc import Iterator, Sequence

from ingestion.sources.api_pages.calls import MAX_FACT_CHARS, METHOD_ALONE, TARGET_ALONE
from ingestion.sources.api_pages.columns import parts_of, text_of
from ingestion.text.markdown_blocks import MarkdownBlock

_URL_LABEL = re.compile(
    r"(?:[a-z]+\s+){0,2}(?:url|uri|path|endpoint|address)|route"
    r"|(?:(?:https?|api)\s*)?[\u4e00-\u9fff]{0,4}\s*(?:ur[li]\s*)?(?:ur[li]|地址|路径|链接)|接口",
    re.IGNORECASE,
)
_METHOD_LABEL = re.compile(
    r"(?:[a-z]+\s+){0,2}(?:method|verb)|(?:request|http)\s*type"
    r"|(?:http\s*)?[\u4e00-\u9fff]{0,4}(?:方式|方法|类型|method)|(?:请求|通信)?协议",
    re.IGNORECASE,
)
_FACT_WORD = re.compile(
    "ur[li]|path|endpoint|address|route|method|verb|type|地址|路径|链接|接口|方式|方法|类型|协议"
)
"""Each label of a URL or a method contains one of these words, in upper or lower case."""

_LABELLED_LINE = re.compile(
    r"\A[\s>*\-+•]*(?:(?:(?:\*\*|__|`)\s*)?([^\s:：|*`][^:：|*`]{0,23}?)(?:\s*(?:\*\*|__|`))?\s*[:：]"
    r"(?:\s*(?:\*\*|__))?|\*\*\s*([^\s:：|*`][^:：|*`]{0,23})\*\*)\s*(\S.*)$"
)
_HAS_LABEL = re.compile(r"\A(?:[^:：]{1,40}[:：]|\W*\*\*)")
_LABEL_ITEM = re.compile(
    r"\A(\s*)[-*+] (?:\*\*|__)?([^:：|*`_]{1,24})[:：]?(?:\*\*|__)?[:：]?\s*\Z"
)
"""A list item that is only a label."""
_LABEL_LINE = re.compile(r"[\s>]*(?:\*\*|__)([^:：|*`_]{1,24})[:：]?(?:\*\*|__)[:：]?\s*")
_ITEM = re.compile(r"\A(\s*)[-*+] +(?=\S)")
_URL_LINE = re.compile(r"\s*https?://[^\s:：]+(?::\d+[^\s:：]*)?\s*")
"""A line of code that is only a URL. On some pages, it follows a line such as `http请求方式：POST`."""


def labelled_pairs(block: MarkdownBlock) -> list[tuple[str, str]]:
    """Return the label and the value of lines such as `**Method**: POST`.

    The label may be in the line above the value: as the term of a definition list, as a list item above
    indented items, or as a bold line. In code, a line that is only a URL has the label "URL".
    """
    lines = re.split(r"\n|<br\s*/?>|[;；](?=\s*\S+[:：])", block.text[:MAX_FACT_CHARS])
    if "\n: " in block.text:
        lines = list(_with_terms(lines))
    elif block.kind == "list":
        lines = list(_with_label_items(lines))
    elif block.kind == "paragraph":
        lines = list(_with_label_lines(lines))
    elif block.kind == "fence":
        lines = [f"URL: {line}" if _URL_LINE.fullmatch(line) else line for line in lines]
    labelled = (line for line in lines if _HAS_LABEL.match(line))
    matches = filter(None, map(_LABELLED_LINE.match, labelled))
    return [(text_of(match[1] or match[2]), match[3]) for match in matches]


def _with_terms(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines, with terms before definitions: `: POST` below `Method` becomes `Method: POST`."""
    term = ""
    for line in lines:
        if line.startswith(": "):
            yield term + line
        else:
            term = line.strip("*_ ")
            yield line


def _with_label_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines; a line that is only a bold label is joined to the next one, as `label: line`."""
    label = ""
    for line in lines:
        if not label and (found := _LABEL_LINE.fullmatch(line)):
            label = found[1]
        else:
            yield f"{label}: {line}" if label else line
            label = ""


def _with_label_items(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines; an item below an item that is only a label becomes `label: item`."""
    label, indent = "", 0
    for line in lines:
        item = _ITEM.match(line)
        if found := _LABEL_ITEM.match(line):
            label, indent = found[2], len(found[1])
            yield line
        elif item and label and len(item[1]) > indent:
            yield f"{label}: {line[item.end() :]}"
        else:
            label = "" if item else label
            yield line


def states_call(block: MarkdownBlock) -> bool:
    """Return whether a block gives a method and a URL after labels: "Method: GET" and "URL: /v1/x"."""
    pairs = labelled_pairs(block)
    has_method = any(
        is_method_label(k) and METHOD_ALONE.fullmatch(v.strip("`* ")) for k, v in pairs
    )
    return has_method and any(is_url_label(k) and TARGET_ALONE.search(v) for k, v in pairs)


def is_url_label(text: str) -> bool:
    """Return whether a label announces the URL of an operation."""
    return _matches(_URL_LABEL, text)


def is_method_label(text: str) -> bool:
    """Return whether a label announces the method of an operation."""
    return _matches(_METHOD_LABEL, text)


def is_fact_label(text: str) -> bool:
    """Return whether a label announces the URL or the method of an operation."""
    return is_url_label(text) or is_method_label(text)


def is_fact_heading(block: MarkdownBlock) -> bool:
    """Return whether a block is a heading such as "Method: POST", which states a URL or a method."""
    if block.kind != "heading" or not has_fact_word(block.title):
        return False
    return any(
        (is_url_label(label) and TARGET_ALONE.fullmatch(value.strip("`* ")))
        or (is_method_label(label) and METHOD_ALONE.fullmatch(value.strip("`* ")))
        for label, value in labelled_pairs(MarkdownBlock("other", block.title))
    )


def _matches(pattern: re.Pattern[str], label: str) -> bool:
    # Most labels contain no fact word, and searching for one is cheaper than splitting the label.
    return has_fact_word(label) and any(pattern.fullmatch(part) for part in parts_of(label))


def has_fact_word(text: str) -> bool:
    """Return whether a text contains one of the words of `_FACT_WORD`."""
    # A search in lower case is several times as fast as one that ignores case.
    return _FACT_WORD.search(text.lower()) is not None


def bold_label(block: MarkdownBlock) -> str:
    """Return the text of a block that is only a bold label; empty for other blocks."""
    match = re.fullmatch(r"\s*\*\*([^*]{1,24})\*\*[:：]?\s*", block.text)
    return match[1] if match else ""
