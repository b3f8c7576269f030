"""Finds the name of the operation that a page of an RPC-style API describes.

All operations of such an API have the same URL. The page states `Action: CreateRoom`, or has a row for the
parameter `Action` with its only value.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ingestion.sources.api_pages.columns import columns_of, is_parameter_table, text_of
from ingestion.text.markdown_blocks import MarkdownBlock, parse_table

_NAME = r"[A-Z][A-Za-z0-9]{2,80}"
_LABELLED = re.compile(rf"[\W_]*Action[\s*_`]*[:：][\s*_`]*(?P<name>{_NAME})[\s*_`.。]*")
_ONLY_VALUE = re.compile(
    r"(?:取值|值为|固定(?:值|为)|(?i:\bvalue|\b(?:must be|set to)))[^A-Za-z0-9]{0,6}"
    rf"(?P<name>{_NAME})(?!\w|[`\"'\s]*(?:[/|,，、]|或|or\b))"
)
"""The only value of a parameter: "must be `CreateRoom`". The first of several values does not match."""
_SERVER = re.compile(r"域名|(?i:\b(?:endpoint|host|https?))")
"""Words of pages about requests. Without them, `Action: Navigate` may be about anything."""


class Action(NamedTuple):
    """The name of an operation, and the index of the block that states it."""

    name: str
    block: int


def stated_action(blocks: Sequence[MarkdownBlock]) -> Action | None:
    """Return the action of a page about one operation; None if the page does not state exactly one."""
    found: dict[str, Action] = {}
    for index, block in enumerate(blocks):
        for name in _actions_in(block):
            found.setdefault(name, Action(name, index))
    is_about_requests = any(_SERVER.search(block.text) for block in blocks)
    return next(iter(found.values())) if len(found) == 1 and is_about_requests else None


def _actions_in(block: MarkdownBlock) -> Iterator[str]:
    """Yield the actions that a block states.

    They are in labelled lines, such as `Action: CreateRoom`, or in the rows of a parameter table.
    """
    if "Action" not in block.text or block.kind in ("fence", "heading"):
        return
    if block.kind == "table":
        header, *rows = parse_table(block.text) or [[]]
        columns = columns_of(header, rows)
        if not is_parameter_table(columns):
            return
        name = columns.at["name"]
        texts = [
            " ".join(map(text_of, row))
            for row in rows
            if len(row) > name and text_of(row[name]) == "Action"
        ]
        matches = map(_ONLY_VALUE.search, texts)
    else:
        matches = map(_LABELLED.fullmatch, block.text.splitlines())
    yield from (match["name"] for match in matches if match)
