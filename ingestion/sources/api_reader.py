"""Reads the tables, lists and labelled lines of one API operation; its other blocks stay prose."""

import re
from collections.abc import Iterable, Sequence

from ingestion.sources.api_calls import MAX_CAPTION_CHARS
from ingestion.sources.api_columns import (
    Columns,
    TableRows,
    columns_of,
    is_error_table,
    is_named_values,
    is_parameter_table,
    is_status_table,
    text_of,
)
from ingestion.sources.api_facts import (
    MAX_PERMISSIONS,
    are_status_items,
    are_statuses,
    errors_of_rows,
    has_statuses,
    is_scope_label,
    listed_errors,
    scopes_in,
    scopes_of_facts,
    scopes_of_rows,
    scopes_of_sentences,
    scopes_of_value,
    stated_errors,
    titled_error,
)
from ingestion.sources.api_lists import enumerated_parameters, listed_parameters
from ingestion.sources.api_marks import is_call, is_fact_label, labelled_pairs
from ingestion.sources.api_operation import PageOperation, Role
from ingestion.sources.api_roles import (
    Announcements,
    location_of,
    location_of_column,
    role_of_column,
    role_of_title,
)
from ingestion.sources.api_structures import ParameterTable
from ingestion.sources.api_tables import parameters
from ingestion.text.markdown_blocks import MarkdownBlock, parse_list_items, parse_table
from schemas.api_document import ErrorCode, Parameter, PermissionPackage

_BOLD_TITLE = re.compile(r"\*\*([^*\n]{1,80})\*\*(?=\s|$)")
_NAME_CELL = re.compile(r"([A-Za-z_$@][\w.$@\[\]{}-]*)\s*((?i:required|optional|必填|可选)?)")
_FIELD_COLUMN = re.compile(
    r"字段名?称?|属性名?|(?:field|attribute|property)(?: name)?s?", re.IGNORECASE
)
"""Titles of columns that contain the names of an object's fields."""
_LABELLED_NAMES = re.compile(r"(?:(?P<label>[^`:：\n]{1,24})[:：]\s*)?(?P<names>`.*)", re.DOTALL)
"""Names in code, possibly after a label such as "Query:"."""
_TYPE_CODE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)+")
"""An error code in a column titled "Type", such as `not_found`."""
_DEFINITION = re.compile(r"^: +(?=[`*])", re.MULTILINE)
"""The mark of a definition in Markdown dialects that have definition lists."""
_PARAMETER_ROLES: tuple[Role, ...] = ("headers", "public", "request", "response")


class OperationReader:
    """Reads the blocks of an operation. Returns parameters, and adds everything else to the operation."""

    def __init__(self, operation: PageOperation) -> None:
        self._tables: list[ParameterTable] = []
        self._operation = operation
        self._above = Announcements()
        self._position = 0
        self.parts: list[int] = []
        """Indexes of the blocks from which parameters or error codes were read."""

    def read(self, blocks: Sequence[MarkdownBlock], first: int) -> list[ParameterTable]:
        """Read `blocks`, and return the tables and lists of parameters that have been found so far.

        `first` is the index of the first block on the page.
        """
        for self._position, block in enumerate(blocks, first):
            if block.kind == "heading":
                self._above.enter(block.level, block.title)
                self._add_titled_error(block.title)
            elif self._add_table_or_list(block):
                self._above.end_announcement()
                continue
            elif self._add_described_error(block):
                pass  # the label above it announces the next error, too
            elif block.kind == "paragraph" and self._add_paragraph(block):
                self._above.end_announcement()
            elif block.kind in ("paragraph", "list", "other"):
                self._read_text(block)
            self._operation.prose.append(block)
        self._operation.prose = _without_empty_headings(self._operation.prose)
        return self._tables

    def _read_text(self, block: MarkdownBlock) -> None:
        """Note a label for the next block, and the permissions that lines and sentences name."""
        text = text_of(block.text)
        is_permission = self._above.role() == "permissions"
        is_sentence = text.endswith((".", "。", "!", "！")) or re.search(r"[:：]\s*\S", text)
        stated = scopes_of_sentences(block.text)
        is_short = block.kind == "paragraph" and len(text) <= MAX_CAPTION_CHARS
        pairs = labelled_pairs(block)
        labelled = [(k, v) for k, v in pairs if is_scope_label(k)]
        errors = [e for k, v in pairs if role_of_title(k) == "errors" for e in stated_errors(v)]
        self._add_errors(errors, ["paragraph"])
        is_label = is_short and not (is_sentence or stated or labelled)  # not "Scope `a:b`"
        self._above.note_label(text if is_label else "")
        if labelled:
            self._add_permissions([scope for _, v in labelled for scope in scopes_of_value(v)])
        elif is_permission:
            self._add_permissions(scopes_of_value(block.text))
        elif self._above.is_about_login():
            self._add_permissions(scopes_of_facts("", block.text) or stated)
        else:
            self._add_permissions(stated)

    def _add_permissions(self, found: Sequence[PermissionPackage]) -> bool:
        known = {scope.name for scope in self._operation.permissions}
        self._operation.permissions += [scope for scope in found if scope.name not in known]
        return bool(found)

    def _add_table_or_list(self, block: MarkdownBlock) -> bool:
        """Read a table or list. Return False if it stays prose, or if the block is something else."""
        if block.kind == "list":
            return self._add_list(block)
        rows = parse_table(block.text) if block.kind == "table" else []
        is_added = bool(rows) and self._add_table(rows[0], rows[1:])
        if rows and not is_added:
            self._note(rows[0], "stays prose")
        return is_added

    def _note(self, header: Sequence[str], what: str) -> None:
        """Add to the evidence how a table, list or paragraph was read."""
        title = " | ".join(filter(None, map(text_of, header)))
        under = next((f" under {text!r}" for text in self._above.texts()), "")
        self._operation.evidence.append(f"table [{title}]{under}: {what}")

    def _add_table(self, header: Sequence[str], rows: TableRows) -> bool:
        """Add what a table states. Return False if the table is to stay prose."""
        role = self._above.role()
        columns = _with_codes(columns_of(header, rows), rows, role)
        is_codes = is_error_table(columns) or (role == "errors" and "code" in columns)
        announces_statuses = role in ("errors", "response")
        is_unannounced = not announces_statuses and are_statuses(rows, columns, "http_status")
        is_statuses = is_status_table(columns, "" if is_unannounced else role)
        is_statuses = is_statuses and has_statuses(rows, columns)
        if is_codes or is_statuses:
            found = errors_of_rows(rows, header, columns)
            self._add_errors(found, header)
            return bool(found) and len(found) == len(rows)
        if role == "permissions" and self._add_permissions(scopes_of_rows(rows)):
            self._note(header, "permissions")
            return True
        if not is_parameter_table(columns) and self._read_fact_table([header, *rows]):
            return False
        if "scope" in columns and not is_parameter_table(columns):
            cells = [columns.cell(row, "scope") for row in rows]
            if len(rows) <= MAX_PERMISSIONS:
                self._add_permissions([scope for cell in cells for scope in scopes_of_value(cell)])
            return False
        return self._add_parameter_table(
            header, rows, columns, role_of_column(header, columns) or role
        )

    def _add_parameter_table(
        self, header: Sequence[str], rows: TableRows, columns: Columns, role: Role
    ) -> bool:
        if role == "errors":
            return False  # the fields of an error response
        is_announced = role in _PARAMETER_ROLES
        is_described = "description" in columns or "required" in columns
        if self._above.is_about_login():
            cells = [columns.cell(row, "description") for row in rows]
            self._add_permissions([scope for cell in cells for scope in scopes_of_facts("", cell)])
            names = {text_of(columns.cell(row, "name")).lower() for row in rows}
            if names == {"authorization"} or not is_described:
                return False  # the credentials that every call needs
        is_list = is_announced and is_named_values(columns) and not self._above.is_about_values()
        if is_parameter_table(columns) or is_list:
            if self._is_resource(header, columns, role):
                role = "response"
            location = location_of_column(header, columns) or self._above.location(role)
            found = parameters(rows, columns, location)
            return self._add_parameters(found, role, columns, header)
        if is_announced and not columns.at:
            return self._add_rows_of_text([header, *rows], role)
        return False

    def _is_resource(self, header: Sequence[str], columns: Columns, role: Role) -> bool:
        """Return whether a table lists the fields of the resource that a `GET` operation returns."""
        is_read = self._operation.method == "GET" and role in ("request", "")
        states_sending = any(kind in columns for kind in ("required", "optional", "location"))
        is_fields = _FIELD_COLUMN.fullmatch(text_of(columns.cell(header, "name"))) is not None
        is_first = len(self._above.texts()) < 2  # right below the heading of the operation
        return (
            is_read
            and is_fields
            and not states_sending
            and not is_first
            and self._above.is_about_fields()
        )

    def _add_rows_of_text(self, rows: TableRows, role: Role) -> bool:
        """Read a table whose rows are a name and a text such as "string, required. The name."."""
        if len(rows[0]) == 1:
            items = [f"- {row[0]}" for row in rows[1:] if row]
        elif all(len(row) > 1 and _NAME_CELL.fullmatch(text_of(row[0])) for row in rows):
            items = [
                _NAME_CELL.sub(r"- `\1` \2 ", text_of(row[0])) + " ".join(row[1:]) for row in rows
            ]
        else:
            return False
        found = listed_parameters("\n".join(items), self._above.location(role))
        return self._add_parameters(found, role, Columns({}), rows[0])

    def _add_titled_error(self, title: str, about: str = "") -> bool:
        """Add the error in a heading or bold title such as "404 — order_not_found", if there is one.

        `about` is the text after a bold title.
        """
        role = self._above.role()
        is_status = role in ("response", "") and are_status_items([title])
        text = f"{title} – {about}" if about else title
        found = titled_error(text) if role == "errors" or is_status else None
        return self._add_errors([found] if found else [], ["title"])

    def _add_described_error(self, block: MarkdownBlock) -> bool:
        """Add the error in a paragraph such as "**404 — order_not_found** No such order."."""
        title = _BOLD_TITLE.match(block.text) if block.kind == "paragraph" else None
        if title is None or not (about := text_of(block.text[title.end() :])):
            return False
        return self._add_titled_error(title[1], about)

    def _add_paragraph(self, block: MarkdownBlock) -> bool:
        """Add what a paragraph describes. The paragraph stays prose.

        Returns False if it describes nothing, or only an error in a bold title. It can describe a parameter
        ("**name** string Required"), the parameters in definitions of a term such as "Body", enumerated
        names ("Query: `limit`, `cursor`.") or an error.
        """
        if title := _BOLD_TITLE.match(block.text):
            self._add_titled_error(title[1])
        elif self._above.role() in ("errors", "response") and are_status_items([block.text]):
            return self._add_errors(listed_errors([block.text]), ["paragraph"])
        if match := _LABELLED_NAMES.match(block.text):
            location = (
                location_of(match["label"]) if match["label"] else self._above.announced_location()
            )
            if location and (found := enumerated_parameters(match["names"], location)):
                return self._add_parameters(found, "request", Columns({}), ["paragraph"])
        role = self._above.role()
        text, count = _DEFINITION.subn("- ", block.text)
        is_list = count > 0 and text.startswith("- ")
        if role not in _PARAMETER_ROLES or not (is_list or text.startswith(("**", "`"))):
            return False
        items = text if is_list else f"- {block.text}"
        found = listed_parameters(items, self._above.location(role))
        return self._add_parameters(found, role, Columns({}), ["paragraph"])

    def _read_fact_table(self, rows: TableRows) -> bool:
        """Add the permissions in a table that gives the URL or method. Return False for other tables."""
        if len(rows) == 2 and len(rows[0]) > 2:
            rows = list(zip(*rows, strict=False))  # the labels are in the header
        labels = [text_of(row[0]) for row in rows if row]
        values = ["\n".join(row[1:]) for row in rows if row]
        if not any(map(is_fact_label, labels)) and not any(map(is_call, values)):
            return False
        for label, value in zip(labels, values, strict=True):
            self._add_permissions(scopes_of_facts(label, value))
        return True

    def _add_errors(self, found: Sequence[ErrorCode], header: Sequence[str]) -> bool:
        self._operation.error_codes += found
        if found:
            self.parts.append(self._position)
            self._note(header, f"{len(found)} error codes")
        return bool(found)

    def _add_parameters(
        self, found: Sequence[Parameter], role: Role, columns: Columns, header: Sequence[str]
    ) -> bool:
        if not found:
            return False
        states_required = "required" in columns or "optional" in columns
        if not states_required and self._above.says_required():
            found = [parameter.model_copy(update={"required": True}) for parameter in found]
        says_required = states_required or any(parameter.required for parameter in found)
        is_labelled = says_required or not columns.at
        self._operation.has_labelled_parameters |= is_labelled and role in _PARAMETER_ROLES
        table = ParameterTable(
            parameters=tuple(found),
            role=role,
            texts=tuple(self._above.texts()),
            has_types="type" in columns or not columns.at,
            position=self._position,
        )
        self._tables.append(table)
        self.parts.append(self._position)
        self._note(header, f"{len(found)} {role or 'request'} parameters")
        return True

    def _add_list(self, block: MarkdownBlock) -> bool:
        """Add what a list states, by the text that announces it. Return False if it is to stay prose."""
        role, items = self._above.role(), parse_list_items(block.text)
        header = ["list"]
        if role == "permissions":
            return self._add_permissions(scopes_in(block.text))
        if role == "errors" or (role in ("response", "") and are_status_items(items)):
            return self._add_errors(listed_errors(items), header)
        location, is_announced = self._above.location(role), self._above.is_announced()
        found = listed_parameters(block.text, location, is_announced=is_announced) if role else ()
        return self._add_parameters(found, role, Columns({}), header)


def _with_codes(columns: Columns, rows: TableRows, role: Role) -> Columns:
    """Return the columns; the role of the section decides which column contains codes or HTTP statuses.

    In a section of errors without codes, the names or, if there are none, the values are codes. So are the
    types next to an HTTP status if they are identifiers such as `not_found`. In a section of responses,
    codes or names that are all HTTP statuses are read as statuses.
    """
    types = [text_of(columns.cell(row, "type")) for row in rows]
    if role == "errors" and "http_status" in columns and all(map(_TYPE_CODE.fullmatch, types)):
        return columns.renamed("type", "code")
    has_types = any(types)
    if role == "errors" and "code" not in columns and not has_types:
        return columns.renamed("name" if "name" in columns else "values", "code")
    if role == "response" and "http_status" not in columns:
        key = "code" if "code" in columns else "name"
        return columns.renamed(key, "http_status") if are_statuses(rows, columns, key) else columns
    return columns


def _without_empty_headings(blocks: Iterable[MarkdownBlock]) -> list[MarkdownBlock]:
    """Return the blocks without the headings of sections that are empty."""
    kept: list[MarkdownBlock] = []
    for block in reversed(list(blocks)):
        is_empty = not kept or (kept[-1].kind == "heading" and kept[-1].level <= block.level)
        if block.kind != "heading" or not is_empty:
            kept.append(block)
    return kept[::-1]
