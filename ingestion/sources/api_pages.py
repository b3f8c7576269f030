"""Reads API operations from a Markdown page, recognised by its content.

A page describes an operation if it gives a method with a URL (see `api_marks`), and a table or list of
parameters, responses or errors. All other blocks of the page stay prose.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

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
from ingestion.sources.api_errors import error_codes, listed_errors, scopes_in, scopes_of_rows
from ingestion.sources.api_marks import (
    CALL,
    METHODS,
    Mark,
    find_marks,
    is_fact_label,
    path_of,
    split_by_mark,
)
from ingestion.sources.api_operation import PageOperation, Role
from ingestion.sources.api_tables import listed_parameters, parameters
from ingestion.text.markdown_blocks import MarkdownBlock, parse_list_items, parse_table
from schemas.api_document import ErrorCode, Parameter

MAX_LABEL_CHARS = 60
"""A longer paragraph before a table does not label it."""
MAX_SCOPE_SENTENCE_CHARS = 300
"""A longer paragraph does not state the permissions of an operation."""
MAX_NAME_CHARS = 80

_ROLE_PATTERNS: Mapping[Role, str] = MappingProxyType(
    {
        "permissions": r"权限|授权范围|\bscopes?\b|\bpermissions?\b",
        "errors": r"错误|异常码|返回码|状态码|失败码|\berrors?\b"
        r"|\b(?:status|return|response|result) codes?\b",
        "public": r"(?:公共|通用|全局)(?:请求|入|系统)?(?:参数|头)"
        r"|\b(?:common|public|global) (?:request )?(?:param|field|argument)",
        "headers": r"请求头|头部|报文头|\bheaders?\b",
        "response": r"响应|返回|出参|应答|输出|回参|\bresponses?\b|\breturns?\b|\boutput\b|\bresult\b",
        "request": r"请求|入参|查询|路径|参数|字段|输入|\brequests?\b|\bquery\b|\bpath\b|\bbody\b"
        r"|\bparam(?:eter)?s?\b|\bargs?\b|\barguments?\b|\binputs?\b|\bform\b|\bpayload\b|\bfields?\b",
    }
)
"""Words that announce what a table holds. The order matters: an error response is about errors."""
_ROLES = tuple(
    (role, re.compile(pattern, re.IGNORECASE)) for role, pattern in _ROLE_PATTERNS.items()
)
_ROLES_BY_COLUMN = ("headers", "response")
"""Roles that the title of the name column decides: `Header`, `Response field`."""
_LOCATIONS = (
    ("path", re.compile(r"\bpath\b|路径", re.IGNORECASE)),
    ("query", re.compile(r"\bquery\b|查询", re.IGNORECASE)),
    ("body", re.compile(r"\bbody\b|请求体|\bpayload\b|消息体", re.IGNORECASE)),
)
_SCOPE_LABEL = re.compile(r".*(?:权限|授权范围|scopes?|permissions?|oauth).*", re.IGNORECASE)
_NEEDS_SCOPE = re.compile(
    r"(?:需要|所需|要求|申请|开通|权限)[^。]{0,20}(?:权限|[:：])"
    r"|\b(?:requires?|needs?|required|scopes?|permissions?)\b.{0,60}\b(?:scopes?|permissions?)\b"
    r"|\b(?:scopes?|permissions?)\b\W{0,6}[:：`]",
    re.IGNORECASE,
)
_GENERIC_HEADING = re.compile(
    r"[\W\d]*(?:请求|基本信息|概述|接口(?:信息|地址|说明|描述|概述|定义)?"
    r"|请求(?:地址|方式|方法|url|说明)|http\s*(?:请求|request)|requests?|endpoints?|urls?|method|api"
    rf"|overview|definition|syntax|usage|reference|(?-i:{METHODS})\b.*)\W*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ApiPage:
    """The operations of a page and its remaining blocks."""

    operations: tuple[PageOperation, ...]
    prose: tuple[MarkdownBlock, ...]


def read_operations(blocks: Sequence[MarkdownBlock], title: str, declared: str = "") -> ApiPage:
    """Return the operations that the blocks of a page describe.

    `title` is the page's title; `declared` is the operation that its front matter names, such as
    `POST /v1/messages`.
    """
    ranges = split_by_mark(blocks, find_marks(blocks, declared))
    operations: list[PageOperation] = []
    prose: list[MarkdownBlock] = []
    done = 0
    for mark, start, end in ranges:
        operation = _OperationReader(
            mark, blocks[start:end], title if len(ranges) == 1 else ""
        ).read()
        if _is_evident(mark, operation):
            operations.append(operation)
            prose += blocks[done:start]
            done = end
    return ApiPage(tuple(operations), (*prose, *blocks[done:]))


def _is_evident(mark: Mark, operation: PageOperation) -> bool:
    """A stated call needs any table of an API; an example needs parameters that are announced."""
    if not mark.is_stated:
        return operation.has_labelled_parameters and bool(operation.request_parameters)
    return bool(
        operation.request_parameters
        or operation.public_parameters
        or operation.response_parameters
        or operation.error_codes
    )


class _OperationReader:
    """Reads the blocks of one operation."""

    def __init__(self, mark: Mark, blocks: Sequence[MarkdownBlock], title: str) -> None:
        self._blocks = blocks
        self._operation = PageOperation(
            mark.method, mark.url, _without_number(title) or _name(mark, blocks)
        )
        how = "stated" if mark.is_stated else "called in an example"
        self._operation.evidence.append(f"{mark.method} {mark.url} is {how}")
        self._headings: list[tuple[int, str]] = []
        self._label = ""

    def read(self) -> PageOperation:
        """Return the operation."""
        for block in self._blocks:
            if block.kind == "heading":
                self._enter(block)
            elif self._is_part(block):
                self._label = ""
                continue
            elif block.kind == "paragraph":
                self._read_paragraph(block)
            self._operation.prose.append(block)
        self._operation.prose = _without_empty_headings(self._operation.prose)
        return self._operation

    def _read_paragraph(self, block: MarkdownBlock) -> None:
        """Note a label for the next block, and the permissions that a sentence names."""
        text = text_of(block.text)
        is_sentence = text.endswith((".", "。", "!", "！")) or re.search(r"[:：]\s*\S", text)
        self._label = text if len(text) <= MAX_LABEL_CHARS and not is_sentence else ""
        if len(text) <= MAX_SCOPE_SENTENCE_CHARS and _NEEDS_SCOPE.search(text):
            self._operation.permissions += scopes_in(block.text)

    def _enter(self, heading: MarkdownBlock) -> None:
        while self._headings and self._headings[-1][0] >= heading.level:
            self._headings.pop()
        self._headings.append((heading.level, heading.title))
        self._label = ""

    def _is_part(self, block: MarkdownBlock) -> bool:
        """Add a table or list to the operation; return whether it was one of its parts."""
        if block.kind == "list":
            return self._add_list(block)
        rows = parse_table(block.text) if block.kind == "table" else []
        return len(rows) > 1 and self._add_table(rows[0], rows[1:])

    def _context(self) -> list[str]:
        """Return the texts that announce a block, the nearest first."""
        return [text for text in (self._label, *(t for _, t in reversed(self._headings))) if text]

    def _role(self) -> Role:
        for text in self._context():
            for role, pattern in _ROLES:
                if pattern.search(text):
                    return role
        return ""

    def _add_table(self, header: Sequence[str], rows: TableRows) -> bool:
        columns, role = columns_of(header, rows), self._role()
        if role == "errors" and "code" not in columns and "name" in columns:
            columns = columns.renamed("name", "code")
        if is_error_table(columns) or (role == "errors" and is_status_table(columns)):
            return self._add_errors(error_codes(rows, header, columns))
        if role == "permissions" and (found := scopes_of_rows(rows)):
            self._operation.permissions += found
            return True
        if not is_parameter_table(columns) and self._is_fact_table([header, *rows]):
            return False
        role = _role_of_column(header, columns) or role
        is_announced = role in ("headers", "public", "request", "response")
        if is_parameter_table(columns) or (is_announced and is_named_values(columns)):
            found_parameters = parameters(rows, columns, self._location(role))
            is_explicit = is_announced and ("required" in columns or "optional" in columns)
            self._operation.has_labelled_parameters |= bool(found_parameters) and is_explicit
            return self._add_parameters(found_parameters, role, is_announced)
        return False

    def _is_fact_table(self, rows: TableRows) -> bool:
        """Whether a table gives the URL or method; its permissions are read, and it stays prose."""
        labels = [text_of(row[0]) for row in rows if row]
        if not any(is_fact_label(text) for text in labels):
            return False
        for label, row in zip(labels, rows, strict=True):
            if _SCOPE_LABEL.fullmatch(label):
                self._operation.permissions += scopes_in("\n".join(row[1:]))
        return True

    def _add_errors(self, found: Sequence[ErrorCode]) -> bool:
        self._operation.error_codes += found
        if found:
            self._operation.evidence.append(f"{len(found)} error codes")
        return bool(found)

    def _add_parameters(self, found: Sequence[Parameter], role: Role, is_announced: bool) -> bool:
        if not found:
            return False
        self._operation.parameters_of(role).extend(found)
        where = (
            f"under {self._context()[0]!r}" if is_announced and self._context() else "by columns"
        )
        self._operation.evidence.append(f"{len(found)} {role or 'request'} parameters {where}")
        return True

    def _add_list(self, block: MarkdownBlock) -> bool:
        """Read a list such as "`name` (type, required): text" by what announces it."""
        role, items = self._role(), parse_list_items(block.text)
        if role == "permissions":
            self._operation.permissions += (found := scopes_in(block.text))
            return bool(found)
        if role == "errors":
            return self._add_errors(listed_errors(items))
        found_parameters = listed_parameters(block.text, self._location(role)) if role else ()
        self._operation.has_labelled_parameters |= bool(found_parameters)
        return self._add_parameters(found_parameters, role, True)

    def _location(self, role: Role) -> str:
        if role not in ("request", ""):
            return ""
        matches = (
            name for text in self._context() for name, pattern in _LOCATIONS if pattern.search(text)
        )
        return next(matches, "")


def _role_of_column(header: Sequence[str], columns: Columns) -> Role:
    title = columns.cell(header, "name")
    matches = (
        role
        for role, pattern in _ROLES
        if role in _ROLES_BY_COLUMN and pattern.search(text_of(title))
    )
    return next(matches, "")


def _without_number(heading: str) -> str:
    """Return a heading without its section number."""
    return re.sub(r"^\s*\d+(?:\.\d+)*[.、)）]?\s+", "", heading).strip(" -–—:：`")


def _name(mark: Mark, blocks: Sequence[MarkdownBlock]) -> str:
    """Return the name of one of several operations: its heading, else its first sentence."""
    headings = [block.title for block in blocks if block.kind == "heading"]
    own = _without_number(CALL.sub("", headings[0])) if headings else ""
    if own and not _GENERIC_HEADING.fullmatch(own):
        return own
    paragraphs = (text_of(block.text) for block in blocks if block.kind == "paragraph")
    text = next((t for t in paragraphs if not CALL.search(t) and not re.search(r"[:：]", t)), "")
    sentence = re.split(r"(?<=[.。!！])\s*", text)[0].rstrip(".。")
    if 0 < len(sentence) <= MAX_NAME_CHARS:
        return sentence
    return f"{mark.method} {path_of(mark.url)}"


def _without_empty_headings(blocks: Iterable[MarkdownBlock]) -> list[MarkdownBlock]:
    """Leave out headings that no other block follows any more."""
    kept: list[MarkdownBlock] = []
    for block in reversed(list(blocks)):
        is_empty = not kept or (kept[-1].kind == "heading" and kept[-1].level <= block.level)
        if block.kind != "heading" or not is_empty:
            kept.append(block)
    return kept[::-1]
