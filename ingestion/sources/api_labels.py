"""Finds the labels in the lines and lists of an API page, with the text that each one announces."""

import re
from collections.abc import Iterator, Sequence

from ingestion.sources.api_calls import MAX_FACT_CHARS
from ingestion.sources.api_columns import text_of
from ingestion.text.markdown_blocks import MarkdownBlock

_LABELLED_LINE = re.compile(
    r"\A[\s>*\-+•]*(?:(?:(?:\*\*|__|`)\s*)?([^\s:：|*`][^:：|*`]{0,23}?)(?:\s*(?:\*\*|__|`))?\s*[:：]"
    r"(?:\s*(?:\*\*|__))?|\*\*\s*([^\s:：|*`][^:：|*`]{0,23})\*\*)\s*(\S.*)$"
)
_HAS_LABEL = re.compile(r"\A(?:[^:：]{1,40}[:：]|\W*\*\*)")
_LABEL_ITEM = re.compile(
    r"\A(\s*)[-*+] (?:\*\*|__)?([^:：|*`_]{1,24})[:：]?(?:\*\*|__)?[:：]?\s*\Z"
)
"""An item of a list that is only a label."""
_ITEM = re.compile(r"\A(\s*)[-*+] +(?=\S)")


def labelled_pairs(block: MarkdownBlock) -> list[tuple[str, str]]:
    """Return label and value of lines such as `**Method**: POST`.

    The label of a definition is its term. If a list item is only a label, it is the label of the items that
    are indented below it.
    """
    lines = re.split(r"\n|<br\s*/?>|[;；](?=\s*\S+[:：])", block.text[:MAX_FACT_CHARS])
    if "\n: " in block.text:
        lines = list(_with_terms(lines))
    elif block.kind == "list":
        lines = list(_with_label_items(lines))
    labelled = (line for line in lines if _HAS_LABEL.match(line))
    matches = filter(None, map(_LABELLED_LINE.match, labelled))
    return [(text_of(match[1] or match[2]), match[3]) for match in matches]


def _with_terms(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines, with the term of a definition list before each of its definitions."""
    term = ""
    for line in lines:
        if line.startswith(": "):
            yield term + line
        else:
            term = line.strip("*_ ")
            yield line


def _with_label_items(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines, with the label of an item before each item that is indented below it."""
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
