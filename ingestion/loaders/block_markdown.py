"""Converts pages that consist of nested blocks, as in Notion and Feishu, to Markdown."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

ContentKind = Literal["text", "heading", "bullet", "number", "quote", "code", "table", "group"]

MAX_HEADING_LEVEL = 6


@dataclass(frozen=True)
class TextRun:
    """A piece of text in one style."""

    text: str
    is_code: bool = False
    link: str = ""
    """URL that the text links to; empty without a link."""


@dataclass(frozen=True)
class ContentBlock:
    """A block of a page. A `group` has no text of its own."""

    kind: ContentKind
    runs: Sequence[TextRun] = ()
    children: Sequence["ContentBlock"] = ()
    level: int = 1
    """Level of a heading; 1 is the highest."""
    language: str = ""
    """Programming language of code; empty if it is unknown."""
    rows: Sequence[Sequence[str]] = ()
    """Cells of a table, as Markdown; the first row is the header."""


def blocks_to_markdown(blocks: Sequence[ContentBlock]) -> str:
    """Return `blocks` as Markdown."""
    return "\n\n".join(filter(None, map(_block, blocks)))


def inline_markdown(runs: Sequence[TextRun]) -> str:
    """Return `runs` as the Markdown of one paragraph. Only http(s) links are kept."""
    return "".join(map(_run, runs)).strip()


def _block(block: ContentBlock) -> str:
    children = blocks_to_markdown(block.children)
    text = inline_markdown(block.runs)
    match block.kind:
        case "heading":
            title = f"{'#' * min(block.level, MAX_HEADING_LEVEL)} {' '.join(text.split())}"
            return f"{title}\n\n{children}".strip() if text else children
        case "bullet" | "number":
            mark = "- " if block.kind == "bullet" else "1. "
            inner = f"{text}\n\n{children}" if children else text
            return mark + textwrap.indent(inner, " " * len(mark)).lstrip()
        case "quote":
            return textwrap.indent(f"{text}\n\n{children}".strip(), "> ", lambda _: True)
        case "code":
            code = "".join(run.text for run in block.runs).strip("\n")
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
            return f"{fence}{block.language}\n{code}\n{fence}"
        case "table":
            return _table(block.rows)
        case _:
            return f"{text}\n\n{children}".strip()


def _table(rows: Sequence[Sequence[str]]) -> str:
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    if not cells:
        return ""
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * len(cells[0]), *lines[1:]])


def _run(run: TextRun) -> str:
    text = run.text
    if run.is_code and text.strip() and "`" not in text:
        text = f"`{text}`"
    is_web = run.link.startswith(("http://", "https://"))
    return f"[{text}]({run.link})" if is_web and text.strip() else text
