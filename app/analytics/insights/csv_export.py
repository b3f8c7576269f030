"""Exports tables of the insights report as CSV."""

import csv
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from schemas.base import ApiModel
from schemas.insights import ApiCount, ErrorCount, Gap, Insights, RatedAnswer, Table, TypeCount

BYTE_ORDER_MARK = "\ufeff"
"""The UTF-8 byte order mark. Without it, spreadsheets decode the file in the local encoding."""

FORMULA_PREFIXES = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Characters that start a formula in a spreadsheet, also after whitespace."""

LEADING_WHITESPACE = ("\t", "\r", "\n")

NEAREST_COLUMNS = ("nearestTitle", "nearestUrl")

ROW_MODELS: dict[Table, type[ApiModel]] = {
    "byType": TypeCount,
    "byApi": ApiCount,
    "gaps": Gap,
    "errors": ErrorCount,
    "feedback": RatedAnswer,
}


def to_csv(insights: Insights, table: Table) -> str:
    """Format one table as CSV (RFC 4180) with a header row; text that looks like a formula is escaped."""
    text = StringIO()
    text.write(BYTE_ORDER_MARK)
    writer = csv.DictWriter(text, list(_columns(ROW_MODELS[table])))
    writer.writeheader()
    for row in insights.model_dump(mode="json", by_alias=True)[table]:
        writer.writerow({name: _escape_formula(cell) for name, cell in _cells(row)})
    return text.getvalue()


def _columns(row: type[ApiModel]) -> Iterator[str]:
    for field in row.model_fields.values():
        yield from NEAREST_COLUMNS if field.alias == "nearest" else (str(field.alias),)


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield the cells of a row. A page becomes two cells; a list becomes one cell with a line per item."""
    for name, value in row.items():
        if name == "nearest":
            yield from zip(
                NEAREST_COLUMNS, (value or {"title": "", "pageUrl": ""}).values(), strict=True
            )
        else:
            yield name, "\n".join(value) if isinstance(value, list) else value


def _escape_formula(cell: object) -> object:
    """Add an apostrophe in front of text that a spreadsheet would run as a formula."""
    if isinstance(cell, str) and (
        cell.startswith(LEADING_WHITESPACE) or cell.lstrip().startswith(FORMULA_PREFIXES)
    ):
        return f"'{cell}"
    return cell
