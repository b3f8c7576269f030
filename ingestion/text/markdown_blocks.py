"""Markdown as a list of blocks: what can be moved about without breaking what it says."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

BlockKind = Literal["heading", "paragraph", "list", "table", "fence", "other"]

LONGEST_HEADING = 200
"""Characters; what is longer is a paragraph that somebody drew a line right under."""

_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "fence",
    "code_block": "fence",
}

_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_HIDDEN = 0xE000
"""Where escaped punctuation waits, in Unicode's private use area, while markup is removed."""
_HIDDEN_CHARACTER = re.compile("[\ue021-\ue07e]")


@dataclass(frozen=True)
class MarkdownBlock:
    """A top-level block: its source text, whole."""

    kind: BlockKind
    text: str
    level: int = 0
    """Of a heading, 1 to 6."""
    title: str = ""
    """Of a heading, its text without markup."""


@lru_cache
def _parser() -> MarkdownIt:
    """A parser of blocks alone: what stands within a line is nobody's business here."""
    return MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])


def parse_blocks(markdown: str) -> list[MarkdownBlock]:
    """The top-level blocks of `markdown`, in order; no line of it is left out."""
    lines = _lines(markdown)
    tokens = _parser().parse(markdown)
    blocks: list[MarkdownBlock] = []
    done = 0
    for i, token in enumerate(tokens):
        if token.level == 0 and token.map and token.nesting >= 0:
            blocks += _unparsed(lines[done : token.map[0]])
            blocks.append(_block(token, tokens[i + 1] if i + 1 < len(tokens) else None, lines))
            done = token.map[1]
    return blocks + _unparsed(lines[done:])


def _unparsed(lines: list[str]) -> list[MarkdownBlock]:
    """What the parser makes no token of: definitions of links."""
    text = "\n".join(lines).strip("\n")
    return [MarkdownBlock("other", text)] if text.strip() else []


def _lines(markdown: str) -> list[str]:
    """The lines as the parser counts them; `splitlines` would also cut at form feed and U+2028."""
    return re.sub(r"\r\n?", "\n", markdown).split("\n")


def _block(token: Token, following: Token | None, lines: list[str]) -> MarkdownBlock:
    assert token.map is not None
    kind = _KINDS.get(token.type, "other")
    text = "\n".join(lines[slice(*token.map)]).strip("\n")
    if kind != "heading" or following is None:
        return MarkdownBlock(kind, text)
    if len(text) > LONGEST_HEADING:
        return MarkdownBlock("paragraph", text)
    return MarkdownBlock(kind, text, int(token.tag[1]), " ".join(plain(following.content).split()))


def parse_table(markdown: str) -> list[list[str]]:
    """The rows of the first table in `markdown`, header first; no rows without a table."""
    return [list(row) for row in _table(markdown)] if "|" in markdown else []


@lru_cache(maxsize=512)
def _table(markdown: str) -> tuple[tuple[str, ...], ...]:
    """Remembered: the steps of one question read the tables of the same chunks several times."""
    rows: list[list[str]] = []
    for token in _parser().parse(markdown):
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append(token.content.strip())
    return tuple(map(tuple, rows))


def parse_list_items(markdown: str) -> list[str]:
    """The text of each top-level item of the lists in `markdown`, each on one line."""
    items: list[str] = []
    lines = _lines(markdown)
    for token in _parser().parse(markdown):
        if token.type == "list_item_open" and token.level == 1 and token.map:
            text = " ".join(line.strip() for line in lines[slice(*token.map)])
            items.append(re.sub(r"^([-*+]|\d+[.)])\s+", "", text).strip())
    return items


def plain(inline: str) -> str:
    """Inline Markdown without its markup: links by their text, no emphasis, tags or escapes."""
    text = _ESCAPE.sub(lambda match: chr(_HIDDEN + ord(match[1])), inline)
    text = re.sub(r"!\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^>]*>|\{#[^}]*\}", "", text)
    text = re.sub(r"[*`]|(?<!\w)_|_(?!\w)", "", text).strip()
    return _HIDDEN_CHARACTER.sub(lambda match: chr(ord(match[0]) - _HIDDEN), text)
