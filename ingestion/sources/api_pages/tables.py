"""Decides what a table of an API operation contains, and reads its parameters, errors or permissions."""

import html
import re
from collections.abc import Iterator, Sequence
from itertools import chain

from ingestion.sources.api_pages.builder import OperationBuilder, table_name
from ingestion.sources.api_pages.columns import (
    Columns,
    TableRows,
    columns_of,
    description_of,
    has_described_names,
    is_error_table,
    is_parameter_table,
    is_status_table,
    text_of,
)
from ingestion.sources.api_pages.errors import (
    are_statuses,
    errors_of_rows,
    has_statuses,
    is_error_status,
)
from ingestion.sources.api_pages.labels import is_fact_label
from ingestion.sources.api_pages.located_calls import is_call
from ingestion.sources.api_pages.operation import PARAMETER_ROLES, Role
from ingestion.sources.api_pages.parameters import (
    NAME,
    dimensions_of,
    listed_parameters,
    nest,
    split_fields,
)
from ingestion.sources.api_pages.permissions import (
    MAX_PERMISSIONS,
    is_scope_label,
    scopes_of_actions,
    scopes_of_facts,
    scopes_of_rows,
    scopes_of_value,
)
from ingestion.sources.api_pages.required import (
    by_contrast,
    fill_required,
    required_cell,
    required_mark,
    without_final_mark,
)
from ingestion.sources.api_pages.roles import (
    is_titled_parameters,
    location_of_column,
    role_of_column,
)
from ingestion.text.typography import has_chinese, join_texts, label_with
from schemas.document import AllowedValue, Parameter, Requirement

_NAME_CELL = re.compile(r"([A-Za-z_$@][\w.$@\[\]{}-]*)\s*((?i:required|optional|必填|可选)?)")
_PLACEHOLDER = re.compile(r"[\s`]*(?:<|&lt;)([A-Za-z][\w.-]*)(?:>|&gt;)[\s`]*")
_FIELD_COLUMN = re.compile(
    r"字段名?称?|属性名?|(?:field|attribute|property)(?: name)?s?", re.IGNORECASE
)
"""Titles of columns that contain the names of an object's fields."""
_CONSTANT = re.compile(r"[A-Z][A-Z\d]*(?:_[A-Z\d]+)*")
_NUMBER = re.compile(r"-?\d+|0[xX][\da-fA-F]+|1 ?<< ?\d+")
_TYPE_CODE = re.compile(r"(?:[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)*)?")
"""A cell of a column titled "Type" that contains an error code, such as `not_found`, or nothing."""


class TableReader:
    """Adds to an operation what its tables state."""

    def __init__(self, builder: OperationBuilder) -> None:
        self._builder = builder
        self._above = builder.above

    def read(self, header: Sequence[str], rows: TableRows) -> bool:
        """Add what a table states.

        Return False if the table stays prose, even if permissions or error codes were read from it.
        """
        role = self._above.role()
        columns = _with_codes(columns_of(header, rows), rows, role)
        if _has_error_codes(columns, role) or _lists_statuses(rows, columns, role):
            by_row = errors_of_rows(rows, columns)
            self._builder.add_errors([*chain.from_iterable(by_row)], table_name(header))
            return bool(by_row) and all(by_row)
        if role == "permissions" and self._builder.add_permissions(scopes_of_rows(rows, columns)):
            self._builder.add_evidence(table_name(header), "permissions")
            return True
        if not is_parameter_table(columns) and self._read_fact_table([header, *rows]):
            return False
        if self._above.is_about_login() and (actions := scopes_of_actions(rows)):
            return self._builder.add_permissions(actions)
        if "scope" in columns and not is_parameter_table(columns):
            cells = [columns.cell(row, "scope") for row in rows]
            if len(rows) <= MAX_PERMISSIONS:
                self._builder.add_permissions(
                    [scope for cell in cells for scope in scopes_of_value(cell)]
                )
            return False
        role = self._role_of_parameters(columns, role)
        return self._add_parameter_table(header, rows, columns, role)

    def _role_of_parameters(self, columns: Columns, role: Role) -> Role:
        """Return the role that the name column's title states, or else `role`, the role of the section.

        If neither states a role, rows titled "Parameter" belong to the request, unless the operation comes
        from an example.
        """
        column_role = role_of_column(columns)
        is_response_header = role == "response" and column_role == "headers"
        if column_role and not is_response_header:  # headers of a response stay in the response
            return column_role
        if not role and self._builder.operation.is_stated and is_titled_parameters(columns):
            return "request"
        return role

    def _add_parameter_table(
        self, header: Sequence[str], rows: TableRows, columns: Columns, role: Role
    ) -> bool:
        """Add the parameters of a table. Return False if it has none and stays prose."""
        if role == "errors":
            return False  # the fields of an error response
        if _is_enumeration(rows, columns):
            return False
        is_announced = role in PARAMETER_ROLES
        is_described = "description" in columns or "required" in columns
        if self._above.is_about_login():
            cells = [columns.cell(row, "description") for row in rows]
            self._builder.add_permissions(
                [scope for cell in cells for scope in scopes_of_facts("", cell)]
            )
            names = {text_of(columns.cell(row, "name")).lower() for row in rows}
            if names == {"authorization"} or not is_described:
                return False  # the credentials that every call needs
        is_parameter_list = (
            is_announced and has_described_names(columns) and not self._above.is_about_values()
        )
        if is_parameter_table(columns) or is_parameter_list:
            if self._is_resource(columns, role):
                role = "response"
            location = location_of_column(columns) or self._above.location(role)
            is_required = self._above.says_required()
            found = parameters(rows, columns, location, is_required=is_required)
            return self._builder.add_parameters(found, role, columns, table_name(header))
        has_only_names = len(header) == 1 and "name" in columns
        if is_announced and (not columns.at or has_only_names):
            return self._add_rows_of_text(header, rows, role)
        return False

    def _is_resource(self, columns: Columns, role: Role) -> bool:
        """Return whether a table lists the fields of the resource that a `GET` operation returns."""
        may_return_resource = self._builder.operation.method == "GET" and role in ("request", "")
        texts = self._above.texts()
        is_object = any(map(_OBJECT_TITLE.search, texts[:1]))
        is_sent = "location" in columns or (
            not is_object and ("required" in columns or "optional" in columns)
        )
        names_fields = _FIELD_COLUMN.fullmatch(columns.title("name")) is not None
        is_below_operation_heading = len(texts) < 2
        return (
            may_return_resource
            and names_fields
            and not is_sent
            and not is_below_operation_heading
            and self._above.is_about_fields()
        )

    def _add_rows_of_text(self, header: Sequence[str], rows: TableRows, role: Role) -> bool:
        """Add the parameters of rows with a name and a text such as "string, required. The name.".

        The name and the text may be in one cell. In a table with one column, the header is only a title. In
        a table with several columns, a header that is not empty is read as the first row.
        """
        table = [header, *rows] if any(header) else rows
        if not table:
            return False
        listed = table
        if len(header) == 1:
            listed = [row for row in rows if row]
            items = [f"- {row[0]}" for row in listed]
        elif all(len(row) > 1 and _NAME_CELL.fullmatch(text_of(row[0])) for row in table):
            items = [
                _NAME_CELL.sub(r"- `\1` \2 ", text_of(row[0])) + " ".join(row[1:]) for row in table
            ]
        else:
            return False
        found = listed_parameters(
            "\n".join(items),
            self._above.location(role),
            is_named=all(row[0].startswith("`") for row in listed),
            is_required=self._above.says_required(),
        )
        return self._builder.add_parameters(found, role, Columns({}), table_name(table[0]))

    def _read_fact_table(self, rows: TableRows) -> bool:
        """Add the permissions in a table of facts such as URL and method. Return False for other tables."""
        if len(rows) == 2 and len(rows[0]) > 2:
            rows = list(zip(*rows, strict=False))  # the labels are in the header
        labels = [text_of(row[0]) for row in rows if row]
        values = ["\n".join(row[1:]) for row in rows if row]
        is_untitled = not any(rows[0])  # all rows are facts
        is_stated = is_untitled and any(map(is_scope_label, labels))
        if not (is_stated or any(map(is_fact_label, labels)) or any(map(is_call, values))):
            return False
        for label, value in zip(labels, values, strict=True):
            self._builder.add_permissions(scopes_of_facts(label, value))
        return True


def _has_error_codes(columns: Columns, role: Role) -> bool:
    """Return whether a table in a section with this role lists error codes."""
    return is_error_table(columns) or (role == "errors" and "code" in columns)


def _lists_statuses(rows: TableRows, columns: Columns, role: Role) -> bool:
    """Return whether a table in a section with this role lists HTTP statuses.

    A column of numbers such as 404 contains statuses, even in a section that is not about errors or
    responses.
    """
    is_about_statuses = role in ("errors", "response")
    if not is_about_statuses and are_statuses(rows, columns, "http_status"):
        role = ""
    return is_status_table(columns, role) and has_statuses(rows, columns)


def _is_enumeration(rows: TableRows, columns: Columns) -> bool:
    """Return whether a table lists constants, such as `COLOR_RED`, with different numbers."""
    if "values" not in columns or is_parameter_table(columns):
        return False
    names = (text_of(columns.cell(row, "name")) for row in rows)
    values = [text_of(columns.cell(row, "values")) for row in rows]
    are_distinct = len(set(values)) == len(values) > 1
    return (
        are_distinct
        and all(map(_CONSTANT.fullmatch, names))
        and all(map(_NUMBER.fullmatch, values))
    )


def _with_codes(columns: Columns, rows: TableRows, role: Role) -> Columns:
    """Return the columns, with codes and statuses recognised by the role of the section and by the cells.

    For example, in a section of errors, a column "Type" may contain codes such as `not_found`, or statuses
    such as `404`, and a column of names or values may contain codes. In a section of responses, a column
    "Name" may contain statuses.
    """
    if role == "errors":
        types = [text_of(columns.cell(row, "type")) for row in rows]
        are_codes = any(types) and all(map(_TYPE_CODE.fullmatch, types))
        if "http_status" in columns and "code" not in columns and are_codes:
            return columns.renamed("type", "code")
        if types and all(map(is_error_status, types)) and "name" in columns:
            return columns.renamed("type", "http_status").renamed("name", "code")
        are_fields = any(types) or _FIELD_COLUMN.fullmatch(columns.title("name"))
        if "code" not in columns and not are_fields:
            return columns.renamed("name" if "name" in columns else "values", "code")
    if role == "response" and "http_status" not in columns:
        key = "code" if "code" in columns else "name"
        return columns.renamed(key, "http_status") if are_statuses(rows, columns, key) else columns
    return columns


# --- parameters -----------------------------------------------------------------------------------

_REQUIRED_IN_TYPE = re.compile(r"\brequired\b|必填|必选", re.IGNORECASE)
_REQUIRED_IN_NAME = re.compile(
    r"(?:[\s(（\[]*(?:\brequired\b|\bmandatory\b|必填|必选|必传)[)）\]]*|(?<=\w)\s*\*+\s*$|^\s*\*\s*(?=\w))",
    re.IGNORECASE,
)
_OPTIONAL_IN_NAME = re.compile(
    r"[\s(（\[]*(?:\boptional\b|可选|选填|非必填)[)）\]]*|(?<=[\w\]])\?(?=[\\*\s]*$)", re.IGNORECASE
)
_PARAMETER_COLUMNS = (
    "name",
    "type",
    "required",
    "description",
    "default",
    "example",
    "values",
    "location",
)
"""The kinds of columns whose cells have a place of their own in a Parameter or its description.

The texts of all other columns are added to the description after their titles, except yes and no in a
column such as "Optional".
"""
_NO_MARKS = ("name", "default", "example", "values")
"""The kinds of columns in which `_stated_requirement` does not look for marks such as "required".

`_names_of` looks for the marks in names.
"""
_ENTITY = re.compile(r"&(?:nbsp|emsp|ensp|gt|#160);")
_INDENT = re.compile(rf"^(?:\s|{_ENTITY.pattern}|[└├│─┗┣╰∟↳»›>＞|·•▸\-–—+]|\.(?=[.\s]*\w))+")
_NAME_SEPARATOR = re.compile(r"\s+[/|]\s+|\s*[,，、]\s*")
_OBJECT_TITLE = re.compile(
    r"^(?!.*(?:filter|query|search|request|input|param|查询|请求|参数)).*"
    r"(?:\b(?:object|model|resource)\W*|对象|实体)$",
    re.IGNORECASE,
)
"""A heading above the fields of a resource, such as "The order object"."""
_NESTING = re.compile(r"(?<=[\w\]])(?:>{1,2}|->|=>|»|→)(?=[A-Za-z_$@])")
"""The separator of a nested name: `data>>id`, `data->id`."""
_SEVERAL_NAMES = re.compile(
    rf"[A-Za-z_]\w*(?:\.\w+)*(?:(?:{_NAME_SEPARATOR.pattern})[A-Za-z_]\w*(?:\.\w+)*)+"
)
_WORDS = re.compile(r"[A-Za-z]+(?: [A-Za-z]+){2,}")
"""A text in place of a name, which refers to fields described elsewhere: "all fields of Create"."""
_NOTHING = re.compile(r"无|none|n/?a|nil", re.IGNORECASE)
"""The text that a table contains instead of a name if the operation has no parameters."""
_VALUE = re.compile(r"`([^`]{1,60})`\s*[:：=\-–—]?\s*([^`;；,，|]*)")


def parameters(
    rows: TableRows, columns: Columns, location: str = "", *, is_required: bool | None = None
) -> tuple[Parameter, ...]:
    """Return the parameters of a table. Indented rows become children of the row above them.

    Rows without a name are left out. `location` is the location of each parameter whose row states none.

    `is_required` is True if a text above the table announces required parameters, False for optional ones,
    and None if no text says either. `_default` decides for the rows that do not say whether their
    parameters are required.
    """
    flat: list[tuple[int, Parameter]] = []
    for row in rows:
        width, names, mark = _names_of(columns.cell(row, "name"))
        stated = _stated_requirement(row, columns, mark) if names else None
        flat += [(width, _parameter(row, columns, name, stated, location)) for name in names]
    default = _default([each.required for _, each in flat], columns, is_required)
    return tuple(_unwrap_bodies(nest(fill_required(flat, default))))


def _default(
    states: Sequence[Requirement], columns: Columns, is_required: bool | None
) -> bool | None:
    """Return the `required` of the parameters whose rows do not state it; None if it is unknown.

    `states` contains the `required` of all parameters. In a column such as "Required", an empty cell means
    no if the other cells say yes. In a table without this column, the text above the table decides
    (`is_required`). Without such a text, or with a column such as "Optional", the other rows decide (see
    `by_contrast`).
    """
    contrast = by_contrast(states)
    if "required" in columns:
        return False if contrast is False else None  # an empty cell means no
    return contrast if is_required is None or "optional" in columns else is_required


def _unwrap_bodies(found: Sequence[Parameter]) -> Iterator[Parameter]:
    """Yield the parameters. A row for the whole body (`body`, `anonymous`) is replaced by its children."""
    for parameter in found:
        is_body = parameter.name == "body" and parameter.location == "body"
        if parameter.children and (is_body or parameter.name == "anonymous"):
            yield from parameter.children
        else:
            yield parameter


def _stated_requirement(row: Sequence[str], columns: Columns, mark: bool | None) -> Requirement:
    """Return whether a row states that its parameter is required; None if the row does not say.

    A condition in a column such as "Required" is returned as text. `mark` is the mark in the cell with the
    name.
    """
    if "required" in columns:
        return required_cell(columns.cell(row, "required"))
    if "optional" in columns:
        cell = columns.cell(row, "optional")
        # The cell may say "required" or "optional" instead of "no" or "yes".
        if (stated := required_mark(text_of(cell))) is not None:
            return stated
        is_optional = required_cell(cell)
        return not is_optional if isinstance(is_optional, bool) else None
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
    if placeholder := _PLACEHOLDER.fullmatch(cell):
        cell = placeholder[1]
    width, rest = _split_indentation(cell)
    mark: bool | None = None
    if _REQUIRED_IN_NAME.search(rest):
        mark = True
    elif _OPTIONAL_IN_NAME.search(rest):
        mark = False
    unmarked = _OPTIONAL_IN_NAME.sub("", _REQUIRED_IN_NAME.sub("", rest))
    text = _plain_name(unmarked) or text_of(rest)  # a field may have the name `required`
    text = text.removeprefix("[].")
    if _NOTHING.fullmatch(text) or (_WORDS.fullmatch(text) and "`" not in cell):
        return width, [], mark
    if _SEVERAL_NAMES.fullmatch(text):
        first, *others = _NAME_SEPARATOR.split(text)
        prefix = first[: first.rfind(".") + 1]
        return width, [first, *(n if "." in n else prefix + n for n in others)], mark
    found = NAME.match(text)
    return width, [name] if found and (name := found[0].rstrip(".:")) else [], mark


def _split_indentation(cell: str) -> tuple[int, str]:
    """Return the indentation of a cell in characters, and the text after it.

    Only the first line of the cell is read. Tags and the marks of bold text and code are removed.
    `data>>id` becomes `data.id`.
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
    rest = re.sub(r"\s{2,}", " ", rest)
    return width, _NESTING.sub(".", rest.replace("**", "").replace("~~", "").replace("`", ""))


def _plain_name(text: str) -> str:
    """Return `text` without markup; a leading underscore, as in `_id`, is kept."""
    name = text.strip()
    is_emphasis = name.startswith("_") and name.endswith("_")
    return name if NAME.fullmatch(name) and not is_emphasis else text_of(name)


def _width(indent: str) -> int:
    return len(_ENTITY.sub(" ", indent))


def _parameter(
    row: Sequence[str], columns: Columns, name: str, required: Requirement, location: str
) -> Parameter:
    """Return the parameter `name` of a row. `location` is used if the row states no location."""
    type_text = text_of(columns.cell(row, "type"))
    about, fields = split_fields(columns.cell(row, "description"), type_text)
    description = without_final_mark(description_of(about))
    type_text = re.sub(
        r"[,，;；(（]?\s*(?:\brequired\b|\boptional\b|必填|必选|可选|选填)[)）]?",
        "",
        type_text,
        flags=re.IGNORECASE,
    ).strip(" ,，;-–—")
    read = {
        index
        for column, index in columns.at.items()
        if column in _PARAMETER_COLUMNS
        or (column == "optional" and not isinstance(required_cell(columns.cell(row, column)), str))
    }
    names = columns.further_names(row)
    texts = columns.further_texts(row, read | names.keys())
    distinct = (text for text in names.values() if not description.startswith(text))
    description = join_texts([*distinct, description, *texts])
    if default := text_of(columns.cell(row, "default")).strip("-–—/ "):
        description = _with_default(description, columns.title("default"), default)
    return Parameter(
        name=name,
        type=type_text,
        required=required,
        description=description,
        example=text_of(columns.cell(row, "example")).strip("-–—"),
        values=_values(columns.cell(row, "values")),
        dimensions=dimensions_of(type_text),
        location=text_of(columns.cell(row, "location")) or location,
        children=fields,
    )


def _with_default(description: str, title: str, default: str) -> str:
    """Add a default value to a description. `title` is the title of its column."""
    if has_chinese(title):
        return join_texts([description, label_with(title, default)], " ")
    return f"{description} (default: {default})".strip()


def _values(cell: str) -> tuple[AllowedValue, ...]:
    """Return the values in a cell: its code spans with their meanings.

    Without code spans, the values are the parts between separators such as commas.
    """
    if not cell.strip(" -–—/"):
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
