"""Reads the parameters in tables of API pages, with their nesting."""

import html
import re
from collections.abc import Iterator, Sequence

from ingestion.sources.api_columns import Columns, TableRows, parts_of, text_of
from ingestion.sources.api_lists import split_fields
from ingestion.sources.api_nesting import NAME, nest
from ingestion.sources.api_required import is_required_cell, required_mark, without_final_mark
from ingestion.sources.api_types import dimensions_of
from schemas.api_document import AllowedValue, Parameter

_REQUIRED_IN_TYPE = re.compile(r"\brequired\b|必填|必选", re.IGNORECASE)
_REQUIRED_IN_NAME = re.compile(
    r"(?:[\s(（\[]*(?:\brequired\b|\bmandatory\b|必填|必选|必传)[)）\]]*|(?<=\w)\s*\*+\s*$|^\s*\*\s*(?=\w))",
    re.IGNORECASE,
)
_OPTIONAL_IN_NAME = re.compile(
    r"[\s(（\[]*(?:\boptional\b|可选|选填|非必填)[)）\]]*|(?<=[\w\]])\?(?=[\\*\s]*$)", re.IGNORECASE
)
_NO_MARKS = ("name", "default", "example", "values")
"""Columns that are not searched for marks; `_names_of` searches the name."""
_INDENT = re.compile(
    r"^(?:\s|&nbsp;|&emsp;|&ensp;|&#160;|\u00a0|\u2003|\u3000|&gt;|[└├│─┗┣∟↳»›>·•▸\-–—+]|\.(?=[.\s]*\w)|└─)+"
)
_ENTITY = re.compile(r"&(?:nbsp|emsp|ensp|gt|#160);")
_NAME_SEPARATOR = re.compile(r"\s+[/|]\s+|\s*[,，、]\s*")
_SEVERAL_NAMES = re.compile(
    rf"[A-Za-z_]\w*(?:\.\w+)*(?:(?:{_NAME_SEPARATOR.pattern})[A-Za-z_]\w*(?:\.\w+)*)+"
)
_WORDS = re.compile(r"[A-Za-z]+(?: [A-Za-z]+){2,}")
"""A text that refers to fields described elsewhere: "all fields of Create"."""
_VALUE = re.compile(r"`([^`]{1,60})`\s*[:：=\-–—]?\s*([^`;；,，|]*)")


def parameters(
    rows: TableRows, columns: Columns, location: str = "", *, is_required: bool = False
) -> tuple[Parameter, ...]:
    """Return the parameters of a table. Indented rows become children of the row above them.

    Rows without a name are left out. If no column says which parameters are required, those without a mark
    are required in two cases: a text says that the parameters are required (`is_required`), or all marks in
    the table say "optional".
    """
    flat: list[tuple[int, Parameter]] = []
    marks: list[bool | None] = []
    for row in rows:
        width, names, mark = _names_of(columns.cell(row, "name"))
        mark = _is_required(row, columns, mark) if names else None
        for name in names:
            marks.append(mark)
            flat.append((width, _parameter(row, columns, name, bool(mark), location)))
    states_required = "required" in columns or "optional" in columns
    is_default = False in marks and True not in marks
    if (is_required or is_default) and not states_required:
        flat = [
            (width, parameter.model_copy(update={"required": mark is not False}))
            for (width, parameter), mark in zip(flat, marks, strict=True)
        ]
    return tuple(_without_wrappers(nest(flat)))


def _without_wrappers(found: Sequence[Parameter]) -> Iterator[Parameter]:
    """Yield the parameters. A row for the whole body (`body`, `anonymous`) is replaced by its children."""
    for parameter in found:
        is_body = parameter.name == "body" and parameter.location == "body"
        if parameter.children and (is_body or parameter.name == "anonymous"):
            yield from parameter.children
        else:
            yield parameter


def _is_required(row: Sequence[str], columns: Columns, mark: bool | None) -> bool | None:
    """Return whether a row states that its parameter is required; None if the row does not say.

    `mark` is what the cell with the name says.
    """
    if "required" in columns:
        return any(map(is_required_cell, parts_of(text_of(columns.cell(row, "required")))))
    if "optional" in columns:
        return text_of(columns.cell(row, "optional")).lower() in ("否", "no", "n", "false", "×")
    if mark is not None:
        return mark
    if _REQUIRED_IN_TYPE.search(columns.cell(row, "type")):
        return True
    skipped = {columns.at.get(kind) for kind in _NO_MARKS}
    cells = (text_of(cell) for index, cell in enumerate(row) if index not in skipped)
    marks = set(map(required_mark, cells)) - {None}
    return True in marks if marks else None


def _names_of(cell: str) -> tuple[int, list[str], bool | None]:
    """Return the indentation in characters, the names in a cell, and whether they are marked as required.

    The mark is True for required, False for optional, None without a mark. A cell such as `from / to` has
    several names; the second name in `point.lng / lat` is `point.lat`.
    """
    text = re.sub(r"<br\s*/?>.*", "", cell, flags=re.IGNORECASE | re.DOTALL).strip("\n")
    text = re.sub(
        r"</?(?:code|b|strong|em|i|span|sup|sub|font|a|p|div)\b[^>]*>",
        "",
        text,
        flags=re.IGNORECASE,
    )
    text = re.sub(r"[*_]+([└├│─\s]+)[*_]+", r"\1", text)
    text = re.sub(r"\\([_\-.*>\[\]{}#+$])", r"\1", text)
    indent = _INDENT.match(text)
    width = _width(indent[0]) if indent else 0
    rest = html.unescape(text[indent.end() if indent else 0 :])
    inner = rest.strip("`*~ ")
    if not indent and (inset := _INDENT.match(inner)):
        width, rest = _width(inset[0]), inner[inset.end() :]
    rest = rest.replace("**", "").replace("~~", "").replace("`", "")
    is_required = _REQUIRED_IN_NAME.search(rest) is not None
    marked = is_required if is_required or _OPTIONAL_IN_NAME.search(rest) else None
    named = _OPTIONAL_IN_NAME.sub("", _REQUIRED_IN_NAME.sub("", rest))
    text = _plain_name(named) or text_of(rest)  # a field may have the name `required`
    text = text.removeprefix("[].")
    if _WORDS.fullmatch(text) and "`" not in cell:
        return width, [], marked
    if _SEVERAL_NAMES.fullmatch(text):
        first, *others = _NAME_SEPARATOR.split(text)
        prefix = first[: first.rfind(".") + 1]
        return width, [first, *(n if "." in n else prefix + n for n in others)], marked
    found = NAME.match(text)
    return width, [name] if found and (name := found[0].rstrip(".:")) else [], marked


def _plain_name(text: str) -> str:
    """Return `text` without markup. Underscores before a name such as `_id` belong to it."""
    name = text.strip()
    is_emphasis = name.startswith("_") and name.endswith("_")
    return name if NAME.fullmatch(name) and not is_emphasis else text_of(name)


def _width(indent: str) -> int:
    return len(_ENTITY.sub(" ", indent))


def _parameter(
    row: Sequence[str], columns: Columns, name: str, required: bool, location: str
) -> Parameter:
    kind = text_of(columns.cell(row, "type"))
    about, fields = split_fields(columns.cell(row, "description"), kind)
    description = without_final_mark(text_of(about))
    kind = re.sub(
        r"[,，;；(（]?\s*(?:\brequired\b|\boptional\b|必填|必选|可选|选填)[)）]?",
        "",
        kind,
        flags=re.IGNORECASE,
    ).strip(" ,，;-–—")
    if default := text_of(columns.cell(row, "default")).strip("-–—/ "):
        description = f"{description} (default: {default})".strip()
    return Parameter(
        name=name,
        type=kind,
        required=required,
        description=description,
        example=text_of(columns.cell(row, "example")).strip("-–—"),
        values=_values(columns.cell(row, "values")),
        dimensions=dimensions_of(kind),
        location=text_of(columns.cell(row, "location")) or location,
        children=fields,
    )


def _values(cell: str) -> tuple[AllowedValue, ...]:
    """Return the values in a cell: its code spans with their meanings.

    Without code spans, the values are the parts between separators such as commas.
    """
    if not cell.strip():
        return ()
    found = [
        (m[1], text_of(m[2]).strip(" ()（）"))
        for m in _VALUE.finditer(re.sub(r"<br\s*/?>", ";", cell))
    ]
    if not found:
        found = [
            (part.strip(), "")
            for part in re.split(r"[,，、;；|/]|<br\s*/?>|\s+or\s+", text_of(cell))
            if part.strip()
        ]
    return tuple(AllowedValue(value=value, meaning=meaning) for value, meaning in found)
