"""Secrets in tables: in the row that begins with a name, and in the column under one."""

import re
from collections.abc import Iterator

from app.masking.plausibility import SyntaxConfidence, is_plausible
from app.masking.secret_names import SecretKind, kind_of, names_secret, own_name
from app.masking.text_spans import TextSpan

_CELL = re.compile(r"[ \t*`]{0,8}(?P<value>[^|\n`*]{0,200}?)[ \t*`]{0,8}(?:\||$)")
_CELLS = 4
"""Cells of a row that are looked at: type, required, description, example."""
_HEAD = re.compile(r"[\w .-]{1,60}")
_DELIMITERS = re.compile(r"\|?(?:[ \t]{0,4}:?-{1,80}:?[ \t]{0,4}\|?){2,}")


def secret_in_row(text: str, position: int, kind: SecretKind, name: str) -> TextSpan | None:
    """The secret in one of the cells from `position` on, in the row of `name`."""
    for _ in range(_CELLS):
        cell = _CELL.match(text, position)
        if cell is None or cell.end() == position:
            return None
        if is_plausible(kind, cell["value"], SyntaxConfidence.SAID):
            return TextSpan(*cell.span("value"), own_name(name))
        position = cell.end()
    return None


def secrets_in_columns(text: str) -> Iterator[TextSpan]:
    """The secrets in the columns of Markdown tables whose heads are names of secrets."""
    heads: list[str] = []
    position, before = 0, ""
    for line in text.splitlines(keepends=True):
        row = line.strip()
        if "|" not in row:
            heads = []
        elif _DELIMITERS.fullmatch(row):
            heads = [cell["value"] for cell in _cells(before)]
            heads = [head if _HEAD.fullmatch(head) else "" for head in heads]
        else:
            yield from _secrets_under(heads, line, position)
        before = line
        position += len(line)


def _secrets_under(heads: list[str], line: str, position: int) -> Iterator[TextSpan]:
    if not any(map(names_secret, heads)):
        return
    for head, cell in zip(heads, _cells(line), strict=False):
        kind = kind_of(head)
        if kind not in (None, SecretKind.PUBLIC) and is_plausible(
            kind, cell["value"], SyntaxConfidence.SAID
        ):
            start, end = cell.span("value")
            yield TextSpan(position + start, position + end, own_name(head))


def _cells(line: str) -> list[re.Match[str]]:
    """The cells of a row, without the bars around it."""
    row = line.strip()
    start = line.index(row) + row.startswith("|")
    return list(_CELL.finditer(line, start, len(line.rstrip())))
