"""Replaces the magic blocks of ReadMe.com, `[block:callout] {"body": "..."} [/block]`, by Markdown.

A magic block contains a JSON object whose strings are Markdown or HTML. Call `replace_magic_blocks` before
escapes or links in the page are resolved, because resolving them could damage the JSON.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ingestion.text.html_tags import bold_title
from ingestion.text.language import detect_language
from ingestion.text.markdown_blocks import (
    cell_text,
    code_fence,
    escape_borders,
    markdown_table,
    split_code,
)

_BLOCK = re.compile(
    r"^[ \t]*\[block:(?P<kind>[a-z-]+)\](?P<json>[^\[]*+(?:\[(?!/?block\b)[^\[]*+)*+)\[/block\]",
    re.MULTILINE,
)
_CELL = re.compile(r"(?P<row>h|\d{1,5})-(?P<column>\d{1,2})")
"""The name of a cell: `0-1` is in the first row and the second column, and `h-1` is that column's title."""

_Json = Mapping[str, Any]


def replace_magic_blocks(text: str) -> str:
    """Return a page with Markdown in place of its magic blocks.

    Blocks of unknown kinds, blocks that contain no JSON object, and fenced code are unchanged. Raises
    SourceError if the HTML in a block exceeds a limit.
    """
    if "[block:" not in text:
        return text
    parts = split_code(text)
    return "".join(part if is_code else _BLOCK.sub(_replace, part) for is_code, part in parts)


def _replace(match: re.Match[str]) -> str:
    convert = _CONVERTERS.get(match["kind"])
    try:
        # Not strict, because some exports have line breaks in strings.
        values = json.loads(match["json"], strict=False)
    except (ValueError, RecursionError):
        return match[0]
    return f"\n\n{convert(values)}\n\n" if convert and isinstance(values, dict) else match[0]


def _text(values: _Json, name: str) -> str:
    """Return the value of `name` if it is a string; otherwise an empty string."""
    value = values.get(name)
    return value.strip("\n") if isinstance(value, str) else ""


def _line(values: _Json, name: str) -> str:
    return " ".join(_text(values, name).split())


def _table(values: _Json) -> str:
    data = values["data"] if isinstance(values.get("data"), dict) else {}
    cells = {
        (-1 if match["row"] == "h" else int(match["row"]), int(match["column"])): _text(data, name)
        for name in data
        if (match := _CELL.fullmatch(name))
    }
    columns = sorted({column for _, column in cells})
    rows = [
        [escape_borders(cell_text(cells.get((row, column), ""))) for column in columns]
        for row in sorted({-1, *(row for row, _ in cells)})
    ]
    return markdown_table(rows) if columns else ""


def _callout(values: _Json) -> str:
    body = _text(values, "body")
    title = bold_title(_line(values, "type"), _line(values, "title"), detect_language(body))
    text = "\n\n".join(filter(None, (title, body)))
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _code(values: _Json) -> str:
    codes = values["codes"] if isinstance(values.get("codes"), list) else []
    return "\n\n".join(part for each in codes if isinstance(each, dict) for part in _example(each))


def _example(values: _Json) -> Iterator[str]:
    """Yield the name of a code example in bold, unless it is the language, then the code in a fence."""
    code, language, name = _text(values, "code"), _line(values, "language"), _line(values, "name")
    if name.lower() not in ("", language.lower()):
        yield f"**{name}**"
    yield code_fence(code, language)


def _html(values: _Json) -> str:
    # Imported here: most sources have no HTML, and the parser takes half a second to load.
    from ingestion.sources.formats.html import html_page

    return html_page(_text(values, "html")).parts[0].markdown


def _link(values: _Json) -> str:
    url, title = _line(values, "url"), _line(values, "title")
    is_url = re.fullmatch(r"https?://[^\s<>]+", url)
    return f"[{title or url}]({url})" if is_url else title


_CONVERTERS = {
    "parameters": _table,
    "callout": _callout,
    "code": _code,
    "api-header": lambda values: f"## {_line(values, 'title')}",
    "image": lambda _: "",
    "html": _html,
    "embed": _link,
}
"""The function that converts each kind of block."""
