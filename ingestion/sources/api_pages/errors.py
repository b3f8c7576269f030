"""Reads the error codes that API pages state in tables, lists, titles and sentences."""

import re
from collections.abc import Iterator, Sequence

from ingestion.sources.api_pages.columns import (
    Columns,
    TableRows,
    description_of,
    header_pattern,
    text_of,
)
from ingestion.sources.api_pages.parameters import LIST_ITEM
from ingestion.text.typography import join_texts
from schemas.document import ErrorCode

_MESSAGE = header_pattern(
    r"(?:错误|返回|提示|异常|响应)?(?:信息|消息|提示|文案|名称)|错误码取值",
    r"(?:error|err|return)?[\s_-]*(?:messages?|msg|name|text|string|type|description|desc)",
)
_NO_CODE = re.compile(r"^(?:[\W_]*|default)$", re.IGNORECASE)
_STATUS = re.compile(r"[1-5](?:\d\d|xx)\b.*|default", re.IGNORECASE)
_STATUS_PHRASE = re.compile(r"([45]\d\d)[\s:：,-]+(\D+)")
"""The status of an error with its name, such as `404 Not Found`."""
_SUCCESS_TEXT = (
    r"(?:(?:操作|请求|调用|处理|执行|接口|业务|返回){0,2}(?:成功|正常)"
    r"|(?:request )?(?:ok|no error|success|succeeded|successful(?: request)?))"
)
_NO_ERROR_TEXT = re.compile(rf"{_SUCCESS_TEXT}(?:\s?{_SUCCESS_TEXT})?[.。!！]?", re.IGNORECASE)
"""A message that means success."""
_NO_ERROR_STATUS = re.compile(r"[123](?:\d\d|xx)\b.*", re.IGNORECASE)
_SUCCESS_CODE = re.compile(r"20\d(?!\w).*")
_READ_KINDS = ("code", "http_status", "description", "cause", "remedy")
"""The kinds of columns that become the code, the message, the cause or the remedy of an error.

The texts of columns of other kinds are added to the cause.
"""


def errors_of_rows(rows: TableRows, columns: Columns) -> list[list[ErrorCode]]:
    """Return the error codes of each row. An HTTP status in the same row becomes part of the message.

    If a row has only an HTTP status, the status is its code. A row has no error codes if it has neither a
    code nor a status, or if its message means success, such as "ok". If the codes of the table are HTTP
    statuses, a status such as `200` has none either.
    """
    code_kind = "code" if "code" in columns else "http_status"
    message_at = _message_column(columns, code_kind)
    are_all_statuses = are_statuses(rows, columns, code_kind)

    def errors_of(row: Sequence[str]) -> list[ErrorCode]:
        code = _code_of_row(row, columns, code_kind)
        is_success = are_all_statuses and _SUCCESS_CODE.fullmatch(code)
        if not code or is_success:
            return []
        return list(_errors_of_row(row, columns, code_kind, code, message_at))

    return list(map(errors_of, rows))


def _message_column(columns: Columns, code_kind: str) -> int:
    """Return the index of the column of messages, or -1 if there is none.

    `code_kind` is the kind of the column with the codes, which cannot be the column of messages.
    """
    codes_at = (columns.at[code_kind], columns.at.get("http_status"))
    titles = enumerate(map(text_of, columns.titles))
    return next((i for i, t in titles if i not in codes_at and _MESSAGE.fullmatch(t)), -1)


def _code_of_row(row: Sequence[str], columns: Columns, code_kind: str) -> str:
    """Return the code of a row, or its HTTP status if the cell with the code is empty.

    The result is empty if the row has neither a code nor a status. If the codes of the table are statuses,
    the result is also empty for a status below 400.
    """
    status = text_of(columns.cell(row, "http_status"))
    code = text_of(columns.cell(row, code_kind)).strip("`") or status
    is_code = len(code) <= 300 and not _NO_CODE.match(code.replace("-", ""))
    is_no_error = code_kind == "http_status" and _NO_ERROR_STATUS.fullmatch(code)
    return code if is_code and not is_no_error else ""


def _errors_of_row(
    row: Sequence[str], columns: Columns, code_kind: str, code: str, message_at: int
) -> Iterator[ErrorCode]:
    """Yield the errors of a row with the code `code`.

    If the cell with the code lists several codes in backticks, such as `` `aa`, `bb` ``, each of them is an
    error. Nothing is yielded if the message means success. `message_at` is the index of the column of
    messages, or -1 if there is none.
    """
    message = description_of(row[message_at]) if 0 <= message_at < len(row) else ""
    description = description_of(columns.cell(row, "description"))
    status = text_of(columns.cell(row, "http_status")) if code_kind == "code" else ""
    cause = description_of(columns.cell(row, "cause"))
    if code_kind == "http_status" and (phrase := _STATUS_PHRASE.fullmatch(code)):
        code, message = phrase[1], message or phrase[2]
    if not message:
        message, description = description, ""
    elif description and description.replace("`", "") != message.replace("`", ""):
        cause = join_texts([description, cause])
    if _NO_ERROR_TEXT.fullmatch(message.strip("`")):
        return
    read = {message_at, *(index for kind, index in columns.at.items() if kind in _READ_KINDS)}
    cell = columns.cell(row, code_kind)
    codes = re.findall(r"`([^`\s]{2,60})`", cell) if cell.startswith("`") else []
    for each in codes or [code]:
        yield ErrorCode(
            code=each,
            message=with_status(message, "" if status == code else status),
            cause=join_texts([cause, *columns.further_texts(row, read)]),
            remedy=description_of(columns.cell(row, "remedy")),
        )


def are_statuses(rows: TableRows, columns: Columns, kind: str) -> bool:
    """Return whether each cell in the column of this kind begins with an HTTP status or is `default`."""
    return all(_STATUS.fullmatch(text_of(columns.cell(row, kind))) for row in rows)


def has_statuses(rows: TableRows, columns: Columns) -> bool:
    """Return whether the column `http_status` contains an HTTP status or `default`.

    False if it contains only other texts, such as the state `paid`.
    """
    return any(_STATUS.match(text_of(columns.cell(row, "http_status")).strip("`")) for row in rows)


_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_STATUS_ITEM = re.compile(
    r"[*`\s\[]*(?:HTTP\s*)?(?:(?i:status(?: code)?|code(?=[:：]))[:：]?\**\s)?"
    r"([1-5]\d\d)(?!\w|\.\w)[*`)\]）】]*"
    r"(?:\s+(?:[A-Z](?:[a-z]+|[A-Z]+)\b\s*){1,4}(?:[`*]+(?=[\s:：—–(-]|$))?)?[\s.:：,，、—–\-/|(（*]*"
)
"""An HTTP status, possibly with its name, at the start of an item: `404 Not Found – `."""
_ERROR_NAME = re.compile(
    r"`([^`\s]+)`|([A-Za-z][\w.]*_[\w.]+|[A-Z]{1,6}-?\d{2,}|\d{4,})(?=[*`]*\s*(?:[:：(（—–\-,，]|$))"
)
"""An error code in backticks, or a word that must be an error code: `not_found`, `E1002`, `40001`."""
_CAMEL_CASE = re.compile(r"()([A-Z][a-z]+(?:[A-Z][a-z]+)+)\b(?!\s+(?!(?:if|when|unless)\b)[a-z])")
"""A code such as `NotFound`, but not the first word of a sentence.

The empty group gives the pattern the same groups as `_ERROR_NAME`.
"""


_STATED_ERROR = r"`([^`\s]+)`\s*(?:[(（]([^()（）]{1,80})[)）])?"
_STATED_ERRORS = re.compile(
    rf"(?:{_STATED_ERROR}(?:\s*(?:[,，、;；]|\band\b|\bor\b|[和或])\s*|\s*[.。]?\s*$)){{1,40}}"
)
"""Codes, possibly with a text in parentheses: "`not_found` (404), `finished` (409)."."""


def stated_errors(text: str) -> tuple[ErrorCode, ...]:
    """Return the error codes of a text that only names codes; empty for other texts."""
    text = " ".join(text.split())  # long runs of spaces would make the search slow
    if not _STATED_ERRORS.fullmatch(text):
        return ()
    return tuple(
        ErrorCode(code=code, message=f"HTTP {about}" if about.isdigit() else about)
        for code, about in re.findall(_STATED_ERROR, text)
    )


_LABELLED_ERROR = re.compile(
    r"\A(?:\*\*)?(?:`([^`\s]{1,60})`|([A-Za-z_-]{0,20}\d{2}[\w.-]{0,40}|[A-Za-z]{1,40}_\w{1,40}))(?:\*\*)?"
    r"\s{0,3}[:：—–-]\s{0,3}(\S.*)",
    re.DOTALL,
)
_ERROR_SENTENCE = re.compile(
    r"\b(?:(returns?|responds with|results in)|fails with|raises|throws)\s{1,4}(?:an? |the )?(?:HTTP )?"
    r"(?:error )?(?:status )?(?:code )?`([^`\s]{1,60})`(?: error)?(?: status)?,?\s{1,4}"
    r"((?:if|when|unless)\s[^.。\n]{1,200})",
    re.IGNORECASE,
)
"""A sentence such as "Returns `not_found` if there is no such boat."

The first group is empty for verbs that always mean a failure, such as "raises".
"""


def labelled_errors(text: str) -> tuple[ErrorCode, ...]:
    """Return the error codes in `text`, the value of a label such as "Error code".

    The text is either one code with a description, such as "`E1002`: no such boat", or a list of codes. The
    result is empty for other texts, and for a code that means success.
    """
    match = _LABELLED_ERROR.match(text)
    if match is None:
        return stated_errors(text)
    code, message = match[1] or match[2], text_of(match[3]).strip(" :：-–—()（）")
    is_success = _SUCCESS_CODE.fullmatch(code) or _NO_ERROR_TEXT.fullmatch(message)
    return () if is_success else (ErrorCode(code=code, message=message),)


def errors_of_sentences(text: str, *, is_about_errors: bool) -> list[ErrorCode]:
    """Return the error codes of sentences that say when a call fails.

    "Raises `x` if" always counts. "Returns `x` if" counts only in a section about errors
    (`is_about_errors`), or if `x` is an error status.
    """
    return [
        ErrorCode(code=code, message=text_of(cause))
        for neutral_verb, code, cause in _ERROR_SENTENCE.findall(text)
        if is_about_errors or not neutral_verb or is_error_status(code)
    ]


def with_status(message: str, status: str) -> str:
    """Return the message of an error, followed by its HTTP status unless `status` is empty."""
    return f"{message} (HTTP {status})".strip() if status else message


def is_error_status(code: str) -> bool:
    """Return whether a code is the HTTP status of an error, such as `404` or `5xx`."""
    return re.fullmatch(r"[45](?:\d\d|xx)", code, re.IGNORECASE) is not None


def are_status_items(items: Sequence[str]) -> bool:
    """Return whether all items of a list begin with an HTTP status."""
    return bool(items) and all(map(_STATUS_ITEM.match, items))


def listed_errors(items: Sequence[str]) -> tuple[ErrorCode, ...]:
    """Return the error codes of a list such as "`code`: meaning"; empty if an item has another form.

    Items with an HTTP status below 400 or with a message that means success are left out.
    """
    found = [_listed_error(_LINK.sub(r"\1", item)) for item in items]
    if None in found:
        return ()
    return tuple(error for error in found if error and _is_error(error))


def _is_error(found: ErrorCode) -> bool:
    """Return False for statuses below 400 and for codes whose message means success."""
    is_success = _NO_ERROR_TEXT.fullmatch(found.message)
    return not (is_success or _NO_ERROR_STATUS.fullmatch(found.code))


def titled_error(title: str) -> ErrorCode | None:
    """Return the error of a title that begins with a status, a code span or a word such as `not_found`.

    Returns None for other titles, for statuses below 400 and for titles that mean success.
    """
    text = title if "`" in title else text_of(title)
    is_named = _STATUS_ITEM.match(text) or _ERROR_NAME.match(text)
    found = _listed_error(text) if is_named else None
    return found if found and _is_error(found) else None


def _listed_error(item: str) -> ErrorCode | None:
    """Return the error in a list item, or None.

    If a code follows an HTTP status, as in "404 `not_found`", the status becomes part of the message.
    """
    status = _STATUS_ITEM.match(item)
    rest = item[status.end() :] if status else item
    if name := _ERROR_NAME.match(rest) or (_CAMEL_CASE.match(rest) if status else None):
        message = text_of(rest[name.end() :]).strip(" :：-–—*")
        message = with_status(message, status[1] if status else "")
        return ErrorCode(code=name[1] or name[2], message=message)
    if status:
        message = text_of(item).partition(status[1])[2]
        return ErrorCode(code=status[1], message=message.strip(" :：-–—"))
    if (match := LIST_ITEM.match(item)) and not match["typed"]:
        return ErrorCode(
            code=text_of(match["name"]), message=text_of(match["rest"]).strip(" :：-–—")
        )
    return None
