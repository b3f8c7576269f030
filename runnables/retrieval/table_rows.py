"""The names and error codes that a row of a Markdown table defines, by the titles of its columns."""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from http import HTTPStatus

from ingestion.sources.api_pages.columns import is_name_column, is_row_number_column
from ingestion.text.markdown_blocks import plain_text, row_cells
from runnables.question.extract_details import command_flags

CODE_COLUMN = re.compile(r"码|错误|code|status|error", re.IGNORECASE)
"""Words in the title of a column of codes."""

_NAME_COLUMN = re.compile(
    r".*(?:名称|名字|标识|常量|枚举).*|.*\b(?:name|constant|identifier|symbol|reason)s?\b.*",
    re.IGNORECASE,
)
"""The title of a column in which identifiers in capitals are names of codes."""

_CAPITALS = re.compile(r"(?!(?:GET|POST|PUT|PATCH|DELETE|HEAD)\Z)[A-Z][A-Z0-9]+(?:[_.-][A-Z0-9]+)*")
"""An identifier in capitals, such as `KICKED`."""

_IDENTIFIER = re.compile(r"[A-Za-z_$@][\w.$@\[\]-]*", re.ASCII)
_SEPARATORS = re.compile(r"[\s,，、/;；]+")
_LAST_PART = re.compile(r"[^.\[\]]+(?=(?:\[\])?$)")


@lru_cache(maxsize=2_000)
def plain_cells(row: str) -> tuple[str, ...]:
    """Return the cells of a line of a Markdown table as plain text.

    Cached, because all rows of a table are read with its header, and several searches of a question read
    the same rows.
    """
    return tuple(map(plain_text, row_cells(row)))


def row_name(header: Sequence[str], cells: Sequence[str]) -> str:
    """Return the name of a table row, which is usually its first cell.

    If the first column has the numbers of the rows, the name is the first identifier in a column of names,
    such as 字段名 and 标识. If there is no such identifier, it is the second cell.
    """
    if len(cells) < 2 or not header or not is_row_number_column(header[0]):
        return cells[0] if cells else ""
    pairs = zip(header, cells, strict=False)
    named = (cell for title, cell in pairs if is_name_column(title))
    return next(filter(_IDENTIFIER.fullmatch, named), cells[1])


def row_defines(header: Sequence[str], cells: Sequence[str], identifier: str) -> bool:
    """Return whether a row defines the lower-case `identifier` by its name or as one of its codes.

    The name `items[].id` also defines `items.id` and `id`. A name with flags, such as "-d, --draft", also
    defines these flags.
    """
    name = row_name(header, cells).lower()
    names = name, name.replace("[]", ""), _last_part(name), *command_flags(name)
    return identifier in (*names, *cell_parts(named_codes(header, cells)))


def cell_parts(cells: Iterable[str]) -> set[str]:
    """Split the cells at spaces, commas, semicolons and slashes, and return the distinct parts."""
    return {part for cell in cells for part in _SEPARATORS.split(cell)}


def named_codes(header: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return the codes in a table row, in lower case, each with the title of its column.

    Codes are the cells in columns of codes. If there is such a column, identifiers in capitals in a column
    of names are codes as well. Their title is that of the first column of codes.

    The phrase of an HTTP status, such as "Conflict" in the row of 409, is not a code.
    """
    titles = [title for title in header if CODE_COLUMN.search(title)]
    if not titles:
        return {}
    phrases = {_status_phrase(cell) for cell in cells if cell.isdecimal() and len(cell) == 3}
    pairs = [pair for pair in zip(header, cells, strict=False) if pair[1] not in phrases]
    return {
        cell.lower(): title if title in titles else titles[0]
        for title, cell in pairs
        if title in titles or (_NAME_COLUMN.fullmatch(title) and _CAPITALS.fullmatch(cell))
    }


@cache
def _status_phrase(status: str) -> str:
    """Return the phrase of an HTTP status, such as "Conflict" for 409; empty if there is none.

    In the error tables that `ingestion/sources/openapi` writes, it is the message in the row of the status.
    """
    try:
        return HTTPStatus(int(status)).phrase
    except ValueError:  # not a status
        return ""


def _last_part(name: str) -> str:
    """Return the name of a field without its parents: `id` for `items[].id`."""
    last = _LAST_PART.search(name)
    return last[0] if last else name
