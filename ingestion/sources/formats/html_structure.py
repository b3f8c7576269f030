"""Normalises the operations, fields and tables of an HTML page, so that Markdown can represent them.

The Sphinx extension `sphinxcontrib-httpdomain` writes an HTTP operation as a definition list. The term is
the signature, such as `GET /users/(int:user_id)`. The definition contains lists of parameters with titles
such as "Query Parameters".

Some pages describe the fields of an API in `<div>` elements, without tables or lists. The head of a field
is an element that contains the field's name, its type and possibly "required", each in a child element. The
head becomes a paragraph such as "`owner.name` string required" with the full name of the field.

Each table keeps at most one header row, and spans are filled with cells. A table that only positions other
content becomes a `<div>`.
"""

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

from bs4 import Tag

from schemas.errors import SourceError

_SIGNATURE = re.compile(r"(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)(/.*)")
"""A signature after its spaces have been removed."""
_PATH_PARAMETER = re.compile(r"\((?:[^():/]{1,40}:)?([\w-]{1,80})\)")
"""A parameter of a signature, possibly with its type: `(int:user_id)`."""
_OPERATION_CLASSES = ["http", "get", "post", "put", "patch", "delete", "head", "options"]
_FIELD_LIST_TITLES = {"Parameters": "Path Parameters", "Form Parameters": "Body Form Parameters"}
"""Maps the title of a list of parameters to a title that says where its parameters are sent."""

_NAME = re.compile(r"[A-Za-z_$][\w.$\[\]-]*", re.ASCII)
_TYPE = re.compile(
    r"(?:(?:array|list)(?: of |<)?)?(?:strings?|integers?|int(?:32|64)?|numbers?|bool(?:ean)?s?"
    r"|objects?|array|enums?|floats?|doubles?|decimal|timestamp|date(?:-?time)?|uuid|file|map|any)(?:\[\]|>|\s*[(<|].*)?"
    r"(?:\s+(?:required|optional|conditional))?",
    re.IGNORECASE,
)
_FLAG = re.compile(r"required|optional|conditional|header|path|query|body", re.IGNORECASE)
_TEXT_BLOCKS = ["div", "p", "ul", "ol", "dl", "table", "section", "details", "pre"]
_HEADS = ["div", "p", "header", "h3", "h4", "h5", "h6", "section", "label"]
MAX_HEAD_PARTS = 6
"""Maximum number of elements in the head of a field."""

MAX_SPANNED_CELLS = 20_000
"""Maximum number of cells that are added to one page to replace row spans and column spans."""

MAX_REPEATED_CHARS = 200
"""Maximum length, in characters, of a cell's text that is repeated in each row and column that it spans.

A longer text appears only in the first of these rows and columns.
"""
_LAYOUT_CONTENT = ["table", "h1", "h2", "h3", "h4", "h5", "h6"]
_TABLE_PARTS = ["thead", "tbody", "tfoot", "tr", "td", "th"]


def mark_operations(content: Tag) -> None:
    """Turn the signatures of operations into `<code>` elements.

    The titles of the operations' lists of parameters become bold labels. A parameter in a signature becomes
    a placeholder such as `{user_id}`.
    """
    for description in content.find_all("dl", class_=_OPERATION_CLASSES):
        terms = description.find_all("dt", recursive=False)
        signatures = [_SIGNATURE.fullmatch("".join(term.get_text().split())) for term in terms]
        if not all(signatures):
            continue
        for term, signature in zip(terms, filter(None, signatures), strict=True):
            path = _PATH_PARAMETER.sub(r"{\1}", signature[2])
            _replace_element(term, "p", "code", f"{signature[1]} {path}")
        for definition in description.find_all("dd", recursive=False):
            definition.name = "div"
        # A quotation with a field list is the body of an operation with more indentation.
        for quote in description.select(":scope > div > blockquote:has(.field-list)"):
            quote.name = "div"
        description.name = "div"
        for fields in description.find_all("dl", class_="field-list"):
            _rewrite_field_list(fields.find_all(["dt", "dd"], recursive=False))
            fields.name = "div"
        for fields in description.find_all("table", class_="field-list"):  # in Sphinx before 2.0
            parts = fields.find_all(["th", "td"], class_=["field-name", "field-body"])
            _rewrite_field_list(parts)
            fields.replace_with(*(part.extract() for part in parts))


def _replace_element(element: Tag, name: str, inner_name: str, text: str) -> None:
    """Rename `element` to `name`, and replace its content with an element `inner_name` with `text`."""
    element.clear()
    element.name = name
    inner = Tag(name=inner_name)
    inner.string = text
    element.append(inner)


def _rewrite_field_list(parts: list[Tag]) -> None:
    """Turn the titles of a Sphinx field list into bold labels, and names of HTTP headers into `<code>`.

    The title "Synopsis" is removed, because the text below it becomes the description of the operation.
    """
    title = ""
    for part in parts:
        if part.name in ("dt", "th"):
            title = " ".join(part.get_text().split()).rstrip(": ")
            if title.lower() == "synopsis":
                part.clear()
                part.name = "div"
                continue
            _replace_element(part, "p", "strong", f"{_FIELD_LIST_TITLES.get(title, title)}:")
            continue
        part.name = "div"
        for item in part.find_all("li") if title.endswith("Headers") else ():
            link = item.find("a")
            if link is not None and item.get_text().strip().startswith(link.get_text()):
                link.name = "code"


def mark_fields(content: Tag) -> None:
    """Turn each head of a field in `content` into a paragraph that begins with the field's full name."""
    names: dict[int, str] = {}
    for head in content.find_all(_HEADS):
        if head.find_parent(["table", "li", "dl", "pre"]):
            continue
        texts, rest = _head_and_rest(head)
        if not texts:
            continue
        parent = _parent_name(head, names)
        plain = re.sub(r"\[\w*\]", "", texts[0])
        is_full = not parent or plain.startswith(f"{parent}.")
        names[id(head)] = plain if is_full else f"{parent}.{plain}"
        head.clear()
        head.name = "p"
        code = Tag(name="code")
        code.string = names[id(head)]
        head.extend([code, " ".join(["", *texts[1:]])])
        head.insert_after(*rest)


def _head_and_rest(element: Tag) -> tuple[list[str], list[Tag]]:
    """Split `element` into the texts of a field's head and the blocks after the head.

    The head consists of a name, a type and possibly labels. It ends before the first block, such as a
    `<div>`, whose text is more than a flag such as "required". Both lists are empty if `element` does not
    contain the head of a field.
    """
    tags = [part for part in element.children if isinstance(part, Tag)]
    pairs = [(tag, text) for tag in tags if (text := _line(tag))]
    parts, texts = [tag for tag, _ in pairs], [text for _, text in pairs]
    if len(texts) < 2 or not _NAME.fullmatch(texts[0]) or not _TYPE.fullmatch(texts[1]):
        return [], []
    if any(text.strip() for text in element.find_all(string=True, recursive=False)):
        return [], []
    is_after_head = (
        part.name in _TEXT_BLOCKS and not _FLAG.fullmatch(text)
        for part, text in zip(parts[2:], texts[2:], strict=True)
    )
    end = next((i for i, is_after in enumerate(is_after_head, 2) if is_after), len(parts))
    return (texts[:end], parts[end:]) if end <= MAX_HEAD_PARTS else ([], [])


def _parent_name(head: Tag, names: dict[int, str]) -> str:
    """Return the full name of the field that contains the field of `head`; empty if there is none.

    The head of the containing field is a preceding sibling of an ancestor of `head`. `names` maps the
    Python object id of each head before `head` to the full name of its field.
    """
    element = head.parent
    while element is not None:
        for sibling in element.previous_siblings:
            if id(sibling) in names:
                return names[id(sibling)]
        element = element.parent
    return ""


def normalise_tables(content: Tag) -> None:
    """Give each table at most one header row and no spans.

    The rows of nested tables are moved into the outer table if it has headers. A table that only positions
    other content becomes a `<div>`. The number of columns is set as `data-columns` of the first row. Raises
    SourceError if spans add too many cells.
    """
    for table in reversed(content.find_all("table")):  # the innermost first
        _move_rows_out(table)
    for table in content.find_all("table"):
        if _is_layout(table):
            table.name = "div"
    normaliser = _TableNormaliser()
    for part in content.find_all(_TABLE_PARTS):
        if part.find_parent("table") is None:
            part.name = "div"
    for table in content.find_all("table"):
        for caption in table.find_all("caption"):
            caption.name = "p"
            table.insert_before(caption.extract())
        normaliser.normalise(table)
        _merge_spacers(table)


def _move_rows_out(table: Tag) -> None:
    """Move the rows of a nested table into the outer table, below the row that contains the nested table.

    The rows are indented, and their cells are moved to the columns with the same headers. Nothing is moved
    if the outer table has no headers or only one column, if the nested table is in the row of the headers,
    or if it contains another table.
    """
    row = table.find_parent("tr")
    outer = row.find_parent("table") if row is not None else None
    if row is None or outer is None:
        return
    first, inner_rows = outer.find("tr"), table.find_all("tr")
    titles = _titles(first) if isinstance(first, Tag) else []
    if len(titles) < 2 or first is row or not inner_rows or table.find("table"):
        return
    names = _titles(inner_rows[0]) or titles
    columns = [
        titles.index(name) if name in titles else min(index, len(titles) - 1)
        for index, name in enumerate(names)
    ]
    table.extract()
    previous = row
    for inner in inner_rows[1:] if _titles(inner_rows[0]) else inner_rows:
        cells = [Tag(name="td") for _ in titles]
        for index, cell in enumerate(inner.find_all(["td", "th"], recursive=False)):
            target = cells[columns[index] if index < len(columns) else -1]
            target.extend([*cell.contents, " "])
        depth = int(str(inner.get("data-nesting") or 0)) + 1
        new = Tag(name="tr", attrs={"data-nesting": str(depth)})
        cells[0]["style"] = f"padding-left: {16 * depth}px"
        new.extend(cells)
        previous.insert_after(new)
        previous = new


def _titles(row: Tag) -> list[str]:
    """Return the texts of a row of header cells in lower case; empty for other rows."""
    cells = row.find_all(["td", "th"], recursive=False)
    is_header = bool(cells) and all(cell.name == "th" for cell in cells)
    return [_line(cell).lower() for cell in cells] if is_header else []


def _is_named_row(row: Tag) -> bool:
    """Return whether only the first cell of `row` is a header cell, which names the row."""
    names = [cell.name for cell in row.find_all(["td", "th"], recursive=False)]
    return names[:1] == ["th"] and set(names[1:]) == {"td"}


def _add_empty_header(row: Tag) -> Tag:
    """Insert a header row with empty cells before `row`.

    Without it, the first row of a table would become the header of the Markdown table.
    """
    header = Tag(name="tr")
    for _ in row.find_all(["td", "th"], recursive=False):
        header.append(Tag(name="th"))
    row.insert_before(header)
    return header


def _is_layout(table: Tag) -> bool:
    """Return whether the table only positions other content, such as headings, tables or a code block."""
    return table.find(_LAYOUT_CONTENT) is not None or (
        table.find("pre") is not None and len(table.find_all("tr", limit=2)) <= 1
    )


class _TableNormaliser:
    """Replaces the spans of the tables of one page with separate cells."""

    def __init__(self) -> None:
        self.cells_left = MAX_SPANNED_CELLS
        self.spanning: dict[int, tuple[int, str]] = {}
        """By column: the number of rows below that a cell spans, and the text to repeat in them."""

    def normalise(self, table: Tag) -> None:
        self.spanning = {}
        rows: list[Tag] = list(table.find_all("tr"))
        if rows and all(map(_is_named_row, rows)):
            rows.insert(0, _add_empty_header(rows[0]))
        if not rows:
            return
        # Without header cells, the first row is the header.
        header_count = max(1, sum(1 for _ in takewhile(_titles, rows)))
        headers, body = rows[:header_count], rows[header_count:]
        header_widths = [self._fill_row(row, None) for row in headers]
        for above, row in pairwise(headers):
            _merge_headers(above, row)
        header, header_width = headers[-1], header_widths[-1]  # the others are merged into it
        titles = list(map(_line, header.find_all(["td", "th"], recursive=False)))
        width = max([header_width, *(self._fill_row(row, titles) for row in body)])
        header["data-columns"] = str(width)
        for _ in range(width - header_width):
            self._append(header, "")

    def _fill_row(self, row: Tag, titles: Sequence[str] | None) -> int:
        """Add cells where spans cover positions of `row`, and return the row's number of columns.

        `titles` are the titles of the columns, or None for a row of the header.

        - A cell that spans several rows is repeated in the rows below.
        - A cell that spans several columns is repeated in those of them that have a title of their own, or
          in all of them if the table has no titles.
        - The only cell of a row is not repeated in other columns: it is the title of the rows below.
        - A cell in a row of the header is not repeated in other columns.
        """
        cells = row.find_all(["td", "th"], recursive=False)
        if len(cells) == 1 and not self.spanning:
            titles = None
        for cell in cells:
            cell.extract()
        row.clear()
        column = 0
        for cell in cells:
            column = self._append_spanning(row, column)
            across, down = _span(cell, "colspan"), _span(cell, "rowspan")
            row.append(cell)
            text = _line(cell) if across > 1 or down > 1 else ""
            text = text if len(text) <= MAX_REPEATED_CHARS else ""
            for covered in range(column + 1, column + across):
                self._append(row, text if _is_repeated(titles, covered) else "")
            if down > 1:
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
            raise SourceError(
                f"the cells of its tables span more than {MAX_SPANNED_CELLS} other cells"
            )
        cell = Tag(name="td")
        cell.string = text
        row.append(cell)


def _is_repeated(titles: Sequence[str] | None, column: int) -> bool:
    """Return whether a cell that spans `column`, but begins in an earlier column, is repeated in `column`.

    `_fill_row` explains the rule.
    """
    return titles is not None and (not any(titles) or any(titles[column : column + 1]))


def _merge_headers(above: Tag, row: Tag) -> None:
    """Remove the header row `above`, and copy its text to empty cells of the header row `row` below."""
    cells = row.find_all(["td", "th"], recursive=False)
    for cell, other in zip(cells, above.find_all(["td", "th"], recursive=False), strict=False):
        if not cell.get_text().strip():
            cell.extend(list(other.contents))
    above.extract()


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name, "1"))
    return max(1, min(1000, int(value))) if value.isdecimal() and len(value) < 6 else 1


def _merge_spacers(table: Tag) -> None:
    """Replace the empty cells before the name of a nested field with a style that indents the name's cell.

    To do so, a titled column is merged with the untitled columns after it, if each row has text in at most
    one of these columns and the untitled columns are not all empty.
    """
    rows = [row.find_all(["td", "th"], recursive=False) for row in table.find_all("tr")]
    header = [_line(cell) for cell in rows[0]] if rows else []
    for start in [i for i, (title, after) in enumerate(pairwise(header)) if title and not after]:
        width = 1 + len(list(takewhile(lambda title: not title, header[start + 1 :])))
        groups = [cells[start : start + width] for cells in rows]
        filled = [[i for i, cell in enumerate(group) if _line(cell)] for group in groups]
        if any(len(found) > 1 for found in filled) or all(found in ([], [0]) for found in filled):
            continue
        for group, found in zip(groups, filled, strict=True):
            kept = found[0] if found else 0
            for index, cell in enumerate(group):
                if index != kept:
                    cell.extract()
            if kept:
                group[kept]["style"] = f"padding-left: {16 * kept}px"
        first = table.find("tr")
        if isinstance(first, Tag):
            first["data-columns"] = str(int(str(first["data-columns"])) - width + 1)


def _line(cell: Tag) -> str:
    return " ".join(cell.get_text(" ").split())
