"""Finds secrets in tables: in the row after a name, or in the column under a name."""

import re
from collections.abc import Iterator

from app.masking.plausibility import SyntaxConfidence, is_plausible
from app.masking.secret_names import SecretKind, names_secret, secret_kind, unqualified_name
from app.masking.text_spans import TextSpan

_CELL = re.compile(r"[ \t*`]{0,8}(?P<value>[^|\n`*]{0,200}?)[ \t*`]{0,8}(?:\||$)")
_MAX_CELLS = 4
"""Maximum number of cells to check in a row, such as type, required, description and example."""
_HEADER = re.compile(r"[\w .-]{1,60}")
_DELIMITERS = re.compile(r"\|?(?:[ \t]{0,4}:?-{1,80}:?[ \t]{0,4}\|?){2,}")


def find_secret_in_row(text: str, position: int, kind: SecretKind, name: str) -> TextSpan | None:
    """Return the secret in the cells from `position`, which are in the row of `name`, or None."""
    for _ in range(_MAX_CELLS):
        cell = _CELL.match(text, position)
        if cell is None or cell.end() == position:
            return None
        if is_plausible(kind, cell["value"], SyntaxConfidence.SENTENCE):
            return TextSpan(*cell.span("value"), unqualified_name(name))
        position = cell.end()
    return None


def find_secrets_in_columns(text: str) -> Iterator[TextSpan]:
    """Yield the secrets in Markdown tables, in the columns whose headers name secrets."""
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


def _secrets_under(headers: list[str], line: str, position: int) -> Iterator[TextSpan]:
    if not any(map(names_secret, headers)):
        return
    for header, cell in zip(headers, _cells(line), strict=False):
        kind = secret_kind(header)
        if kind not in (None, SecretKind.PUBLIC) and is_plausible(
            kind, cell["value"], SyntaxConfidence.SENTENCE
        ):
            start, end = cell.span("value")
            yield TextSpan(position + start, position + end, unqualified_name(header))


def _cells(line: str) -> list[re.Match[str]]:
    """Return the cells of a row; the bars at its ends do not delimit empty cells."""
    row = line.strip()
    start = line.index(row) + row.startswith("|")
    return list(_CELL.finditer(line, start, len(line.rstrip())))
