"""Finds the table rows that describe a range of numbers that contains a given number.

Tables of error codes describe several codes in one row: `301000~301099`, `4900-4913`, `100 to 199`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ingestion.store.collection import Collection
from runnables.retrieval.path_patterns import search_chunks
from runnables.retrieval.table_rows import named_codes, plain_cells, row_name
from schemas.document import Chunk
from schemas.question import Filters

ERROR_TABLE_QUERY = "错误码 error code"
"""Full-text query that finds tables of error codes."""

_CODE = re.compile(r"-?\d{3,9}", re.ASCII)
"""A number that may be a code. Ranges of shorter numbers, such as `1-10`, are amounts or row numbers."""

_RANGE = re.compile(r"(-?\d{3,9})\s?([~～–—―-]|\.\.\.?|…|至|到|to)\s?(-?\d{3,9})", re.ASCII)
_RANGE_IN_ROW = re.compile(r"\d{3}[`*\s\\]{0,3}(?:[~～–—―.…至到-]|to)", re.ASCII)
"""Matches in every row with a range. Most rows have no range, so their cells need not be read."""


def is_number(identifier: str) -> bool:
    """Return whether `identifier` is a number of three to nine digits, perhaps negative."""
    return _CODE.fullmatch(identifier) is not None


def is_range(name: str) -> bool:
    """Return whether the name of a row is a range of numbers, such as `301000~301099`."""
    return _bounds(name) is not None


def ranges_in(body: str, number: str) -> list[str]:
    """Return the ranges with `number` in the tables of a chunk's body, as plain text in lower case.

    Only the names of rows and the cells in columns of codes count. The result is empty if `number` has
    another form than a code (see `is_number`).
    """
    if not is_number(number):
        return []
    value = int(number)
    return list(dict.fromkeys(name for name, low, high in _ranges(body) if low <= value <= high))


def chunks_with_range(collection: Collection, number: str, filters: Filters) -> list[Chunk]:
    """Return chunks with a range that contains `number` (see `ranges_in`).

    Full text contains only the bounds of a range. Most ranges begin or end with round numbers, so these are
    searched for, together with tables of error codes.

    This function blocks: call it in a worker thread.
    """
    if not is_number(number):
        return []
    query = " ".join([ERROR_TABLE_QUERY, *_likely_bounds(number)])
    chunks = search_chunks(collection, query, filters)
    return [chunk for chunk in chunks if ranges_in(chunk.body, number)]


def _likely_bounds(number: str) -> list[str]:
    """Return numbers with which a range around `number` may begin or end.

    For 4905, these are 4905, 4900, 4901, 4909, 4000, 4001 and 4999, for example.
    """
    number = number.removeprefix("-")
    starts = [number[:length] for length in range(len(number) - 1, 0, -1)]
    ends = ((start, len(number) - len(start)) for start in starts)
    rounded = [(f"{s}{'0' * n}", f"{s}{'1'.zfill(n)}", f"{s}{'9' * n}") for s, n in ends]
    return [number, *(bound for bounds in rounded for bound in bounds)]


@lru_cache(maxsize=1_000)
def _ranges(body: str) -> tuple[tuple[str, int, int], ...]:
    """Return the ranges in the tables of a chunk's body, each as its text and its bounds.

    Cached, because many questions read the same tables.
    """
    return tuple(_read_ranges(body)) if _RANGE_IN_ROW.search(body) else ()


def _read_ranges(body: str) -> Iterator[tuple[str, int, int]]:
    header: Sequence[str] = ()
    for line in body.splitlines():
        if not line.lstrip().startswith("|"):
            header = ()
        elif not header:
            header = plain_cells(line)
        elif _RANGE_IN_ROW.search(line):
            cells = plain_cells(line)
            names = row_name(header, cells).lower(), *named_codes(header, cells)
            for name in names:
                if bounds := _bounds(name):
                    yield name, *bounds


def _bounds(name: str) -> tuple[int, int] | None:
    """Return the bounds of the range `name`, lower first; None if it is no range.

    Dashes also separate the parts of telephone numbers and serial numbers, such as `555-0100200`. Two
    numbers with a dash are therefore a range only if they are equally long, or one is negative. A second
    number with a leading zero ends a range only if the first one has it too.
    """
    match = _RANGE.fullmatch(name)
    if not match:
        return None
    first, separator, second = match.groups()
    is_dashed = separator in "-–" and "-" not in first + second
    is_other = is_dashed and len(first) != len(second)
    if is_other or (second.startswith("0") and not first.startswith("0")):
        return None
    low, high = sorted((int(first), int(second)))
    return low, high
