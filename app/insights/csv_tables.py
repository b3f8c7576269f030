"""The report's tables as CSV, for spreadsheets."""

import csv
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from schemas.insights import ApiCount, ErrorCount, Gap, Insights, Rated, Table, TypeCount
from schemas.wire import ApiModel

BYTE_ORDER_MARK = "\ufeff"
"""Without it a spreadsheet takes UTF-8 for the encoding of its country."""

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the beginning of a formula, after blanks too."""

BLANK = ("\t", "\r", "\n")

NEAREST = ("nearestTitle", "nearestUrl")

ROWS: dict[Table, type[ApiModel]] = {
    "byType": TypeCount,
    "byApi": ApiCount,
    "gaps": Gap,
    "errors": ErrorCount,
    "feedback": Rated,
}


def csv_of(found: Insights, table: Table) -> str:
    """One table under a line of names, as RFC 4180 has it; what people wrote stays text."""
    text = StringIO()
    text.write(BYTE_ORDER_MARK)
    writer = csv.DictWriter(text, list(_columns(ROWS[table])))
    writer.writeheader()
    for row in found.model_dump(mode="json", by_alias=True)[table]:
        writer.writerow({name: _inert(cell) for name, cell in _cells(row)})
    return text.getvalue()


def _columns(row: type[ApiModel]) -> Iterator[str]:
    for field in row.model_fields.values():
        yield from NEAREST if field.alias == "nearest" else (str(field.alias),)


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """A page takes two cells, a list stands in one, a line each."""
    for name, value in row.items():
        if name == "nearest":
            yield from zip(NEAREST, (value or {"title": "", "pageUrl": ""}).values(), strict=True)
        else:
            yield name, "\n".join(value) if isinstance(value, list) else value


def _inert(cell: object) -> object:
    """`cell`; behind an apostrophe where it is text that would be a formula."""
    if isinstance(cell, str) and (cell.startswith(BLANK) or cell.lstrip().startswith(FORMULA)):
        return f"'{cell}"
    return cell
