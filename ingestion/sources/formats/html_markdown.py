"""Tables of HTML as Markdown can hold them: one row of names, every cell in its column, no layout.
A tree of HTML -> Markdown whose blocks are the page's: headings, tables, lists and code.
"""

import re
from typing import Any

from bs4 import Tag
from markdownify import ATX, MarkdownConverter

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


MOST_WORK = 60_000_000
"""Characters written on all levels; each level of a page writes the text within it again."""

_LANGUAGE = re.compile(r"(?:language|lang|highlight(?:-source)?|brush)[-:]\s?([\w+#.-]{1,20})")
_LINE_START = re.compile(
    r"^( {0,3})(#{1,6}(?=\s|$)|`{3,}|~{3,}|=+[ \t]*$|-{2,}[ \t]*$)", re.MULTILINE
)
_BAR = re.compile(r"(?<!\\)\|")
_ESCAPED_BAR = r"\\|"
_MARKUP = re.compile(r"([\\*_`<\[{])")


def markdown_of(content: Tag) -> str:
    """`content` as Markdown. Raises SourceError where that would be out of all proportion."""
    straighten(content)
    _number(content)
    return str(_Converter().convert_soup(content)).strip()


def _number(content: Tag) -> None:
    """Give each item its number, which the library would count anew for each of them."""
    for items in content.find_all("ol"):
        start = str(items.get("start", "1"))
        first = int(start) if start.isdecimal() and len(start) < 10 else 1
        for number, item in enumerate(items.find_all("li", recursive=False), first):
            item["data-number"] = str(number)


class _Converter(MarkdownConverter):
    """markdownify, for reading and for finding rather than for rendering back."""

    def __init__(self) -> None:
        super().__init__(heading_style=ATX, bullets="-", table_infer_header=True)
        self.work = 0

    def process_tag(self, node: Tag, parent_tags: set[str] | None = None) -> str:
        text = str(super().process_tag(node, parent_tags))  # type: ignore[misc]
        self.work += len(text)
        if self.work > MOST_WORK:
            raise SourceError("is too large and too deep to be read as a page")
        return text

    def escape(self, text: str, parent_tags: set[str]) -> str:
        """Only what would change the page's blocks, and headings; `order_id` shall stay itself."""
        if any(re.fullmatch("h[1-6]", tag) for tag in parent_tags):
            return _MARKUP.sub(r"\\\1", text)
        return _LINE_START.sub(r"\1\\\2", text)

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A link out of the page keeps its address; one within the site only its text."""
        href = str(el.get("href", "")).strip()
        label = text.strip()
        if label in ("", "#", "¶", "↑"):
            return ""
        if "_noformat" in parent_tags or _in_heading(parent_tags):
            return text
        if not href.startswith(("http://", "https://")) or re.search(r"[\s<>()]", href):
            return text
        return text.replace(label, f"<{href}>" if label == href else f"[{label}]({href})")

    def convert_br(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if "pre" in parent_tags:
            return "\n"
        return " " if "_inline" in parent_tags else "\n"

    def convert_dt(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        text = " ".join(text.split())
        return f"\n\n**{text}**\n\n" if text and "_inline" not in parent_tags else f"{text} "

    def convert_dd(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return f"\n\n{text.strip()}\n\n" if "_inline" not in parent_tags else f" {text.strip()} "

    def convert_summary(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return self.convert_dt(el, text, parent_tags)

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return str(el.get("alt") or "")

    def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        text = text.strip()
        if not text:
            return "\n"
        bullet = f"{el['data-number']}. " if el.get("data-number") else "- "
        return bullet + text.replace("\n", "\n" + " " * len(bullet)) + "\n"

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if "_inline" in parent_tags:  # in a table's cell
            return f"`{' '.join(text.split())}`" if text.strip() else ""
        text = text.strip("\n")
        ticks = max((len(run) for run in re.findall("`{3,}", text)), default=2) + 1
        fence = "`" * ticks
        return f"\n\n{fence}{_language(el)}\n{text}\n{fence}\n\n" if text.strip() else ""

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return f" {_BAR.sub(_ESCAPED_BAR, ' '.join(text.split()))} |"

    convert_th = convert_td

    def convert_tr(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        columns = int(str(el.get("data-columns") or 0))
        return f"|{text}\n" + (f"|{' --- |' * columns}\n" if columns else "")

    def convert_hN(self, n: int, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: N802
        text = " ".join(text.split())
        if "_inline" in parent_tags:
            return text
        return f"\n\n{'#' * max(1, min(6, n))} {text}\n\n" if text else ""


def _in_heading(parent_tags: set[str]) -> bool:
    return any(re.fullmatch("h[1-6]", tag) for tag in parent_tags)


def _language(pre: Tag) -> str:
    """What the classes of the code, or of what stands around it, say it is written in."""
    near: list[Any] = [pre.find("code"), pre, pre.parent, pre.parent and pre.parent.parent]
    for tag in near:
        if tag is not None and (match := _LANGUAGE.search(" ".join(tag.get("class") or ()))):
            return match[1]
    return ""
