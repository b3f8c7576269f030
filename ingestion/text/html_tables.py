"""Writes plain HTML tables on Markdown pages as Markdown tables, without parsing them as documents."""

import html
import re
from collections.abc import Iterator

_IRREGULAR = re.compile(
    r"(?:row|col)span|(?:padding|margin)-left|<(?:pre|img|caption|ol|dl|h\d)\b|<table.*<table",
    re.IGNORECASE | re.DOTALL,
)
_TABLE_TAG = re.compile(r"<(/?)table\b[^>]*>", re.IGNORECASE)
_ROW = re.compile(r"<tr\b[^>]*>(.*?)(?=<tr\b|</table|\Z)", re.IGNORECASE | re.DOTALL)
_CELL = re.compile(
    r"<t[hd]\b[^>]*>(.*?)(?=</?t[hdr]\b|</?t(?:head|body|foot|able)\b|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_SPACES = re.compile(r"[ \t\n]+")
_CODE = re.compile(r"<code\b[^>]*>(.*?)</code\s*>", re.IGNORECASE | re.DOTALL)
_LINK = re.compile(
    r"<a\b[^>]*?\shref=[\"'](https?://[^\s<>()\"']*)[\"'][^>]*>\s*([^<\[\]]+?)\s*</a\s*>",
    re.IGNORECASE,
)
_BAR = re.compile(r"(?<!\\)\|")


def split_tables(text: str) -> Iterator[tuple[bool, str]]:
    """Yield `text` in parts: whether a part is a table, with those in its cells, and the part."""
    done = start = depth = 0
    for match in _TABLE_TAG.finditer(text):
        if not match[1]:
            start = match.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield False, text[done:start]
                yield True, text[start : match.end()]
                done = match.end()
    yield False, text[done:]


def regular_table(table: str) -> str:
    """Return an HTML table as a Markdown table whose cells keep their tags.

    Empty if it needs a parser, because it has spans, code blocks, images, numbered lists, indentation by
    styles or other tables in its cells.
    """
    if _IRREGULAR.search(table):
        return ""
    rows = [cells for row in _ROW.findall(table) if (cells := _CELL.findall(row))]
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = [
        "".join(f"| {_cell(cell)} " for cell in row + [""] * (width - len(row))) for row in rows
    ]
    return "\n".join(f"{line}|" for line in [lines[0], "| --- " * width, *lines[1:]])


def _cell(cell: str) -> str:
    text = _LINK.sub(r"[\2](\1)", _CODE.sub(_code, _SPACES.sub(" ", cell)))
    return _BAR.sub(r"\\|", text).strip()


def _code(match: re.Match[str]) -> str:
    text = html.unescape(re.sub(r"<[^>]*>", "", match[1]))
    return f"`{text}`" if text.strip() else ""
