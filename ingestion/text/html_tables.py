"""Writes plain HTML tables on Markdown pages as Markdown tables, without parsing them as documents."""

import html
import re

_IRREGULAR = re.compile(
    r"(?:row|col)span|\sstyle=|<(?:a|pre|img|caption|ol|dl|h\d)\b|<table.*<table", re.I | re.DOTALL
)
_ROW = re.compile(r"<tr\b[^>]*>(.*?)(?=<tr\b|</table|\Z)", re.IGNORECASE | re.DOTALL)
_CELL = re.compile(
    r"<t[hd]\b[^>]*>(.*?)(?=</?t[hdr]\b|</?t(?:head|body|foot|able)\b|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_CODE = re.compile(r"<code\b[^>]*>(.*?)</code\s*>", re.IGNORECASE | re.DOTALL)
_BAR = re.compile(r"(?<!\\)\|")


def regular_table(table: str) -> str:
    """Return an HTML table as a Markdown table whose cells keep their tags.

    Empty if it needs a parser, because it has spans, links, code blocks or indentation by styles.
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
    text = _CODE.sub(_code, re.sub(r"[ \t\n]+", " ", cell))
    return _BAR.sub(r"\\|", text).strip()


def _code(match: re.Match[str]) -> str:
    text = html.unescape(re.sub(r"<[^>]*>", "", match[1]))
    return f"`{text}`" if text.strip() else ""
