"""Reads the API operations that a Markdown page describes.

A page describes an operation if it gives a method with a URL (see `located_calls`) and, for example, a
table of parameters (see `_is_evident`). Blocks that belong to no operation stay prose.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ingestion.sources.api_pages.actions import stated_action
from ingestion.sources.api_pages.calls import (
    CALL,
    METHOD_ALONE,
    example_call,
    is_json_example,
    is_label,
    may_have_calls,
    may_omit_method,
    path_names,
    split_origin,
)
from ingestion.sources.api_pages.columns import text_of
from ingestion.sources.api_pages.located_calls import LocatedCall, is_call, locate_calls
from ingestion.sources.api_pages.operation import PageOperation, listed_operations
from ingestion.sources.api_pages.operation_reader import OperationReader, is_title
from ingestion.sources.api_pages.permissions import scopes_of_sentences
from ingestion.sources.api_pages.roles import MAX_TITLE_CHARS, role_of_title
from ingestion.sources.api_pages.sections import (
    Range,
    after_group_headings,
    after_title,
    are_of_one_topic,
    headings_above,
    page_operation_name,
    section_operation_name,
    split_by_call,
)
from ingestion.sources.api_pages.structures import ParameterTable, assign_parameters, normal_name
from ingestion.sources.api_pages.templates import convert_templates
from ingestion.text.markdown_blocks import MarkdownBlock
from schemas.document import ErrorCode, Parameter, PermissionPackage

_STEP = re.compile(r"\W*(?:\d+\W+)?(?:step\b|步骤|第.{1,3}步)", re.IGNORECASE)
_QUERY_NAME = re.compile(r"[A-Za-z_][\w.\[\]-]*")
_QUERY_VALUE = re.compile(r"(?!(?:[xX]+|[A-Z_]+)\Z)(?=.*\w)[\w.,:@%/+-]+")
"""A value that is an example, unlike `...`, `xxx`, `TOKEN` and `{id}`."""
_OLD = re.compile(r"(?:old|previous|before|旧|之前)", re.IGNORECASE)
"""The start of a label above an outdated example, such as "Old response"."""


@dataclass(frozen=True)
class ApiPage:
    """The operations of a page and its remaining blocks."""

    operations: tuple[PageOperation, ...]
    prose: tuple[MarkdownBlock, ...]
    rejected: tuple[PageOperation, ...] = ()
    """Calls that are not read as operations, because the page does not describe them."""


@dataclass(frozen=True)
class _Section:
    """The blocks of an operation, and what was read from them."""

    located: LocatedCall
    start: int
    """Index of the first block."""
    end: int
    """Index after the last block."""
    operation: PageOperation
    tables: list[ParameterTable]
    """The tables and lists of parameters in the blocks."""


def read_operations(blocks: Sequence[MarkdownBlock], title: str, declared: str = "") -> ApiPage:
    """Return the operations that the blocks of a page describe.

    `title` is the title of the page. `declared` is the operation that the front matter of the page names,
    such as `POST /v1/messages`; empty if it names none.
    """
    has_calls = may_have_calls(blocks) or may_omit_method(blocks) or stated_action(blocks)
    if not (declared or has_calls):
        return ApiPage((), tuple(blocks))
    unchanged, blocks = blocks, convert_templates(blocks)
    sections = _read_sections(blocks, locate_calls(blocks, declared), title)
    accepted = _accepted(blocks, sections)
    rejected = [section.operation for section in sections if section not in accepted]
    if not accepted:
        return ApiPage((), tuple(unchanged), tuple(rejected))
    if rejected:
        # Read again: the blocks after a rejected call belong to the operation before it.
        accepted = _read_sections(blocks, [section.located for section in accepted], title)
    operations: list[PageOperation] = []
    prose: list[MarkdownBlock] = []
    done = 0
    for section in accepted:
        for position in _call_positions(blocks, section):
            _add_query_parameters(section.operation, blocks, position)
        operations += [
            section.operation,
            *listed_operations(section.operation, section.located.listed),
        ]
        prose += _prose(blocks, done, section.start)
        done = section.end
    for operation in operations:
        _drop_parts_of_url(operation)
        _add_path_parameters(operation)
    prose += _prose(blocks, done, len(blocks))
    return ApiPage(tuple(operations), tuple(prose), tuple(rejected))


def _prose(blocks: Sequence[MarkdownBlock], start: int, end: int) -> list[MarkdownBlock]:
    """Return the blocks from `start` to `end`, preceded by the headings of the sections that contain them.

    The blocks belong to no operation. The headings are repeated because an earlier operation may have taken
    them: "# Events" at the top of a page belongs to the first operation, but is also above the prose.
    """
    if start >= end:
        return []
    above = [blocks[index] for index in headings_above(blocks, start) if index < start]
    return [*above, *blocks[start:end]]


def _read_sections(
    blocks: Sequence[MarkdownBlock], located_calls: Sequence[LocatedCall], title: str
) -> list[_Section]:
    """Read the operation of each call from the blocks that belong to it.

    An operation without permissions gets those stated above the first operation. An operation without error
    codes gets those below the last operation.
    """
    if not located_calls:
        return []
    ranges = split_by_call(blocks, located_calls)
    sections = [_read_section(blocks, found, title, located_calls) for found in ranges]
    operations = [section.operation for section in sections]
    tables, errors, permissions = _read_around(blocks, ranges)
    assign_parameters([(section.operation, section.tables) for section in sections], tables)
    shared = _permissions_above(blocks, ranges) or permissions
    for operation in operations:
        operation.permissions = operation.permissions or list(shared)
        operation.error_codes = operation.error_codes or list(errors)
    return sections


def _accepted(blocks: Sequence[MarkdownBlock], sections: Sequence[_Section]) -> list[_Section]:
    """Return the sections that describe an operation.

    At least one section must be evident on its own (see `_is_evident`); otherwise, the result is empty. For
    the other sections, it is enough to be plausible (see `_is_plausible`).
    """
    evident = [_is_evident(blocks, section) for section in sections]
    if not any(evident):
        return []
    return [
        section
        for section, is_evident in zip(sections, evident, strict=True)
        if is_evident or _is_plausible(blocks, section)
    ]


def _read_section(
    blocks: Sequence[MarkdownBlock], found: Range, title: str, located_calls: Sequence[LocatedCall]
) -> _Section:
    """Read the operation of one call from its range of blocks, and name the operation."""
    located, start, end = found
    section = blocks[start:end]
    operation = PageOperation(
        located.call.method, located.call.url, "", is_stated=located.is_stated
    )
    how = "stated" if located.is_stated else "called in an example"
    if not (located.is_stated or example_call(blocks[located.block])):
        how = "stated without its method"
    operation.evidence.append(f"{located.call.method} {located.call.url} is {how}")
    reader = OperationReader(operation)
    tables = reader.read(section, start)
    if located.listed and located.listed[0].name:
        operation.name = located.listed[0].name
    elif (start, end) == (0, len(blocks)) and not located.listed:
        operation.name = page_operation_name(located, section, title, reader.read_positions)
    else:
        is_first = located is located_calls[0]
        contains_title = is_first and start < after_title(blocks)
        first = (
            located.block
            if contains_title
            else after_group_headings(blocks, start, located, located_calls)
        )
        operation.name = section_operation_name(
            located, blocks[first:end], located.block - first, title, is_first
        )
        headings = (block for block in blocks[first : located.block + 1] if block.kind == "heading")
        operation.anchor = next((block.anchor for block in headings), "")
    return _Section(located, start, end, operation, tables)


def _read_around(
    blocks: Sequence[MarkdownBlock], ranges: Sequence[Range]
) -> tuple[list[ParameterTable], list[ErrorCode], list[PermissionPackage]]:
    """Read the blocks outside the operations.

    Returns three lists:

    - The parameter tables. They may contain the fields of objects (see `structures`).
    - The error codes below the last operation.
    - The permission above the first operation. If there are several permissions, the list is empty, because
      they are then those of the whole platform.
    """
    bounds = [0, *(bound for _, start, end in ranges for bound in (start, end)), len(blocks)]
    tables: list[ParameterTable] = []
    errors: list[ErrorCode] = []
    permissions: list[PermissionPackage] = []
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        around = PageOperation("GET", "", "")
        tables += OperationReader(around).read(blocks[start:end], start)
        errors = around.error_codes
        if start == 0 and len(around.permissions) == 1:
            permissions = around.permissions
    return tables, errors, permissions


def _permissions_above(
    blocks: Sequence[MarkdownBlock], ranges: Sequence[Range]
) -> list[PermissionPackage]:
    """Return the permissions that sentences before the first operation state."""
    first_start = ranges[0][1]
    texts = [block.text for block in blocks[:first_start] if block.kind == "paragraph"]
    return [scope for text in texts for scope in scopes_of_sentences(text)]


def _is_evident(blocks: Sequence[MarkdownBlock], section: _Section) -> bool:
    """Return whether a section describes an operation, judged without the rest of the page.

    For example, the section contains parameters, error codes or a JSON example of a response.
    """
    located, operation = section.located, section.operation
    has_parameters = bool(operation.request_parameters or operation.response_parameters)
    if located.is_declared:
        return True
    if len(located.listed) > 1:
        # Without a table of parameters after it, a table of calls may list only rate limits.
        return any(table.position > located.block for table in section.tables)
    if not located.is_stated:
        has_labelled = operation.has_labelled_parameters and bool(operation.request_parameters)
        return has_labelled and _describes_example(blocks, section)
    own = blocks[section.start : section.end]
    if has_parameters or operation.public_parameters or operation.error_codes:
        return True
    if _has_example(own, located.block - section.start):
        return True
    return _has_json(own) and _has_permission(blocks, located.block)


def _describes_example(blocks: Sequence[MarkdownBlock], section: _Section) -> bool:
    """Return whether the tables of a section describe the examples that make its call.

    At least one example must be of the same topic as one of the tables (see `are_of_one_topic`). The result
    is True if no example in the section makes the call.
    """
    key = section.located.call.key
    calls = ((index, example_call(blocks[index])) for index in range(section.start, section.end))
    examples = [index for index, call in calls if call and call.key == key]
    above_examples = {tuple(headings_above(blocks, index)) for index in examples}
    above_tables = {tuple(headings_above(blocks, table.position)) for table in section.tables}
    return not examples or any(
        are_of_one_topic(blocks, first, second)
        for first in above_examples
        for second in above_tables
    )


def _is_plausible(blocks: Sequence[MarkdownBlock], section: _Section) -> bool:
    """Return whether a section describes an operation, given that another section is evident.

    The page must state the call of the section (`LocatedCall.is_stated`): a call that occurs only in an
    example is not enough. The section must begin with a heading, or contain a permission or a JSON example.
    """
    begins_with_heading = blocks[section.start].kind == "heading"
    has_content = section.operation.permissions or _has_json(blocks[section.start : section.end])
    return section.located.is_stated and (begins_with_heading or bool(has_content))


def _has_json(blocks: Sequence[MarkdownBlock]) -> bool:
    return any(map(is_json_example, blocks))


def _has_example(blocks: Sequence[MarkdownBlock], position: int) -> bool:
    """Return whether the blocks contain a JSON example below a heading or label such as "Response".

    `position` is the index of the block with the call. The result is False if there is no heading above the
    call, or if the heading is a step of a tutorial, or contains a call next to other words, as in "When
    does `GET /v1/x` fail?".
    """
    headings = [block.title for block in blocks[: position + 1] if block.kind == "heading"]
    heading = headings[-1] if headings else ""
    if not heading or _STEP.match(heading) or (CALL.search(heading) and not is_call(heading)):
        return False
    roles = ("request", "response") if is_call(heading) else ("response",)
    label = ""
    for block in blocks:
        if block.kind == "heading" or is_title(block) or is_label(block):
            label = text_of(block.text).rstrip(":：")
            label = "" if len(label) > MAX_TITLE_CHARS or _OLD.match(label) else label
        elif block.kind == "fence":
            if role_of_title(label) in roles and is_json_example(block):
                return True
        elif block.kind != "other":
            label = ""
    return False


def _has_permission(blocks: Sequence[MarkdownBlock], position: int) -> bool:
    """Return whether the block with a call, or the next block, states a permission."""
    operation = PageOperation("GET", "", "")
    OperationReader(operation).read(blocks[position : position + 2], position)
    return bool(operation.permissions)


def _call_positions(blocks: Sequence[MarkdownBlock], section: _Section) -> list[int]:
    """Return the indexes of the block with a section's call, and of the tables below it with methods."""
    indexes = range(section.located.block + 1, section.end)
    tables = (index for index in indexes if blocks[index].kind == "table")
    return [section.located.block, *(i for i in tables if METHOD_ALONE.search(blocks[i].text))]


def _add_query_parameters(
    operation: PageOperation, blocks: Sequence[MarkdownBlock], position: int
) -> None:
    """Add the query parameters of the operation's URL that no table describes.

    `position` is the index of the block with the URL. For example, `GET /v1/suggest?prefix=ket` has the
    query parameter `prefix` with the example "ket".
    """
    text = blocks[position].text if position < len(blocks) else ""
    url = re.escape(operation.url.partition("?")[0])
    query = re.search(rf"(?<!\w){url}\?([^\s`'\"<>|)）]+)", text)
    if query is None:
        return
    known = [
        *operation.request_headers,
        *operation.public_parameters,
        *operation.request_parameters,
    ]
    described = {normal_name(parameter.name) for parameter in known}
    # `call_of` removes the query, except a parameter that names the operation: `Action=CreateOrder`.
    action = operation.url.partition("?")[2]
    for pair in query[1].replace("&amp;", "&").split("&"):
        name, _, value = pair.partition("=")
        is_new = _QUERY_NAME.fullmatch(name) and normal_name(name) not in described
        if is_new and pair != action:
            example = value if _QUERY_VALUE.fullmatch(value) else ""
            described.add(normal_name(name))
            operation.request_parameters.append(
                Parameter(name=name, type="", required=None, example=example, location="query")
            )


def _drop_parts_of_url(operation: PageOperation) -> None:
    """Remove the parameters whose names are the host or the path of the URL.

    Such parameters come from a table that explains the parts of the URL. A path of one segment, such as
    `/orders`, is not compared, because a parameter may have this name.
    """
    origin, path = split_origin(operation.url)
    host, path = origin.partition("://")[2], path.strip("/")
    parts = {host, *([path, f"/{path}"] if "/" in path else ())} - {""}
    operation.request_parameters = [
        parameter for parameter in operation.request_parameters if parameter.name not in parts
    ]


def _add_path_parameters(operation: PageOperation) -> None:
    """Mark the parameters in the URL's path as required, and add those that no table describes.

    Names are compared without case and separators, because generated clients write `letter_id` for
    `{letterId}`. If tables describe at least as many path parameters as the URL has, nothing is added, even
    if the names differ.
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
