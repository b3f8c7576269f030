"""Converts a tree of HTML into Markdown with the same headings, tables, lists and code blocks.

Tables are made regular first, as Markdown needs them: one header row, no spans, no layout tables.
"""

import re
from itertools import pairwise, takewhile
from typing import Any

from bs4 import Tag
from markdownify import ATX, MarkdownConverter

from ingestion.sources.formats.html_fields import mark_fields
from schemas.errors import SourceError

MAX_SPANNED_CELLS = 20_000
"""Maximum number of cells that are added to one page to replace row spans and column spans."""

MAX_REPEATED_CHARS = 200
"""Maximum length of a text that is repeated in each row that its cell spans, in characters.

A longer text appears only in the first row.
"""

_LAYOUT_CONTENT = ["table", "h1", "h2", "h3", "h4", "h5", "h6"]
_TABLE_PARTS = ["thead", "tbody", "tfoot", "tr", "td", "th"]


def normalize_tables(content: Tag) -> None:
    """Make every table below `content` regular, and set `data-columns` on its first row.

    Raises SourceError if spans add too many cells.
    """
    for table in reversed(content.find_all("table")):  # the innermost first
        _move_rows_out(table)
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


def _move_rows_out(table: Tag) -> None:
    """Move the rows of a table in a cell of a table with headers below the row of that cell.

    They are indented, and their cells are moved to the columns with the same headers.
    """
    row = table.find_parent("tr")
    outer = row.find_parent("table") if row is not None else None
    if row is None or outer is None:
        return
    first, own = outer.find("tr"), table.find_all("tr")
    titles = _titles(first) if isinstance(first, Tag) else []
    if len(titles) < 2 or first is row or not own or table.find("table"):
        return
    names = _titles(own[0]) or titles
    columns = [
        titles.index(name) if name in titles else min(index, len(titles) - 1)
        for index, name in enumerate(names)
    ]
    table.extract()
    below = row
    for inner in own[1:] if _titles(own[0]) else own:
        cells = [Tag(name="td") for _ in titles]
        for index, cell in enumerate(inner.find_all(["td", "th"], recursive=False)):
            target = cells[columns[index] if index < len(columns) else -1]
            target.extend([*cell.contents, " "])
        nested = inner.get("data-nesting")
        new = Tag(name="tr", attrs={"data-nesting": str(int(str(nested or 0)) + 1)})
        cells[0]["style"] = f"padding-left: {16 * int(str(new['data-nesting']))}px"
        new.extend(cells)
        below.insert_after(new)
        below = new


def _titles(row: Tag) -> list[str]:
    """Return the texts of a row of header cells; empty for another row."""
    cells = row.find_all(["td", "th"], recursive=False)
    is_header = bool(cells) and all(cell.name == "th" for cell in cells)
    return [" ".join(cell.get_text(" ").split()).lower() for cell in cells] if is_header else []


def _is_layout(table: Tag) -> bool:
    """Return whether the table only positions other content."""
    return table.find(_LAYOUT_CONTENT) is not None or (
        table.find("pre") is not None and len(table.find_all("tr", limit=2)) <= 1
    )


class _TableNormalizer:
    """Replaces the spans of the tables of one page with separate cells."""

    def __init__(self) -> None:
        self.cells_left = MAX_SPANNED_CELLS
        self.spanning: dict[int, tuple[int, str]] = {}
        """By column: the number of further rows that a cell spans, and the text to repeat in them."""

    def normalize(self, table: Tag) -> None:
        self.spanning = {}
        rows: list[Tag] = list(table.find_all("tr"))
        headers = sum(1 for _ in takewhile(_titles, rows))
        widths = [self._fill_row(row) for row in rows]
        for above, row in pairwise(rows[:headers]):
            _merge_headers(above, row)
        rows = rows[max(headers - 1, 0) :]
        widths = widths[max(headers - 1, 0) :]
        if rows:
            rows[0]["data-columns"] = str(max(widths))
            for _ in range(max(widths) - widths[0]):
                self._append(rows[0], "")

    def _fill_row(self, row: Tag) -> int:
        """Add the cells that the row lacks, and return its number of columns."""
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


def _merge_headers(above: Tag, row: Tag) -> None:
    """Remove the header row `above`; cells of `row` below it that are empty get its text."""
    cells = row.find_all(["td", "th"], recursive=False)
    for cell, other in zip(cells, above.find_all(["td", "th"], recursive=False), strict=False):
        if not cell.get_text().strip():
            cell.extend(list(other.contents))
    above.extract()


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name, "1"))
    return max(1, min(1000, int(value))) if value.isdecimal() and len(value) < 6 else 1


MAX_INDENTATION = 80
"""Maximum indentation of a cell, in characters."""

MAX_WRITTEN_CHARS = 60_000_000
"""Maximum number of characters that are written for one page, over all levels of nesting.

Each level writes the text of the levels below it again.
"""

_LABELS = ["span", "code", "b", "strong", "em", "i", "small", "var", "label"]
_TERM = re.compile(r"[a-z_$][\w.$\[\]-]*(?P<more>\s.*)?", re.ASCII)
_LANGUAGE = re.compile(r"(?:language|lang|highlight(?:-source)?|brush)[-:]\s?([\w+#.-]{1,20})")
_LINE_START = re.compile(
    r"^( {0,3})(#{1,6}(?=\s|$)|`{3,}|~{3,}|=+[ \t]*$|-{2,}[ \t]*$)", re.MULTILINE
)
_LEFT_SPACE = re.compile(r"(?:padding|margin)-left\s*:\s*([\d.]{1,6})(px|em)", re.IGNORECASE)
_WIDE_SPACES = "\u00a0\u2002\u2003\u3000"
_UNESCAPED_BAR = re.compile(r"(?<!\\)\|")
_ESCAPED_BAR = r"\\|"
_MARKUP = re.compile(r"([\\*_`<\[{])")


def html_to_markdown(content: Tag) -> str:
    """Return `content` as Markdown. Raises SourceError if it exceeds a limit."""
    mark_fields(content)
    _separate_labels(content)
    normalize_tables(content)
    _number_list_items(content)
    return str(_Converter().convert_soup(content)).strip()


def table_to_markdown(html: str) -> str:
    """Return an HTML table as a Markdown table. Raises SourceError if it exceeds a limit."""
    from ingestion.sources.formats.html import parse_html

    return html_to_markdown(parse_html(html))


def _separate_labels(content: Tag) -> None:
    """Put a space between adjacent labels, such as a name and its type: styles keep them apart."""
    for label in content.find_all(_LABELS, class_=True):
        before = label.previous_sibling
        if isinstance(before, Tag) and before.name in _LABELS and not label.find_parent("pre"):
            label.insert_before(" ")


def _number_list_items(content: Tag) -> None:
    """Store the number of each list item; markdownify would count all items again for each one."""
    for items in content.find_all("ol"):
        start = str(items.get("start", "1"))
        first = int(start) if start.isdecimal() and len(start) < 10 else 1
        for number, item in enumerate(items.find_all("li", recursive=False), first):
            item["data-number"] = str(number)


class _Converter(MarkdownConverter):
    """A MarkdownConverter whose output is meant for search and reading, not for rendering."""

    def __init__(self) -> None:
        super().__init__(heading_style=ATX, bullets="-", table_infer_header=True)
        self.written_chars = 0

    def process_tag(self, node: Tag, parent_tags: set[str] | None = None) -> str:
        text = str(super().process_tag(node, parent_tags))  # type: ignore[misc]
        self.written_chars += len(text)
        if self.written_chars > MAX_WRITTEN_CHARS:
            raise SourceError("too large and too deeply nested for an HTML page")
        return text

    def escape(self, text: str, parent_tags: set[str]) -> str:
        """Escape only headings and text that would start a block, so that `order_id` is unchanged."""
        if any(re.fullmatch("h[1-6]", tag) for tag in parent_tags):
            return _MARKUP.sub(r"\\\1", text)
        return _LINE_START.sub(r"\1\\\2", text)

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Keep the URL of an absolute link; keep only the text of a relative one."""
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
        if not text or "_inline" in parent_tags:
            return f"{text} "
        if _is_definition(el):
            name, _, rest = text.partition(" ")
            return f"\n- {text if '`' in text else f'`{name}` {rest}'.strip()}\n"
        return f"\n\n**{text.replace('*', '')}**\n\n"

    def convert_dd(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if "_inline" not in parent_tags and _is_definition(el.find_previous_sibling("dt")):
            return "\n  " + text.strip().replace("\n", "\n  ") + "\n"
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
        return f"\n\n{fence}{_code_language(el)}\n{text}\n{fence}\n\n" if text.strip() else ""

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        # Indentation shows nesting. Written as &nbsp;, because Markdown parsers strip spaces.
        return f" {'&nbsp;' * _indentation(el)}{_UNESCAPED_BAR.sub(_ESCAPED_BAR, ' '.join(text.split()))} |"

    convert_th = convert_td

    def convert_tr(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        columns = int(str(el.get("data-columns") or 0))
        return f"|{text}\n" + (f"|{' --- |' * columns}\n" if columns else "")

    def convert_hN(self, n: int, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: N802
        text = " ".join(text.split())
        if "_inline" in parent_tags:
            return text
        return f"\n\n{'#' * max(1, min(6, n))} {text}\n\n" if text else ""


def _is_definition(term: Tag | None) -> bool:
    """Return whether a definition list describes fields.

    Its `term` contains code, or is a word as in code with further elements.
    """
    if term is None or term.find("code") is not None:
        return term is not None
    match = _TERM.fullmatch(" ".join(term.get_text(" ").split()))
    return match is not None and (not match["more"] or term.find(_LABELS) is not None)


def _indentation(cell: Tag) -> int:
    """Return the width of the space before the text of a cell, in characters."""
    width = 0
    for tag in [cell, *cell.find_all(style=True)]:
        if match := _LEFT_SPACE.search(str(tag.get("style", ""))):
            width += round(float(match[1]) / (8 if match[2].lower() == "px" else 0.5))
    for text in cell.strings:
        spaces = text[: len(text) - len(text.lstrip())]
        width += sum(character in _WIDE_SPACES for character in spaces)
        if len(spaces) < len(text):
            break
    return min(width, MAX_INDENTATION)


def _in_heading(parent_tags: set[str]) -> bool:
    return any(re.fullmatch("h[1-6]", tag) for tag in parent_tags)


def _code_language(pre: Tag) -> str:
    """Return the language named by the classes of the code or of the elements around it."""
    candidates: list[Any] = [pre.find("code"), pre, pre.parent, pre.parent and pre.parent.parent]
    for tag in candidates:
        if tag is not None and (match := _LANGUAGE.search(" ".join(tag.get("class") or ()))):
            return match[1]
    return ""
