"""Repairs Markdown that a CommonMark parser would misread.

Older parsers accepted headings without a space after `#`, spaces inside the cells of a delimiter row (the
line `| --- | --- |` below the header of a table), and tables without a delimiter row. Some documentation
generators write table rows of several lines, and custom elements such as `<md-table>`.
"""

import re

from ingestion.text.markdown_blocks import (
    outside_code,
    replace_outside_code,
    row_cells,
    split_code,
)

_UNSPACED_HEADING = re.compile(r"^ {0,3}##{1,5}(?=[\w*`（【《“])", re.MULTILINE)
"""The marks of a heading of level 2 to 6 that no space follows: `##Errors`."""
_UNSPACED_MARKS = re.compile(r"^ {0,3}#{1,6}(?=[\w*`（【《“])", re.MULTILINE)
"""The same marks for all levels. A single `#` may also begin a hashtag."""
_DELIMITER_LINE = re.compile(r"^[ \t]*\|[ \t|:-]*$", re.MULTILINE)
"""The delimiter row of a table, which is the line below its header."""
_SPACE_IN_DELIMITER = re.compile(r"(?<=:)[ \t]+(?=-)|(?<=-)[ \t]+(?=:)")
"""A space between the colon and the hyphens of a delimiter cell, as in `|: --- | --- :|`."""
_TABLE_HEAD = re.compile(
    r"^([^\n|`]*\|[^\n]*)\n([ \t]*(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+(?:\|[ \t]*)?)$",
    re.MULTILINE,
)
"""The header of a table and its delimiter row."""
_SPLIT_ROW = re.compile(
    r"^(?P<start>\|[^\n]*[^|\s])[ \t]*\n(?P<rest>(?:(?![ \t]*\|)[^\n]*\n){1,40})[ \t]*\|[ \t]*$",
    re.MULTILINE,
)
"""A table row whose last cell has several lines, such as a list. The last line contains only `|`."""
_ROWS = re.compile(
    r"(?P<above>\A|^ {0,3}#{1,6}[ \t][^\n|]*\n|(?<!\A)^[ \t]*\n"
    r"|(?:\A|(?<=\n\n))(?! {0,3}[+>]|[ \t]*(?:[-*+]|\d+[.)])\s)[^\n|]+\n)"
    r"(?P<rows>(?:^ {0,3}\|[^\n]*\|[ \t]*(?:\n|\Z)){2,})(?! {0,3}[|+])",
    re.MULTILINE,
)
"""Lines that begin and end with `|`, and the line above them: a heading, a paragraph or a blank line.

The pattern is applied to the parts of a page outside code blocks. A line break at the start of a part is
not a blank line: it ends the line of the closing fence above. Rows directly below code or a list do not
match, because they may continue a table that begins above the code or the list.
"""
_LIST_MARK = re.compile(r"^[ \t]*-[ \t]+")
_CALLOUT_MARK = re.compile(r"^(?:[?!~]|(?<![^\n]\n)-)>(?=[ \t])", re.MULTILINE)
"""The start of a callout of docsify or of the Terraform registry. `->` must begin a paragraph."""
_CALLOUT_ICON = re.compile(
    r"(?<![^\n]\n)^( {0,3}>[ \t]*)(?:[📘🚧👍🛑❗‼⁉⚠ℹ]\ufe0f?)++[ \t]*+(?=\S)", re.MULTILINE
)
"""The icon before the title of a callout of ReadMe.com: `> 🚧 Title`."""
_TABLE_ELEMENT = outside_code(r"<(?P<slash>/?)[a-z]+-(?P<element>table|thead|tbody|tr|th|td)\b")
"""A tag such as `<md-table>`, with the name of the HTML element that it stands for."""

_NAMED_ELEMENT = outside_code(
    r"<(?![a-z-]*icon)[a-z]+-[a-z-]+\s(?:[^<>]*\s)?name=\"(?P<name>[^\"<>]+)\"[^<>]*>"
)
"""The opening tag of a custom element, but not of an icon. Its attribute `name` is content."""

_NOTES_OF_MINTLIFY = re.compile(
    r"\A\s*> ## Documentation Index\n(?:>[^\n]*\n)+|\nBuilt with \[Mintlify\]\([^)\n]*\)\.?\s*\Z"
)
"""Notes that Mintlify adds to each page that it serves as Markdown."""


def repair_markdown(text: str) -> str:
    """Return the page `text` with non-standard Markdown changed to CommonMark.

    Notes that Mintlify adds to the page are removed. Fenced code does not change.
    """
    parts = list(split_code(_NOTES_OF_MINTLIFY.sub("", text)))
    has_unspaced = any(_UNSPACED_HEADING.search(part) for is_code, part in parts if not is_code)
    return "".join(part if is_code else _repair(part, has_unspaced) for is_code, part in parts)


def _repair(text: str, has_unspaced_headings: bool) -> str:
    """Repair a part of a page that contains no fenced code.

    On a page with headings such as `##Errors`, a line such as `#Errors` is a heading, not a hashtag.
    """
    if has_unspaced_headings:
        text = _UNSPACED_MARKS.sub(lambda match: f"{match[0]} ", text)
    if ">" in text:
        text = _CALLOUT_ICON.sub(r"\1", _CALLOUT_MARK.sub(">", text))
    if "|" in text:
        text = _DELIMITER_LINE.sub(lambda match: _SPACE_IN_DELIMITER.sub("", match[0]), text)
        text = _TABLE_HEAD.sub(_with_equal_cells, text)
        text = _SPLIT_ROW.sub(_joined_row, text)
        text = _ROWS.sub(_with_delimiter, text)
    if "<" in text:
        text = replace_outside_code(
            _TABLE_ELEMENT, lambda match: f"<{match['slash']}{match['element']}", text
        )
        text = replace_outside_code(_NAMED_ELEMENT, lambda match: f"`{match['name']}` ", text)
    return text


def _joined_row(match: re.Match[str]) -> str:
    """Return a table row of several lines as one line, with `<br>` between the former lines."""
    lines = (_LIST_MARK.sub("- ", line).strip() for line in match["rest"].splitlines())
    return "<br>".join([match["start"], *filter(None, lines)]) + " |"


def _with_delimiter(match: re.Match[str]) -> str:
    """Turn rows into a table whose header is the first row, by adding a delimiter row below this row.

    Nothing changes if the rows have different numbers of cells or only one cell, or if one of them is
    already a delimiter row.
    """
    header, *rows = match["rows"].splitlines()
    counts = {len(row_cells(line)) for line in (header, *rows)}
    if len(counts) > 1 or counts == {1} or any(map(_DELIMITER_LINE.match, (header, *rows))):
        return match[0]
    delimiter = "|" + " --- |" * counts.pop()
    return "\n".join([match["above"], header, delimiter, *rows, "", ""])


def _with_equal_cells(match: re.Match[str]) -> str:
    """Add cells to the header of a table or to its delimiter row, so that both have the same number."""
    header, delimiter = (row_cells(match[part]) for part in (1, 2))
    missing = len(delimiter) - len(header)
    if not missing:
        return match[0]
    rows = ([*header, *[" "] * missing], [*delimiter, *["---"] * -missing])
    return "\n".join(f"|{'|'.join(cells)}|" for cells in rows)
