"""Finds secrets in tables: in the cells to the right of a name such as `token`, or below the name.

A table is in Markdown, or has values that are separated by commas, semicolons or tabs (CSV).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from app.masking.secret_names import (
    NAME_TOKENS,
    SecretKind,
    SyntaxConfidence,
    is_plausible,
    is_plausible_enclosed,
    secret_kind,
    unqualified_name,
)
from app.masking.text_spans import TextSpan

_CELL = re.compile(r"[ \t*`]{0,8}(?P<value>[^|\n`*]{0,200}?)[ \t*`]{0,8}(?:\||$)")
_MAX_CELLS = 4
"""Maximum number of cells to check after the cell with the name.

A row that describes a parameter may have four more cells: type, "required", description and example.
"""
_NOTE = re.compile(r"[ ]?[(（][^()（）]{0,20}[)）]$")
"""The note after a header, as in "App Secret (prod)"."""
_HEADER = re.compile(r"[\w .-]{1,60}")
_DELIMITERS = re.compile(r"\|?(?:[ \t]{0,4}:?-{1,80}:?[ \t]{0,4}\|?){2,}")
"""The line below the headers of a Markdown table, such as |---|---|."""

_CSV_CELLS = {
    delimiter: re.compile(
        rf'[ ]{{0,8}}(?P<quote>")?(?P<value>(?(quote)[^"\r\n]*|[^{delimiter}"\r\n]*?))(?(quote)")'
        rf"[ ]{{0,8}}(?:{delimiter}|$)"
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
            headers = [h if _HEADER.fullmatch(_NOTE.sub("", h)) else "" for h in headers]
        elif headers:
            yield from _secrets_under(headers, _cells(line), position, _is_secret)
        previous_line = line
        position += len(line)


def _cells(line: str) -> list[re.Match[str]]:
    """Return the cells of a row of a Markdown table, followed by one empty cell."""
    row = line.strip()
    start = line.index(row) + row.startswith("|")
    return list(_CELL.finditer(line, start, len(line.rstrip())))


def _find_in_csv(text: str) -> Iterator[TextSpan]:
    headers: list[str] = []
    delimiter, position = ",", 0
    for line in text.splitlines(keepends=True):
        row = line.rstrip("\r\n")
        cells = _csv_cells(row, delimiter) if headers else []
        if headers and _have_columns(cells, headers):
            yield from _secrets_under(headers, cells, position, _is_secret_in_csv)
        elif row.strip():  # tables may contain blank lines
            delimiter = next(filter(row.__contains__, _CSV_CELLS), ",")
            headers = _csv_headers(row, delimiter)
        position += len(line)


def _csv_cells(row: str, delimiter: str) -> list[re.Match[str]]:
    """Return the cells of `row`; [] if it is not CSV."""
    cells: list[re.Match[str]] = []
    position, is_complete = 0, False
    while not is_complete:
        cell = _CSV_CELLS[delimiter].match(row, position)
        if cell is None:
            return []
        cells.append(cell)
        position, is_complete = cell.end(), not cell[0].endswith(delimiter)
    return cells


def _have_columns(cells: Sequence[re.Match[str]], headers: Sequence[str]) -> bool:
    """Return whether there is a cell for each header, and nothing else except a trailing delimiter."""
    extra = cells[len(headers) :]
    return len(cells) >= len(headers) and not any(cell["value"] for cell in extra)


def _csv_headers(row: str, delimiter: str) -> list[str]:
    """Return the cells of `row` if it can be the header of a CSV table with secrets; otherwise []."""
    headers = [cell["value"] for cell in _csv_cells(row, delimiter)]
    if headers and not headers[-1]:  # after a trailing delimiter
        headers.pop()
    is_header = (
        len(headers) > 1
        and all(_CSV_HEADER.fullmatch(_NOTE.sub("", header)) for header in headers)
        and any(map(_header_kind, headers))
    )
    return headers if is_header else []


def _header_kind(header: str) -> SecretKind | None:
    """Return the kind of secrets in the column under `header`, or None.

    If the whole header is not a known name, a name at its end counts, such as 密码 in 登录密码.
    """
    header = _NOTE.sub("", header)
    kind = secret_kind(header)
    for name in NAME_TOKENS.finditer(header):
        if kind is None and name.end() == len(header):
            kind = secret_kind(name[0])
    return None if kind is SecretKind.PUBLIC else kind


def _is_secret(kind: SecretKind, value: str) -> bool:
    return is_plausible(kind, value, SyntaxConfidence.SENTENCE)


def _is_secret_in_csv(kind: SecretKind, value: str) -> bool:
    """Return whether `value` can be a secret. The check is strict, because lists in prose look like CSV."""
    return is_plausible_enclosed(kind, value, '"')


def _secrets_under(
    headers: Sequence[str],
    cells: Iterable[re.Match[str]],
    position: int,
    is_secret: Callable[[SecretKind, str], bool],
) -> Iterator[TextSpan]:
    """Yield the secrets in `cells`, whose row starts at `position` in the text."""
    for header, cell in zip(headers, cells, strict=False):
        kind = _header_kind(header)
        if kind and is_secret(kind, cell["value"]):
            start, end = cell.span("value")
            label = unqualified_name(_NOTE.sub("", header))
            yield TextSpan(position + start, position + end, label)
