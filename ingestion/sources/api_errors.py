"""Reads error codes and permissions in tables, lists and sentences of API pages."""

import re
from collections.abc import Sequence

from ingestion.sources.api_columns import Columns, TableRows, text_of, words_pattern
from ingestion.sources.api_tables import LIST_ITEM
from schemas.api_document import ErrorCode, PermissionPackage

_MESSAGE = words_pattern(
    r"(?:错误|返回|提示|异常|响应)?(?:信息|消息|提示|文案|名称)",
    r"(?:error|err|return)?[\s_-]*(?:messages?|msg|name|text|string|type|description|desc)",
)
_NO_CODE = re.compile(r"^[\W_]*$")


def error_codes(rows: TableRows, header: Sequence[str], columns: Columns) -> tuple[ErrorCode, ...]:
    """Return the codes of an error table; an HTTP status beside the code goes into the message."""
    key = "code" if "code" in columns else "http_status"
    message_at = next(
        (
            i
            for i, cell in enumerate(header)
            if i != columns.at[key]
            and i != columns.at.get("http_status")
            and _MESSAGE.fullmatch(text_of(cell))
        ),
        -1,
    )
    found: list[ErrorCode] = []
    for row in rows:
        code = text_of(columns.cell(row, key)).strip("`")
        if not code or len(code) > 80 or _NO_CODE.match(code.replace("-", "")):
            continue
        message = text_of(row[message_at]) if 0 <= message_at < len(row) else ""
        description = text_of(columns.cell(row, "description"))
        status = text_of(columns.cell(row, "http_status")) if key == "code" else ""
        cause = text_of(columns.cell(row, "cause"))
        if not message:
            message, description = description, ""
        elif description and description != message:
            cause = cause or description
        found.append(
            ErrorCode(
                code=code,
                message=f"{message} (HTTP {status})" if status and status != code else message,
                cause=cause,
                remedy=text_of(columns.cell(row, "remedy")),
            )
        )
    return tuple(found)


_SCOPE = re.compile(r"`([^`\n]{2,80})`|(?<![\w./:@-])([a-z][\w-]*(?:[:.][\w*-]+)+)(?![\w/])")
_SCOPE_SEPARATOR = re.compile(r"<br\s*/?>|\n|[;；、,，]\s*(?=`)|</li>")


def scopes_in(text: str) -> list[PermissionPackage]:
    """Return the permissions in a cell, list or sentence: code spans and dotted names.

    What follows a name on its line describes it.
    """
    found: dict[str, str] = {}
    for line in _SCOPE_SEPARATOR.split(text.replace("\\_", "_")):
        for match in _SCOPE.finditer(line):
            about = text_of(line[match.end() :]).strip(" :：-–—|()（）.。")
            found.setdefault(match[1] or match[2], about)
    return [PermissionPackage(name=name, description=about) for name, about in found.items()]


def scopes_of_rows(rows: TableRows) -> list[PermissionPackage]:
    """Return a permission per row: the first cell names it, the second describes it."""
    return [
        PermissionPackage(name=text_of(row[0]), description=text_of(row[1]) if row[1:] else "")
        for row in rows
        if row and text_of(row[0])
    ]


def listed_errors(items: Sequence[str]) -> tuple[ErrorCode, ...]:
    """Return the error codes of a list such as "`code`: meaning"; none if an item differs."""
    matches = [LIST_ITEM.match(item) for item in items]
    if not matches or not all(matches):
        return ()
    return tuple(_listed_error(match) for match in matches if match)


def _listed_error(match: re.Match[str]) -> ErrorCode:
    """Return the code of an item; of an HTTP status followed by a code, the code."""
    name, rest = text_of(match["name"]), match["rest"]
    second = re.match(r"\s*`([^`]+)`", rest)
    if second and re.fullmatch(r"[1-5]\d\d", name):
        return ErrorCode(
            code=second[1],
            message=f"{text_of(rest[second.end() :]).strip(' :：-–—')} (HTTP {name})".strip(),
        )
    return ErrorCode(code=name, message=text_of(rest).strip(" :：-–—"))
