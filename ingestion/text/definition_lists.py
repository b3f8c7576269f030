"""Turns the definition lists of Markdown dialects into bullets, so that each term can be read alone.

In the dialects of PHP Markdown Extra, MkDocs and Pandoc, a definition is a line after a colon, below the
line with its term. There may be a blank line between them, and more paragraphs of the definition are
indented.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence

from ingestion.text.markdown_blocks import MarkdownBlock

MIN_TERMS = 2
"""Minimum number of terms of a definition list. A single line after a colon may be anything."""

_DEFINITION = re.compile(r"^ {0,3}:[ \t]+(?=\S)", re.MULTILINE)
_INDENTED = re.compile(r" {4}|\t")


def with_definition_lists(blocks: Sequence[MarkdownBlock]) -> list[MarkdownBlock]:
    """Return the blocks of a page with a list in place of each definition list.

    Definition lists with less than `MIN_TERMS` terms do not change.
    """
    if not any(block.kind == "paragraph" and _DEFINITION.search(block.text) for block in blocks):
        return list(blocks)
    found: list[MarkdownBlock] = []
    start = 0
    while start < len(blocks):
        end, items = _read_list(blocks, start)
        if len(items) >= MIN_TERMS:
            found.append(MarkdownBlock("list", "\n".join(items)))
        else:
            end = start + 1
            found.append(blocks[start])
        start = end
    return found


def _read_list(blocks: Sequence[MarkdownBlock], start: int) -> tuple[int, list[str]]:
    """Return the end of the definition list that begins at `start`, and its items in Markdown."""
    items: list[str] = []
    while start < len(blocks):
        block = blocks[start]
        following = blocks[start + 1] if start + 1 < len(blocks) else None
        if items and block.kind == "fence" and _INDENTED.match(block.text):
            items[-1] += "\n\n" + textwrap.indent(textwrap.dedent(block.text), "  ")
            start += 1
        elif found := list(_items(block)):
            items += found
            start += 1
        elif following and _is_term(block) and _DEFINITION.match(following.text):
            items += _items(MarkdownBlock("paragraph", f"{block.text}\n{following.text}"))
            start += 2
        else:
            break
    return start, items


def _is_term(block: MarkdownBlock) -> bool:
    return block.kind == "paragraph" and "\n" not in block.text


def _items(block: MarkdownBlock) -> Iterator[str]:
    """Yield the terms of a paragraph with their definitions; nothing if it does not begin with a term."""
    lines = block.text.split("\n") if block.kind == "paragraph" else []
    is_definition = [bool(_DEFINITION.match(line)) for line in lines]
    if is_definition[:2] != [False, True]:
        return
    item: list[str] = []
    for line, follows_definition in zip(lines, [*is_definition[1:], False], strict=True):
        text = _DEFINITION.sub("", line).strip()
        if follows_definition and text == line.strip():
            if item:
                yield "\n  ".join(item)
            item = [f"- {text if '**' in text else f'**{text}**'}:"]
        elif len(item) == 1 and item[0].endswith(":"):
            item = [f"{item[0]} {text}"]
        else:
            item.append(text)
    yield "\n  ".join(item)
