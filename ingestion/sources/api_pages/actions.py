"""Finds the name of an operation whose URL is the same for all operations, as in RPC-style APIs.

Such a page states `Action: CreateRoom`, or has a row for the parameter `Action` with its only value.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ingestion.sources.api_pages.columns import columns_of, is_parameter_table, text_of
from ingestion.text.markdown_blocks import MarkdownBlock, parse_table

_NAME = r"[A-Z][A-Za-z0-9]{2,80}"
_LABELLED = re.compile(rf"[\W_]*Action[\s*_`]*[:：][\s*_`]*(?P<name>{_NAME})[\s*_`.。]*")
_ONLY_VALUE = re.compile(
    r"(?:取值|值为|固定(?:值|为)|\bvalue|\b(?:must be|set to))[^A-Za-z0-9]{0,6}"
    rf"(?P<name>{_NAME})(?![\w/|,，、])"
)


class Action(NamedTuple):
    """The name of an operation, and the index of the block that states it."""

    name: str
    block: int


def stated_action(blocks: Sequence[MarkdownBlock]) -> Action | None:
    """Return the action of a page about one operation; None if the page states none or several."""
    found: dict[str, Action] = {}
    for index, block in enumerate(blocks):
        if "Action" in block.text and (name := _action_in(block)):
            found.setdefault(name, Action(name, index))
    return next(iter(found.values())) if len(found) == 1 else None


def _action_in(block: MarkdownBlock) -> str:
    """Return the action that a labelled line or the row of a parameter table states; may be empty."""
    if block.kind == "table":
        header, *rows = parse_table(block.text) or [[]]
        if not is_parameter_table(columns_of(header, rows)):
            return ""
        texts = [" ".join(map(text_of, row[1:])) for row in rows if text_of(row[0]) == "Action"]
        matches = [_ONLY_VALUE.search(text) for text in texts]
    elif block.kind in ("fence", "heading"):
        return ""
    else:
        matches = [_LABELLED.fullmatch(line) for line in block.text.splitlines()]
    return next((match["name"] for match in matches if match), "")
