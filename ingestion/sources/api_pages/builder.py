"""Collects the parameters, error codes and permissions of an API operation.

`PageOperation.evidence` records how each table and list was read.
"""

from collections.abc import Sequence
from dataclasses import replace

from ingestion.sources.api_pages.columns import Columns, text_of
from ingestion.sources.api_pages.errors import is_error_status, with_status
from ingestion.sources.api_pages.operation import PARAMETER_ROLES, PageOperation, Role
from ingestion.sources.api_pages.parameters import is_simple_type, nest
from ingestion.sources.api_pages.roles import Announcements
from ingestion.sources.api_pages.structures import ParameterTable
from schemas.document import ErrorCode, Parameter, PermissionPackage


def table_name(header: Sequence[str]) -> str:
    """Return the name that the evidence uses for a table: `table [Name | Type]`."""
    return f"table [{' | '.join(filter(None, map(text_of, header)))}]"


class OperationBuilder:
    """Adds permissions, error codes and evidence to an operation, and collects its tables of parameters."""

    def __init__(self, operation: PageOperation) -> None:
        self.operation = operation
        self.above = Announcements()
        """The headings and labels above the current block."""
        self.tables: list[ParameterTable] = []
        self.position = 0
        """Index of the current block on the page."""
        self.read_positions: list[int] = []
        """Indexes on the page of the blocks from which parameters or error codes were read."""
        self._status: ErrorCode | None = None
        """The error that the last heading or bold title states, if its code is an HTTP status."""
        self._error_title = (-1, "")
        """The last title of an error: the index of its block on the page, and the error code in it."""

    def add_permissions(self, found: Sequence[PermissionPackage]) -> bool:
        """Add permissions that the operation does not have yet. Return False if `found` is empty."""
        known = {scope.name for scope in self.operation.permissions}
        for scope in found:
            if scope.name not in known:
                known.add(scope.name)
                self.operation.permissions.append(scope)
        return bool(found)

    def add_errors(self, found: Sequence[ErrorCode], block: str) -> bool:
        """Add error codes. `block` is the block's name in the evidence. Return False if `found` is empty.

        The errors may be below a title such as "404 Not Found", from which an error was read. They replace
        this error if one of their codes is `404`, or if none of their codes is an HTTP status, as in a list
        of `not_found` and `40401`. In the second case, their messages also get the status of the title:
        "No such order (HTTP 404)".
        """
        if not found:
            return False
        if status := self._status:
            codes = [error.code for error in found]
            has_status = any(map(is_error_status, codes))
            errors = self.operation.error_codes
            is_replaced = not has_status or status.code in codes
            if is_replaced and errors and errors[-1] is status:
                errors.pop()  # read from the title
            if not has_status:
                found = [
                    error.model_copy(update={"message": with_status(error.message, status.code)})
                    for error in found
                ]
        self.operation.error_codes += found
        self.read_positions.append(self.position)
        self.add_evidence(block, f"{len(found)} error codes")
        return True

    def note_status(self, error: ErrorCode | None) -> None:
        """Remember the error in the current title if its code is an HTTP status, such as `404`.

        Any other error, or None, clears the status.
        """
        self._status = error if error and is_error_status(error.code) else None

    def note_error_title(self, code: str) -> None:
        """Remember that the current block is the title of the error `code`."""
        self._error_title = (self.position, code)

    def describe_error(self, found: Sequence[ErrorCode]) -> bool:
        """Add the error whose title is right above the current block, with the message of the block.

        `found` contains the errors that were read from the block. For example, the title is
        "order_not_found", and the block is "404: No such order". The status becomes part of the message.
        Return False if the block does not describe such an error.
        """
        title_at, code = self._error_title
        if not code or title_at != self.position - 1 or len(found) != 1:
            return False
        has_same_code = found[0].code == code
        if not (has_same_code or is_error_status(found[0].code)):
            return False
        errors = self.operation.error_codes
        if errors and errors[-1].code == code:
            errors.pop()  # read from the title
        message = with_status(found[0].message, "" if has_same_code else found[0].code)
        return self.add_errors([ErrorCode(code=code, message=message)], "title")

    def add_parameters(
        self, found: Sequence[Parameter], role: Role, columns: Columns, block: str
    ) -> bool:
        """Add a table or list of parameters with `role`. `block` is the block's name in the evidence.

        Return False if `found` is empty.
        """
        if not found:
            return False
        is_list = not columns.at
        states_required = "required" in columns or "optional" in columns
        is_marked = states_required or any(parameter.required for parameter in found)
        if role in PARAMETER_ROLES and (is_list or is_marked):
            self.operation.has_labelled_parameters = True
        table = ParameterTable(
            parameters=tuple(found),
            role=role,
            texts=tuple(self.above.texts()),
            has_types="type" in columns or is_list,
            position=self.position,
        )
        self.add_table(table, block)
        return True

    def add_table(self, table: ParameterTable, block: str) -> None:
        """Add a table of parameters. `block` is the name of its block in the evidence."""
        self.tables.append(table)
        self.read_positions.append(table.position)
        self.add_evidence(block, f"{len(table.parameters)} {table.role or 'request'} parameters")

    def add_children(self, found: Sequence[Parameter]) -> bool:
        """Add `found` to the children of the last parameter.

        Return False if that is not possible, for example because the last parameter is a string.
        """
        if not found or not self.tables:
            return False
        *others, last = self.tables[-1].parameters
        if is_simple_type(last.type):
            return False
        nested = nest([(0, last), *((1, child) for child in found)])
        self.tables[-1] = replace(self.tables[-1], parameters=(*others, *nested))
        return True

    def add_evidence(self, block: str, what: str) -> None:
        """Add to the evidence that `block`, such as "list", was read as `what`, such as "3 error codes"."""
        under = next((f" under {text!r}" for text in self.above.texts()), "")
        self.operation.evidence.append(f"{block}{under}: {what}")
