"""Tables of HTML as Markdown can hold them: one row of names, every cell in its column, no layout."""

from bs4 import Tag

from schemas.errors import SourceError

MOST_SPANNED = 20_000
"""Cells that are put in on one page for those that span several."""

LONGEST_SPANNED = 200
"""Characters; what is longer is not said again in every row that it spans."""

_LAYOUT = ["table", "h1", "h2", "h3", "h4", "h5", "h6"]
_INNER = ["thead", "tbody", "tfoot", "tr", "td", "th"]


def straighten(content: Tag) -> None:
    """Make every table below `content` regular; its first row gets `data-columns`.

    Raises SourceError for spans beyond all bounds.
    """
    for table in content.find_all("table"):
        if _is_layout(table):
            table.name = "div"
    grid = _Grid()
    for row in content.find_all(_INNER):
        if row.find_parent("table") is None:
            row.name = "div"
    for table in content.find_all("table"):
        for caption in table.find_all("caption"):
            caption.name = "p"
            table.insert_before(caption.extract())
        grid.fill(table)


def _is_layout(table: Tag) -> bool:
    """Whether the table only says where things stand on the page."""
    return table.find(_LAYOUT) is not None or (
        table.find("pre") is not None and len(table.find_all("tr", limit=2)) <= 1
    )


class _Grid:
    """Puts the text of cells where they span to, on one page."""

    def __init__(self) -> None:
        self.left = MOST_SPANNED
        self.waiting: dict[int, tuple[int, str]] = {}
        """Column -> how many rows more a cell spans, and its text."""

    def fill(self, table: Tag) -> None:
        self.waiting = {}
        rows = table.find_all("tr")
        widths = [self._fill_row(row) for row in rows]
        if rows:
            rows[0]["data-columns"] = str(max(widths))
            for _ in range(max(widths) - widths[0]):
                self._put(rows[0], "")

    def _fill_row(self, row: Tag) -> int:
        """Put in what the row lacks; how many columns it has."""
        cells = row.find_all(["td", "th"], recursive=False)
        for cell in cells:
            cell.extract()
        row.clear()
        column = 0
        for cell in cells:
            column = self._put_waiting(row, column)
            across, down = _span(cell, "colspan"), _span(cell, "rowspan")
            row.append(cell)
            for _ in range(across - 1):
                self._put(row, "")
            if down > 1:
                text = " ".join(cell.get_text(" ").split())
                text = text if len(text) <= LONGEST_SPANNED else ""
                self.waiting |= {column + i: (down - 1, text) for i in range(across)}
            column += across
        return self._put_waiting(row, column)

    def _put_waiting(self, row: Tag, column: int) -> int:
        while column in self.waiting:
            left, text = self.waiting.pop(column)
            if left > 1:
                self.waiting[column] = (left - 1, text)
            self._put(row, text)
            column += 1
        return column

    def _put(self, row: Tag, text: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise SourceError(f"its tables' cells span more than {MOST_SPANNED} others")
        cell = Tag(name="td")
        cell.string = text
        row.append(cell)


def _span(cell: Tag, name: str) -> int:
    said = str(cell.get(name, "1"))
    return max(1, min(1000, int(said))) if said.isdecimal() and len(said) < 6 else 1
