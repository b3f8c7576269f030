"""Reads files of values separated by commas, semicolons or tabs as one Markdown table."""

import csv
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from statistics import mode
from typing import Any

from ingestion.sources.formats.text import decode_text, escape_markdown
from ingestion.sources.pages import PageContent, PagePart
from ingestion.text.markdown_blocks import cell_text, markdown_table
from schemas.errors import SourceError

SAMPLE_ROWS = 50
"""Number of rows from which the delimiter is recognised."""

MAX_LINE_BREAKS = 20
"""Maximum plausible number of line breaks in a cell. If there are more, a quote is probably not closed."""

_DELIMITERS = ("\t", ";", ",")
"""In order of preference: texts contain commas, but seldom tabs."""
_NO_DELIMITER = "\x1f"
"""The delimiter of a file with one column. No file contains it, because `decode_text` refuses it."""
_STATED_DELIMITER = re.compile(r"\s*\"?sep=([,;|\t])\"?[ \t]*(?:\n|\Z)", re.IGNORECASE)
"""Matches a first line that states the delimiter, such as `sep=;`. Spreadsheet programs write it."""
_MARK = re.compile(
    r"(?P<code>(?P<ticks>`++)[^`]++(?P=ticks)(?!`))"
    r"|(?P<tag></?[A-Za-z][^<>`\n]{0,60}>)"
    r"|[*`]|<(?=[^>]{0,200}>)|(?<![^\W_])_|_(?![^\W_])|\](?=\()|\{(?=#)"
    r"|\\(?=[!-/:-@\[-`{-~])"
)
"""Matches code spans in a cell, and text that Markdown would take for tags, emphasis, links or escapes."""


def read_csv(data: bytes, delimiter: str = "") -> PageContent:
    """Return the rows of the file as a Markdown table. Lines before the header become text above the table.

    If the first line states a delimiter (`sep=;`), it takes precedence over `delimiter`. If neither is
    given, the delimiter is the one with which the most rows have the same number of cells. Blank rows are
    left out.

    Raises SourceError if `data` is not text, or a cell exceeds the limit of `csv`.
    """
    text = decode_text(data).removeprefix("\ufeff")
    if stated := _STATED_DELIMITER.match(text):
        text, delimiter = text[stated.end() :], stated[1]
    delimiter = delimiter or _delimiter(text)
    try:
        rows = _parse(text, delimiter)
    except csv.Error as error:
        raise SourceError(f"not a readable table ({error})") from None
    markdown = _markdown(rows, delimiter)
    return PageContent({}, [PagePart(markdown)] if markdown else [])


def _delimiter(text: str) -> str:
    """Return the delimiter that divides the most rows into the same number of cells.

    Only the first SAMPLE_ROWS rows are examined. The result is `_NO_DELIMITER` if the text has one column
    or looks like prose.
    """

    # csv.Sniffer fails on files with one column or few rows, and may take a letter in words for a quote.
    def fit(delimiter: str) -> tuple[int, int]:
        """Return the number of rows with the usual number of cells, and this number of cells.

        Both are 0 if most rows have one cell, if `delimiter` separates parts of sentences instead of cells,
        or if a cell would be too long.
        """
        try:
            rows = _parse(text, delimiter, SAMPLE_ROWS)
        except csv.Error:  # a line without this delimiter is longer than a cell may be
            return 0, 0
        counts = [len(row) for row in rows if any(row)]
        width = mode(counts) if counts else 0
        is_prose = min(counts, default=0) < width and _is_spaced(text, delimiter)
        return (counts.count(width), width) if width > 1 and not is_prose else (0, 0)

    best = max(_DELIMITERS, key=fit)
    return best if fit(best)[0] else _NO_DELIMITER


def _is_spaced(text: str, delimiter: str) -> bool:
    """Return whether whitespace follows each delimiter in the first 10,000 characters, as in prose.

    The result is false if the delimiter is a tab.
    """
    sample = text[:10_000]
    spaced = re.findall(rf"{re.escape(delimiter)}(?=\s|\Z)", sample)
    return delimiter != "\t" and len(spaced) == sample.count(delimiter)


def _parse(text: str, delimiter: str, limit: int | None = None) -> list[list[str]]:
    """Return the rows of `text`, at most `limit`. A row without cells stands for a blank line.

    If a cell is very long or has many line breaks, a quote is probably not closed. The text is then parsed
    in strict mode. If strict mode fails, quotes are read as ordinary characters. Raises csv.Error if a cell
    is too long even then.
    """
    has_spaced_quotes = f'{delimiter} "' in text

    def parse(**options: Any) -> list[list[str]]:
        lines = io.StringIO(text, newline="")
        reader = csv.reader(
            lines, delimiter=delimiter, skipinitialspace=has_spaced_quotes, **options
        )
        return list(islice(reader, limit))

    with suppress(csv.Error):
        rows = parse()
        if all(cell.count("\n") <= MAX_LINE_BREAKS for row in rows for cell in row):
            return rows
    with suppress(csv.Error):
        return parse(strict=True)
    return parse(quoting=csv.QUOTE_NONE)


def _markdown(rows: list[list[str]], delimiter: str) -> str:
    """Return the rows as text and a table.

    The table is as wide as its header, or as most rows if they are wider. If a row has more cells, the
    extra cells are joined to the cell in the last column, which probably contains unquoted delimiters.
    """
    start = _header_index(rows)
    separator = f"{delimiter.strip()} "
    above = [separator.join(filter(None, map(_cell, row))) for row in rows[:start]]
    table = [row for row in rows[start:] if any(map(str.strip, row))]
    if not table:
        return ""
    width = max(len(table[0]), mode(map(len, table)))
    header, *others = (
        [*row[: width - 1], delimiter.join(row[width - 1 :])] if len(row) > width else row
        for row in table
    )
    header = header + [""] * (width - len(header))
    markdown = markdown_table([_cells(row) for row in (header, *others)])
    text = escape_markdown("\n".join(above).strip("\n"))
    return "\n\n".join(filter(None, [text, markdown]))


def _header_index(rows: Sequence[Sequence[str]]) -> int:
    """Return the index of the header: the first row with at least as many cells as most rows.

    If rows directly above this row also have several cells, the uppermost of them is taken as the header,
    although it has no title for some columns.
    """
    counts = [_count_cells(row) for row in rows]
    usual = mode(filter(None, counts)) if any(counts) else 0
    index = next((i for i, count in enumerate(counts) if count >= usual and count), 0)
    while index and counts[index - 1] > 1:
        index -= 1
    return index


def _count_cells(row: Sequence[str]) -> int:
    """Return the number of cells up to the last one with text."""
    return max((i for i, cell in enumerate(row, 1) if cell.strip()), default=0)


def _cells(row: Sequence[str]) -> list[str]:
    return [_cell(cell).replace("|", r"\|") for cell in row]


def _cell(text: str) -> str:
    return cell_text(_MARK.sub(_escaped, text))


def _escaped(match: re.Match[str]) -> str:
    """Return a tag as a code span, a code span unchanged, and any other match with a backslash."""
    if match["tag"]:
        return f"`{match[0]}`"
    return match[0] if match["code"] else f"\\{match[0]}"
