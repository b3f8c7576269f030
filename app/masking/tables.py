"""Finds secrets in tables by their names: in the row of the name, or in the column below it.

A table is in Markdown, or has values that are separated by commas, semicolons or tabs (CSV).
"""

import re
from collections.abc import Iterator, Sequence

from app.masking.secret_names import (
    SecretKind,
    SyntaxConfidence,
    is_plausible,
    is_plausible_enclosed,
    names_secret,
    secret_kind,
    unqualified_name,
)
from app.masking.text_spans import TextSpan

_CELL = re.compile(r"[ \t*`]{0,8}(?P<value>[^|\n`*]{0,200}?)[ \t*`]{0,8}(?:\||$)")
_MAX_CELLS = 4
"""Maximum number of cells to check after the cell with the name.

A row that describes a parameter may have four more cells: type, "required", description and example.
"""
_HEADER = re.compile(r"[\w .-]{1,60}")
_DELIMITERS = re.compile(r"\|?(?:[ \t]{0,4}:?-{1,80}:?[ \t]{0,4}\|?){2,}")

_CSV_CELLS = {
    delimiter: re.compile(
        rf"[ ]{{0,8}}(?P<quote>\"?)(?P<value>[^{delimiter}\"\r\n]*)(?P=quote)(?:{delimiter}|$)"
    )
    for delimiter in (",", ";", "\t")
}
"""Maps the delimiters of CSV to patterns for a cell."""
_CSV_HEADER = re.compile(r"[\w.-]{1,40}(?: [\w.-]{1,20})?")


def find_secret_in_row(text: str, position: int, kind: SecretKind, name: str) -> TextSpan | None:
    """Return the first plausible secret in the `_MAX_CELLS` cells from `position` on, or None."""
    for _ in range(_MAX_CELLS):
        cell = _CELL.match(text, position)
        if cell is None or cell.end() == position:
            return None
        if is_plausible(kind, cell["value"], SyntaxConfidence.SENTENCE):
            return TextSpan(*cell.span("value"), unqualified_name(name))
        position = cell.end()
    return None


def find_secrets_in_columns(text: str) -> Iterator[TextSpan]:
    """Yield the secrets in the columns whose headers name secrets, in Markdown tables and CSV."""
    yield from _find_in_markdown(text)
    yield from _find_in_csv(text)


def _find_in_markdown(text: str) -> Iterator[TextSpan]:
    headers: list[str] = []
    position, previous_line = 0, ""
    for line in text.splitlines(keepends=True):
        row = line.strip()
        if "|" not in row:
            headers = []
        elif _DELIMITERS.fullmatch(row):
            headers = [cell["value"] for cell in _cells(previous_line)]
            headers = [header if _HEADER.fullmatch(header) else "" for header in headers]
        else:
            yield from _secrets_under(headers, line, position)
        previous_line = line
        position += len(line)


def _cells(line: str) -> list[re.Match[str]]:
    """Return the cells of a row, followed by one empty cell."""
    row = line.strip()
    start = line.index(row) + row.startswith("|")
    return list(_CELL.finditer(line, start, len(line.rstrip())))


def _find_in_csv(text: str) -> Iterator[TextSpan]:
    headers: list[str] = []
    delimiter, position = ",", 0
    for line in text.splitlines(keepends=True):
        row = line.rstrip()
        if headers and row.count(delimiter) == len(headers) - 1:
            yield from _secrets_in_csv_row(headers, row, delimiter, position)
        else:
            delimiter = next(filter(row.__contains__, _CSV_CELLS), ",")
            headers = _csv_headers(row, delimiter)
        position += len(line)


def _csv_headers(row: str, delimiter: str) -> list[str]:
    """Return the cells of `row` if it can be the header of a CSV table with secrets; otherwise []."""
    headers = [cell.strip(' "') for cell in row.split(delimiter)]
    is_header = (
        len(headers) > 1
        and all(map(_CSV_HEADER.fullmatch, headers))
        and any(map(names_secret, headers))
    )
    return headers if is_header else []


def _secrets_in_csv_row(
    headers: Sequence[str], row: str, delimiter: str, position: int
) -> Iterator[TextSpan]:
    """Yield the secrets in `row`, which starts at `position` in the text.

    The check is strict, because lists of names in prose look like CSV.
    """
    for header, cell in zip(headers, _CSV_CELLS[delimiter].finditer(row), strict=False):
        kind = secret_kind(header)
        if kind not in (None, SecretKind.PUBLIC) and is_plausible_enclosed(
            kind, cell["value"], '"'
        ):
            start, end = cell.span("value")
            yield TextSpan(position + start, position + end, unqualified_name(header))


def _secrets_under(headers: Sequence[str], line: str, position: int) -> Iterator[TextSpan]:
    if not any(map(names_secret, headers)):
        return
    for header, cell in zip(headers, _cells(line), strict=False):
        kind = secret_kind(header)
        if kind not in (None, SecretKind.PUBLIC) and is_plausible(
            kind, cell["value"], SyntaxConfidence.SENTENCE
        ):
            start, end = cell.span("value")
            yield TextSpan(position + start, position + end, unqualified_name(header))
