"""Operations of an API as a page describes them, before they become API documents.

Also reads the operations in a table that has a method and a path in most rows.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Literal

from ingestion.sources.api_pages.calls import (
    ANY_METHOD,
    CALL,
    MAX_CAPTION_CHARS,
    MAX_FACT_CHARS,
    METHOD_ALONE,
    TARGET,
    Call,
    Method,
    call_of,
    code_lines,
    is_label,
    split_origin,
)
from ingestion.sources.api_pages.columns import columns_of, description_of, text_of
from ingestion.sources.api_pages.labels import bold_label, is_fact_label
from ingestion.sources.api_pages.permissions import (
    begins_with_permissions,
    is_scope_label,
    scopes_of_value,
)
from ingestion.text.markdown_blocks import MarkdownBlock, parse_list_items, parse_table
from ingestion.text.sentences import split_sentences
from schemas.choices import Language
from schemas.document import ApiDocument, ErrorCode, Parameter, PermissionPackage

MAX_DESCRIPTION_CHARS = 300
"""Maximum length of the description that is taken from the text of a page, in characters."""

Role = Literal["headers", "public", "request", "response", "errors", "permissions", ""]
"""What a table or list contains; empty if this is unknown.

`public` stands for the parameters that many operations of a platform share (公共参数).
"""

PARAMETER_ROLES: tuple[Role, ...] = ("headers", "public", "request", "response")

_BODY_METHODS = ("POST", "PUT", "PATCH")
_CALL_CELL = re.compile(rf"({ANY_METHOD})\s+({TARGET})")
_METHOD_CELL = re.compile(rf"({ANY_METHOD})\d?")
"""A cell with a method, possibly with the number of a footnote."""
_PATH_CELL = re.compile(TARGET)
_MEDIA_TYPE_CELL = re.compile(
    r"(?:application|audio|font|image|message|model|multipart|text|video)/[\w.+*-]+(?:\s*[,;].*)?"
)
"""A cell of media types, such as `text/plain; charset=utf-8`, which name no operation."""


@dataclass
class PageOperation:
    """An operation of an API as a page describes it."""

    method: Method
    url: str
    name: str
    request_headers: list[Parameter] = field(default_factory=list)
    public_parameters: list[Parameter] = field(default_factory=list)
    request_parameters: list[Parameter] = field(default_factory=list)
    response_parameters: list[Parameter] = field(default_factory=list)
    error_codes: list[ErrorCode] = field(default_factory=list)
    permissions: list[PermissionPackage] = field(default_factory=list)
    anchor: str = ""
    """Anchor of the heading at which the operation begins; may be empty."""
    prose: list[MarkdownBlock] = field(default_factory=list)
    """The blocks that stay prose, in page order."""
    evidence: list[str] = field(default_factory=list)
    """Lines for `apidesk ingest --explain` that say how the call and each table and list were read."""
    has_labelled_parameters: bool = False
    """Whether parameters with a known role were read from a list, or from a table with marks.

    A mark says whether a parameter is required.
    """
    is_stated: bool = True
    """False if the call is from an example, or if the page does not state its method."""

    def document(self, api_id: str, service_id: str, language: Language) -> ApiDocument:
        """Return the operation as an API document. The origin of the URL, if any, becomes the server."""
        origin, path = split_origin(self.url)
        return ApiDocument(
            service_id=service_id,
            api_id=api_id,
            name=self.name,
            method=self.method,
            url=path or self.url,
            language=language,
            description=self._description,
            request_headers=tuple(self.request_headers),
            public_parameters=tuple(self.public_parameters),
            request_parameters=tuple(self.request_parameters),
            response_parameters=tuple(self.response_parameters),
            error_codes=tuple(self.error_codes),
            permission_packages=tuple(self.permissions),
            servers=(origin,) if origin else (),
        )

    @property
    def further_prose(self) -> list[MarkdownBlock]:
        """The blocks of `prose` that `document` does not contain.

        A block is left out if it is the whole description, or if it contains only the method, the URL or
        both. A label above such a block, such as `**URL:**`, is also left out.
        """
        described = self._description_block
        text = " ".join(_without_bullet(described).replace("*", "").split())
        is_whole = text == self._description and not text.endswith((":", "："))
        kept: list[MarkdownBlock] = []
        for block in self.prose:
            above = kept[-1] if kept else MarkdownBlock("heading", "")
            is_labelled = _is_label_of_fact(above)
            stands_alone = above.kind not in ("paragraph", "other") or is_labelled
            is_description = is_whole and block is described
            if not is_description and not self._is_call(block, stands_alone=stands_alone):
                kept.append(block)
            elif is_labelled:
                kept.pop()
        return kept

    def _is_call(self, block: MarkdownBlock, *, stands_alone: bool) -> bool:
        """Return whether a block contains only the method, the URL or both, possibly after labels.

        `stands_alone` is False if the block may continue the text above it. Then each line must have a
        label, except in a paragraph such as `GET /v1/x`.
        """
        call = CALL.fullmatch(block.text.strip("`* \n")) if block.kind == "paragraph" else None
        if call is not None:
            return call_of(call[1], call[2]) == (self.method, self.url)
        path = split_origin(self.url)[1]
        facts = (self.method, self.url, path, path.lstrip("/"), f"{self.method} {self.url}")
        may_state = (
            block.kind in ("paragraph", "list", "fence") and len(block.text) <= MAX_FACT_CHARS
        )
        stated = _fact_values(block) if may_state else []
        return bool(stated) and all(
            value in facts and (label or stands_alone) for label, value in stated
        )

    @property
    def _description(self) -> str:
        """The description of the operation, with its code spans and absolute links; may be empty.

        If it is longer than `MAX_DESCRIPTION_CHARS`, it consists of the sentences that fit. If not even the
        first one fits, this sentence is cut, and an ellipsis marks the cut.
        """
        text = description_of(_without_bullet(self._description_block))
        ends = accumulate(map(len, split_sentences(text)))
        whole = max((end for end in ends if end <= MAX_DESCRIPTION_CHARS), default=0)
        if whole or not text:
            return text[:whole].rstrip()
        cut = text[:MAX_DESCRIPTION_CHARS]
        if cut.count("`") % 2 == 1:
            cut = cut[: cut.rfind("`")]
        return f"{_PART_OF_WORD.sub('', _OPEN_LINK.sub('', cut)).rstrip()} …"

    @property
    def _description_block(self) -> MarkdownBlock:
        """The first block that describes the operation; an empty one if there is none.

        It is a paragraph, or a list of one item below a label such as "简要描述". A block right below the
        title of a changelog does not count, because it describes a change.
        """
        for above, block in pairwise([MarkdownBlock("other", ""), *self.prose]):
            if _CHANGELOG_LABEL.fullmatch(above.title or _label_of(above)):
                continue
            is_item = block.kind == "list" and len(parse_list_items(block.text)) == 1
            if (block.kind == "paragraph" and _describes(block.text)) or (
                is_item and _DESCRIPTION_LABEL.fullmatch(above.title or _label_of(above))
            ):
                return block
        return MarkdownBlock("paragraph", "")

    def parameters_of(self, role: Role) -> list[Parameter]:
        """Return the list of this operation that contains the parameters of `role`.

        Parameters with an unknown role are in the list of request parameters.
        """
        lists: dict[Role, list[Parameter]] = {
            "headers": self.request_headers,
            "public": self.public_parameters,
            "response": self.response_parameters,
        }
        return lists.get(role, self.request_parameters)


def _describes(paragraph: str) -> bool:
    """Return whether a paragraph describes an operation.

    Labels, calls, statements of required permissions, entries of a changelog and texts of up to 8
    characters do not.
    """
    text = text_of(paragraph)
    is_bold = _BOLD_LINE.fullmatch(paragraph.strip()) is not None
    is_caption = (is_bold or text.endswith((":", "："))) and len(text) <= MAX_CAPTION_CHARS
    return (
        len(text) > 8
        and not is_caption
        and not CALL.search(text)
        and not _CHANGELOG_ENTRY.match(text)
        and not begins_with_permissions(paragraph)
    )


def _without_bullet(block: MarkdownBlock) -> str:
    """Return the text of a paragraph, or of the first item of a list."""
    return parse_list_items(block.text)[0] if block.kind == "list" else block.text


def _label_of(block: MarkdownBlock) -> str:
    """Return the text of a block that is only a label, such as `**URL:**`; empty for other blocks."""
    text = bold_label(block) or (text_of(block.text) if is_label(block) else "")
    return text.rstrip(":： ")


def _is_label_of_fact(block: MarkdownBlock) -> bool:
    """Return whether a block is only a label of a URL, a method or a description."""
    label = _label_of(block)
    return is_fact_label(label) or _DESCRIPTION_LABEL.fullmatch(label) is not None


def _fact_values(block: MarkdownBlock) -> list[tuple[str, str]]:
    """Return the label and the value of each line or item of a block. The label may be empty."""
    lines = code_lines(block) if block.kind == "fence" else block.text.splitlines()
    pairs: list[tuple[str, str]] = []
    for line in filter(str.strip, lines):
        text = text_of(_BULLET.sub("", line)).strip("` ")
        label, _, value = text.replace("：", ":").partition(":")
        is_labelled = is_fact_label(label)
        pairs.append((label, value.strip("` ")) if is_labelled else ("", text))
    return pairs


_BULLET = re.compile(r"\s*[-*+]\s+")
_OPEN_LINK = re.compile(r"\[[^\[\]]*(?:\]\([^)]*)?\Z")
"""A link without its end, at the end of a text."""
_PART_OF_WORD = re.compile(r"(?<=\s)[!-~]+\Z")
"""The last word of a cut text, unless it contains Chinese. The word may be incomplete."""
_DESCRIPTION_LABEL = re.compile(
    r"(?:简要|接口|功能)?(?:描述|说明)|简介|(?:brief )?description|summary", re.IGNORECASE
)
_CHANGELOG_LABEL = re.compile(
    r"change ?log|(?:version|revision|change|release|update) history|release notes|what['’]s new"
    r"|(?:更新|变更|修订|修改|版本|升级)(?:日志|记录|历史)|历史(?:版本|记录)",
    re.IGNORECASE,
)
_CHANGELOG_ENTRY = re.compile(
    r"(?:v?\d+(?:\.\d+)+|\d{4}([-/.])\d{1,2}\1\d{1,2})\s*(?:[-=]>|→|[:：](?!\d))", re.IGNORECASE
)
"""The start of a text about a change: a version or date, and an arrow or colon."""
_BOLD_LINE = re.compile(r"\*\*[^*\n]+\*\*[:：]?")


@dataclass(frozen=True)
class ListedCall:
    """A call from a table or code block that contains several calls."""

    call: Call
    name: str = ""
    """Name of the operation in the row of the call; empty if the row contains no name."""
    scopes: str = ""
    """Markdown of the cell that gives the permissions of the operation; empty if there is no such cell.

    The cell is in the row of the call, or in a row for all calls of the table.
    """


def listed_calls(block: MarkdownBlock) -> list[ListedCall]:
    """Return the calls in a table of calls; empty for other blocks.

    In a table of calls, more than half of the rows, and at least two, contain a call.
    """
    if block.kind != "table" or not METHOD_ALONE.search(block.text):
        return []
    header, *rows = parse_table(block.text) or [[]]
    scope_at = columns_of(header).at.get("scope", -1)
    labelled_scopes = (row[1] for row in rows if len(row) > 1 and is_scope_label(text_of(row[0])))
    shared_scopes = next(labelled_scopes, "")
    found = [listed for row in rows if (listed := _listed_call(row, scope_at, shared_scopes))]
    return found if len(found) > 1 and 2 * len(found) > len(rows) else []


def _listed_call(row: Sequence[str], scope_at: int, shared_scopes: str) -> ListedCall | None:
    """Return the call in a row of a table, or None if the row contains none.

    The method and the path are in the same cell or in two cells. `scope_at` is the index of the column of
    permissions, or -1 if there is none. If the row has no such cell, its permissions are `shared_scopes`.
    """
    method = path = name = ""
    for index, cell in enumerate(row):
        text = text_of(cell)
        if call := _CALL_CELL.fullmatch(text):
            method, path = call[1], call[2]
        elif found := _METHOD_CELL.fullmatch(text):
            method = found[1]
        elif _PATH_CELL.fullmatch(text):
            path = text
        elif index != scope_at and not _MEDIA_TYPE_CELL.fullmatch(text):
            name = name or text
    if not (method and path):
        return None
    scopes = row[scope_at] if 0 <= scope_at < len(row) else shared_scopes
    return ListedCall(call_of(method, path), name, scopes)


def listed_operations(first: PageOperation, listed: Sequence[ListedCall]) -> list[PageOperation]:
    """Return the operations of all calls in `listed` except the first call, whose operation is `first`.

    `first` was read from the section that all calls share. Its content is copied to the other operations:

    - The error codes are copied to all operations.
    - The headers and parameters are copied to operations with the same method, and to calls without a name.
    - The permissions are copied to calls without a name. A call with a name gets those in its `scopes`.

    If the method of `first` has no body, its body parameters move to the first operation whose method has
    a body. If the first call has `scopes`, they replace the permissions of `first`.
    """
    if listed and listed[0].scopes:
        first.permissions = scopes_of_value(listed[0].scopes)
    others: list[PageOperation] = []
    methods = [item.call.method for item in listed]
    can_move = any(item.call.method in _BODY_METHODS for item in listed[1:])
    body = _take_body_parameters(first) if can_move else []
    for item in listed[1:]:
        is_only = methods.count(item.call.method) == 1
        qualifier = item.call.method if is_only else " ".join(item.call)
        name = item.name or f"{first.name} ({qualifier})"
        other = PageOperation(*item.call, name, evidence=[f"{' '.join(item.call)} is listed"])
        other.error_codes = list(first.error_codes)
        other.permissions = scopes_of_value(item.scopes) if item.name else list(first.permissions)
        if item.call.method == first.method or not item.name:
            other.request_headers = list(first.request_headers)
            other.public_parameters = list(first.public_parameters)
            other.request_parameters = list(first.request_parameters)
            other.response_parameters = list(first.response_parameters)
        if body and item.call.method in _BODY_METHODS:
            other.request_parameters += body
            body = []
        others.append(other)
    return others


def _take_body_parameters(operation: PageOperation) -> list[Parameter]:
    """Remove and return the body parameters if the operation's method has no body; otherwise return []."""
    if operation.method in _BODY_METHODS:
        return []
    parameters = operation.request_parameters
    operation.request_parameters = [item for item in parameters if item.location != "body"]
    return [item for item in parameters if item.location == "body"]
