"""Makes HTML tables regular, as Markdown needs them: one header row, no spans, no layout tables."""

from bs4 import Tag

from schemas.errors import SourceError

MAX_SPANNED_CELLS = 20_000
"""Cells added on one page for cells that span several rows or columns."""

MAX_REPEATED_CHARS = 200
"""Characters of a cell that is repeated in each row it spans; a longer text appears once."""

_LAYOUT_CONTENT = ["table", "h1", "h2", "h3", "h4", "h5", "h6"]
_TABLE_PARTS = ["thead", "tbody", "tfoot", "tr", "td", "th"]


def normalize_tables(content: Tag) -> None:
    """Make every table below `content` regular; its first row gets `data-columns`.

    Raises SourceError when spans add too many cells.
    """
    for table in content.find_all("table"):
        if _is_layout(table):
            table.name = "div"
    normalizer = _TableNormalizer()
    for row in content.find_all(_TABLE_PARTS):
        if row.find_parent("table") is None:
            row.name = "div"
    for table in content.find_all("table"):
        for caption in table.find_all("caption"):
            caption.name = "p"
            table.insert_before(caption.extract())
        normalizer.normalize(table)


def _is_layout(table: Tag) -> bool:
    """Whether the table only positions other content."""
    return table.find(_LAYOUT_CONTENT) is not None or (
        table.find("pre") is not None and len(table.find_all("tr", limit=2)) <= 1
    )


class _TableNormalizer:
    """Replaces the spans of the tables of one page with separate cells."""

    def __init__(self) -> None:
        self.cells_left = MAX_SPANNED_CELLS
        self.spanning: dict[int, tuple[int, str]] = {}
        """Column -> remaining rows that a cell spans, and its text."""

    def normalize(self, table: Tag) -> None:
        self.spanning = {}
        rows = table.find_all("tr")
        widths = [self._fill_row(row) for row in rows]
        if rows:
            rows[0]["data-columns"] = str(max(widths))
            for _ in range(max(widths) - widths[0]):
                self._append(rows[0], "")

    def _fill_row(self, row: Tag) -> int:
        """Add the cells that the row lacks; return its number of columns."""
        cells = row.find_all(["td", "th"], recursive=False)
        for cell in cells:
            cell.extract()
        row.clear()
        column = 0
        for cell in cells:
            column = self._append_spanning(row, column)
            across, down = _span(cell, "colspan"), _span(cell, "rowspan")
            row.append(cell)
            for _ in range(across - 1):
                self._append(row, "")
            if down > 1:
                text = " ".join(cell.get_text(" ").split())
                text = text if len(text) <= MAX_REPEATED_CHARS else ""
                self.spanning |= {column + i: (down - 1, text) for i in range(across)}
            column += across
        return self._append_spanning(row, column)

    def _append_spanning(self, row: Tag, column: int) -> int:
        while column in self.spanning:
            remaining, text = self.spanning.pop(column)
            if remaining > 1:
                self.spanning[column] = (remaining - 1, text)
            self._append(row, text)
            column += 1
        return column

    def _append(self, row: Tag, text: str) -> None:
        self.cells_left -= 1
        if self.cells_left < 0:
            raise SourceError(f"table cells span more than {MAX_SPANNED_CELLS} other cells")
        cell = Tag(name="td")
        cell.string = text
        row.append(cell)


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name, "1"))
    return max(1, min(1000, int(value))) if value.isdecimal() and len(value) < 6 else 1
