"""Reads files of values separated by commas, semicolons or tabs as one Markdown table."""

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from statistics import mode

from ingestion.sources.formats.text import decode_text
from ingestion.sources.pages import PageContent, PagePart
from ingestion.text.markdown_blocks import cell_text, escape_borders
from schemas.errors import SourceError

SAMPLE_ROWS = 50
"""Number of rows from which the delimiter is recognised."""

_DELIMITERS = (",", ";", "\t")


def read_csv(data: bytes, delimiter: str = "") -> PageContent:
    """Return the rows of the file as a Markdown table, whose header is the first row.

    Without `delimiter`, the delimiter is the one with which the most rows have as many cells as the header.
    Blank rows are left out. Raises SourceError if `data` is not text, or a cell exceeds the limit of `csv`.
    """
    text = decode_text(data)
    try:
        rows = _rows(text, delimiter or _delimiter(text))
    except csv.Error as error:
        raise SourceError(f"not a readable table ({error})") from None
    return PageContent({}, [PagePart("\n".join(rows))] if rows else [])


def _delimiter(text: str) -> str:
    # csv.Sniffer fails on files with one column or few rows, and may take a letter in words for a quote.
    def fit(delimiter: str) -> tuple[int, int]:
        try:
            counts = [len(row) for row in islice(_parse(text, delimiter), SAMPLE_ROWS) if row]
        except csv.Error:  # a line without this delimiter is longer than a cell may be
            return 0, 0
        return (counts.count(counts[0]), counts[0]) if counts and counts[0] > 1 else (0, 0)

    return max(_DELIMITERS, key=fit)


def _parse(text: str, delimiter: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)


def _rows(text: str, delimiter: str) -> list[str]:
    """Return the lines of the Markdown table.

    The table is as wide as its header, or as most rows if they are wider. Further cells of a row come from
    unquoted delimiters, so they are part of its last cell.
    """
    rows = [row for row in _parse(text, delimiter) if any(map(str.strip, row))]
    if not rows:
        return []
    width = max(len(rows[0]), mode(map(len, rows)))
    header, *others = (
        [*row[: width - 1], delimiter.join(row[width - 1 :])] if len(row) > width else row
        for row in rows
    )
    header += [""] * (width - len(header))
    return [_line(header), "|" + " --- |" * width, *map(_line, others)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(escape_borders(cell_text(cell)) for cell in cells)} |"
