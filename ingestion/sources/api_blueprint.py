"""Converts API Blueprint pages to the form of other API pages.

API Blueprint (https://apiblueprint.org/documentation/specification.html) puts the method and the path into
headings such as `## Boats [/boats]` and `### List [GET]`, and parameters, requests and responses into
lists.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import dedent

from ingestion.text.markdown_blocks import MarkdownBlock, parse_blocks, split_list_items

_ACTION = re.compile(
    r"(?P<name>.*?)\s*\[(?P<method>GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)(?:\s+(?P<path>/[^\]]*))?\]"
)
"""The heading of an operation: `List boats [GET]`, `List boats [GET /boats]`."""
_RESOURCE = re.compile(r"(?P<name>.*?)\s*\[(?P<path>/[^\]]*)\]")
"""The heading of a resource: `Boats [/boats]`."""
_LABEL = re.compile(
    r"((?:Parameters|Attributes|Headers|Body|Schema|Request|Response \d{3})\b.*)(?:\n|\Z)"
)
_QUERY = re.compile(r"\{[?&#][^}]*\}")
"""A template of a query or fragment in a path, such as `{?limit}` or `{#section}`."""


def with_blueprint_calls(blocks: Sequence[MarkdownBlock]) -> Sequence[MarkdownBlock]:
    """Return the blocks with a line such as `GET /boats` below each operation's heading.

    An operation whose path is not known gets no line. Headings lose the method and path in brackets. Lists
    with keywords, such as `+ Parameters`, become bold labels above the content of the items.

    If no heading names an operation, the blocks are returned unchanged.
    """
    if not any(block.kind == "heading" and _ACTION.fullmatch(block.title) for block in blocks):
        return blocks
    return list(_rewritten(blocks))


def _rewritten(blocks: Sequence[MarkdownBlock]) -> Iterator[MarkdownBlock]:
    path, level = "", 0
    for block in blocks:
        if 0 < block.level <= level:
            path, level = "", 0
        if action := _ACTION.fullmatch(block.title):
            path_of_action = _QUERY.sub("", action["path"] or path)
            yield _renamed(block, action["name"])
            if path_of_action:
                yield MarkdownBlock("paragraph", f"`{action['method']} {path_of_action}`")
        elif resource := _RESOURCE.fullmatch(block.title):
            path, level = resource["path"], block.level
            yield _renamed(block, resource["name"])
        elif block.kind == "list":
            yield from _unfolded(block)
        else:
            yield block


def _renamed(heading: MarkdownBlock, name: str) -> MarkdownBlock:
    return replace(heading, text=f"{'#' * heading.level} {name}", title=name) if name else heading


def _unfolded(block: MarkdownBlock) -> Iterator[MarkdownBlock]:
    """Yield the blocks in a list with keywords, such as `+ Parameters`. Other lists are unchanged."""
    items = split_list_items(block.text)
    labels = list(map(_LABEL.match, items))
    if not any(labels):
        yield block
        return
    for item, label in zip(items, labels, strict=True):
        if label is None:
            yield MarkdownBlock("list", "- " + item.replace("\n", "\n  "))
            continue
        yield MarkdownBlock("paragraph", f"**{label[1].strip()}**")
        for inner in parse_blocks(dedent(item[label.end() :])):
            yield from _unfolded(inner) if inner.kind == "list" else [inner]
