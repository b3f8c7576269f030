"""Reads the error codes in tables and lists of API pages."""

import re
from collections.abc import Sequence

from ingestion.sources.api_columns import Columns, TableRows, text_of, words_pattern
from ingestion.sources.api_tables import LIST_ITEM
from schemas.api_document import ErrorCode

_MESSAGE = words_pattern(
    r"(?:错误|返回|提示|异常|响应)?(?:信息|消息|提示|文案|名称)|错误码取值",
    r"(?:error|err|return)?[\s_-]*(?:messages?|msg|name|text|string|type|description|desc)",
)
_NO_CODE = re.compile(r"^(?:[\W_]*|default)$", re.IGNORECASE)
_STATUS = re.compile(r"[1-5](?:\d\d|xx)\b.*|default", re.IGNORECASE)
_STATUS_PHRASE = re.compile(r"([45]\d\d)[\s:：,-]+(\D+)")
"""A status with its name, such as `404 Not Found`."""
_NO_ERROR_STATUS = re.compile(r"[123](?:\d\d|xx)\b.*", re.IGNORECASE)


def error_codes(rows: TableRows, header: Sequence[str], columns: Columns) -> tuple[ErrorCode, ...]:
    """Return the codes of an error table; an HTTP status beside the code goes into the message.

    Of a table of HTTP statuses, those below 400 are no errors.
    """
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
        if key == "http_status" and _NO_ERROR_STATUS.fullmatch(code):
            continue
        message = text_of(row[message_at]) if 0 <= message_at < len(row) else ""
        description = text_of(columns.cell(row, "description"))
        status = text_of(columns.cell(row, "http_status")) if key == "code" else ""
        cause = text_of(columns.cell(row, "cause"))
        if key == "http_status" and (phrase := _STATUS_PHRASE.fullmatch(code)):
            code, message = phrase[1], message or phrase[2]
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


def are_statuses(rows: TableRows, columns: Columns, name: str) -> bool:
    """Return whether all cells of the column `name` are HTTP statuses."""
    return all(_STATUS.fullmatch(text_of(columns.cell(row, name))) for row in rows)


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
