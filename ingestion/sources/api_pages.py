"""Reads API operations from a Markdown page, recognised by its content.

A page describes an operation if it gives a method with a URL (see `api_marks`), and a table or list of
parameters, responses or errors. All other blocks stay prose. Operations are named by
headings.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingestion.sources.api_columns import text_of
from ingestion.sources.api_facts import scopes_of_sentences
from ingestion.sources.api_marks import (
    CALL,
    METHODS,
    Mark,
    find_marks,
    path_names,
    path_of,
    split_by_mark,
)
from ingestion.sources.api_operation import PageOperation
from ingestion.sources.api_reader import OperationReader
from ingestion.sources.api_structures import ParameterTable, add_parameters, normal_name
from ingestion.text.markdown_blocks import MarkdownBlock, parse_blocks
from schemas.api_document import Parameter

MAX_NAME_CHARS = 80
_QUOTE = re.compile(r"^> ?", re.MULTILINE)

@dataclass(frozen=True)
class ApiPage:
    """The operations of a page and its remaining blocks."""

    operations: tuple[PageOperation, ...]
    prose: tuple[MarkdownBlock, ...]
    rejected: tuple[PageOperation, ...] = ()
    """Calls that are not operations, because they lack the tables or lists of one."""


def read_operations(blocks: Sequence[MarkdownBlock], title: str, declared: str = "") -> ApiPage:
    """Return the operations that the blocks of a page describe.

    `title` is the page's title; `declared` is the operation that its front matter names, such as
    `POST /v1/messages`.
    """
    blocks = list(_unquoted(blocks))
    ranges = split_by_mark(blocks, find_marks(blocks, declared))
    read = [_read_operation(blocks, *found, title, len(ranges) == 1) for found in ranges]
    add_parameters(read, _tables_around(blocks, ranges))
    _add_shared_permissions(blocks, ranges, [operation for operation, _ in read])
    operations: list[PageOperation] = []
    rejected: list[PageOperation] = []
    prose: list[MarkdownBlock] = []
    done = 0
    is_reference = any(
        _is_evident(mark, own) for (mark, *_), (own, _) in zip(ranges, read, strict=True)
    )
    for (mark, start, end), (operation, _) in zip(ranges, read, strict=True):
        is_section = is_reference and mark.is_stated and blocks[start].kind == "heading"
        if is_section or _is_evident(mark, operation):
            _add_path_parameters(operation)
            operations.append(operation)
            prose += blocks[done:start]
            done = end
        else:
            rejected.append(operation)
    return ApiPage(tuple(operations), (*prose, *blocks[done:]), tuple(rejected))


def _unquoted(blocks: Sequence[MarkdownBlock]) -> Iterator[MarkdownBlock]:
    """Yield the blocks. Replace a quotation that contains a table with the blocks in it."""
    for block in blocks:
        is_quote = block.kind == "other" and block.text.startswith(">") and "|" in block.text
        inner = parse_blocks(_QUOTE.sub("", block.text)) if is_quote else []
        yield from inner if any(b.kind == "table" for b in inner) else [block]


def _read_operation(
    blocks: Sequence[MarkdownBlock], mark: Mark, start: int, end: int, title: str, is_only: bool
) -> tuple[PageOperation, list[ParameterTable]]:
    """Read the operation in a range of blocks. `is_only` says that the page has no other one."""
    section = blocks[start:end]
    if is_only:
        name = page_operation_name(mark, section, title)
    else:
        has_heading = any(block.kind == "heading" for block in blocks[: mark.block + 1])
        own_title = "" if has_heading else title
        name = section_operation_name(mark, section, mark.block - start, own_title)
    operation = PageOperation(mark.method, mark.url, name, is_stated=mark.is_stated)
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


def _add_shared_permissions(
    blocks: Sequence[MarkdownBlock],
    ranges: Sequence[tuple[Mark, int, int]],
    operations: Sequence[PageOperation],
) -> None:
    """Add what the text before the first operation requires to operations that state nothing."""
    above = blocks[: ranges[0][1]] if ranges else ()
    texts = [block.text for block in above if block.kind == "paragraph"]
    shared = [scope for text in texts for scope in scopes_of_sentences(text)]
    for operation in operations:
        operation.permissions = operation.permissions or list(shared)


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
    """Add the placeholders of the URL that no table describes; all placeholders are required.

    Generated clients write `letter_id` for the placeholder `{letterId}`.
    """
    names = {normal_name(name): name for name in path_names(operation.url) if name}
    operation.request_parameters = [
        parameter.model_copy(update={"required": True})
        if normal_name(parameter.name) in names
        else parameter
        for parameter in operation.request_parameters
    ]
    described = {normal_name(parameter.name) for parameter in operation.request_parameters}
    count = sum(parameter.location == "path" for parameter in operation.request_parameters)
    if count < len(names):
        operation.request_parameters[:0] = [
            Parameter(name=name, type="string", required=True, location="path")
            for normal, name in names.items()
            if normal not in described
        ]
