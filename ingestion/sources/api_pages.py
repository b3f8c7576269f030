"""Reads API operations from a Markdown page, recognised by its content.

A page describes an operation if it gives a method with a URL (see `api_marks`), and a table or list of
parameters, responses or errors. All other blocks of the page stay prose.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ingestion.sources.api_marks import Mark, find_marks, path_names, split_by_mark
from ingestion.sources.api_names import page_operation_name, section_operation_name
from ingestion.sources.api_operation import PageOperation
from ingestion.sources.api_reader import OperationReader
from ingestion.sources.api_structures import ParameterTable, add_parameters
from ingestion.text.markdown_blocks import MarkdownBlock
from schemas.api_document import Parameter


@dataclass(frozen=True)
class ApiPage:
    """The operations of a page and its remaining blocks."""

    operations: tuple[PageOperation, ...]
    prose: tuple[MarkdownBlock, ...]
    rejected: tuple[PageOperation, ...] = ()
    """Calls without any table or list that would make them operations."""


def read_operations(blocks: Sequence[MarkdownBlock], title: str, declared: str = "") -> ApiPage:
    """Return the operations that the blocks of a page describe.

    `title` is the page's title; `declared` is the operation that its front matter names, such as
    `POST /v1/messages`.
    """
    ranges = split_by_mark(blocks, find_marks(blocks, declared))
    read = [_read_operation(blocks, *found, title if len(ranges) == 1 else "") for found in ranges]
    add_parameters(read, _tables_around(blocks, ranges))
    operations: list[PageOperation] = []
    rejected: list[PageOperation] = []
    prose: list[MarkdownBlock] = []
    done = 0
    for (mark, start, end), (operation, _) in zip(ranges, read, strict=True):
        if _is_evident(mark, operation):
            _add_path_parameters(operation)
            operations.append(operation)
            prose += blocks[done:start]
            done = end
        else:
            rejected.append(operation)
    return ApiPage(tuple(operations), (*prose, *blocks[done:]), tuple(rejected))


def _read_operation(
    blocks: Sequence[MarkdownBlock], mark: Mark, start: int, end: int, title: str
) -> tuple[PageOperation, list[ParameterTable]]:
    """Read the operation in a range of blocks; `title` is the page's if it is the only one."""
    section = blocks[start:end]
    name = (
        page_operation_name(mark, section, title)
        if title
        else section_operation_name(mark, section)
    )
    operation = PageOperation(mark.method, mark.url, name)
    how = "stated" if mark.is_stated else "called in an example"
    operation.evidence.append(f"{mark.method} {mark.url} is {how}")
    return operation, OperationReader(operation).read(section, start)


def _tables_around(
    blocks: Sequence[MarkdownBlock], ranges: Sequence[tuple[Mark, int, int]]
) -> list[ParameterTable]:
    """Return the tables of parameters outside the ranges of operations: structures that they share."""
    bounds = [0, *(bound for _, start, end in ranges for bound in (start, end)), len(blocks)]
    tables: list[ParameterTable] = []
    for start, end in zip(bounds[::2], bounds[1::2], strict=True) if ranges else ():
        # The operation only receives what is no table of parameters, and is dropped.
        reader = OperationReader(PageOperation("GET", "", ""))
        tables += reader.read(blocks[start:end], start)
    return tables


def _is_evident(mark: Mark, operation: PageOperation) -> bool:
    """A stated call needs any table of an API; an example needs parameters that are announced."""
    if mark.is_declared:
        return True
    if not mark.is_stated:
        return operation.has_labelled_parameters and bool(operation.request_parameters)
    return bool(
        operation.request_parameters
        or operation.public_parameters
        or operation.response_parameters
        or operation.error_codes
    )


def _add_path_parameters(operation: PageOperation) -> None:
    """Add the placeholders of the URL that no table describes; all placeholders are required."""
    names = path_names(operation.url)
    operation.request_parameters = [
        parameter.model_copy(update={"required": True}) if parameter.name in names else parameter
        for parameter in operation.request_parameters
    ]
    described = {parameter.name for parameter in operation.request_parameters}
    count = sum(parameter.location == "path" for parameter in operation.request_parameters)
    if count < len(names):
        operation.request_parameters[:0] = [
            Parameter(name=name, type="string", required=True, location="path")
            for name in names
            if name and name not in described
        ]
