"""Reads the error codes and the permissions that API pages state in tables, lists, lines and sentences."""

import re
from collections.abc import Sequence

from ingestion.sources.api_columns import Columns, TableRows, header_pattern, text_of
from ingestion.sources.api_lists import LIST_ITEM
from schemas.api_document import ErrorCode, PermissionPackage

_MESSAGE = header_pattern(
    r"(?:错误|返回|提示|异常|响应)?(?:信息|消息|提示|文案|名称)|错误码取值",
    r"(?:error|err|return)?[\s_-]*(?:messages?|msg|name|text|string|type|description|desc)",
)
_NO_CODE = re.compile(r"^(?:[\W_]*|default)$", re.IGNORECASE)
_STATUS = re.compile(r"[1-5](?:\d\d|xx)\b.*|default", re.IGNORECASE)
_STATUS_PHRASE = re.compile(r"([45]\d\d)[\s:：,-]+(\D+)")
"""A status with its name, such as `404 Not Found`."""
_NO_ERROR_STATUS = re.compile(r"[123](?:\d\d|xx)\b.*", re.IGNORECASE)

_SUCCESS = re.compile(r"20\d(?!\w).*")

MAX_PERMISSIONS = 12
"""A table with more rows lists the permissions of a platform, not those of one operation."""

MAX_SENTENCE_CHARS = 300
"""Permissions are not read from longer sentences."""

_LABEL = re.compile(
    r".*(?:权限|授权范围|scopes?|permissions?|oauth|privileges?|(?:required|needed) roles?).*|roles?|角色",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!])\s+(?=[A-Z*_`])|[。！]\s*|<br\s*/?>|\n", re.IGNORECASE)
_STATEMENT = re.compile(
    r"(?:需要|所需|要求|申请|开通|拥有|具备|权限)[^。]{0,20}(?:权限|[:：])"
    r"|\b(?:requires?|needs?|required|scopes?|permissions?|privileges?)\b.{0,60}"
    r"\b(?:scopes?|permissions?|roles?|privileges?)\b"
    r"|\b(?:scopes?|permissions?|privileges?)\b.{0,20}[:：`]|权限\s*`",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"`((?=[^`]*[A-Za-z])[^`\s\[\](){}]{2,80})`|(?<![\w./:@-])([a-z][\w-]*(?:[:.](?:[\w-]+|\*(?!\*)))+)(?![\w/])"
)
_CODE_OR_QUALIFIED = (
    r"(?:`[^`\s]{2,80}`|(?<![\w./:@-])(?:\*\*|__|[*_\"“])?[a-z][\w-]*(?:[:.][\w*-]+)+)"
    r"(?:\*\*|__|[*_\"”])?"
)
_NAMED_SCOPE = re.compile(
    rf"{_CODE_OR_QUALIFIED}(?:(?:\s*[,，、/和或]\s*|,?\s+(?:and|or)\s+){_CODE_OR_QUALIFIED}){{0,5}}"
    r"\s*(?:(?:(?:oauth|access) )?(?:scope|permission|privilege)s?\b|权限)",
    re.IGNORECASE,
)
"""Names right before a word for permissions: "with the `files:read` scope"."""
_SEPARATOR = re.compile(r"<br\s*/?>|\n|[;；、,，]\s*(?=`)|</li>")
_WORD = re.compile(r"(?!(?:none|any)$)[A-Za-z][\w.:*-]{2,79}", re.IGNORECASE)
_COLON_NAME = re.compile(r"`([a-z][\w.-]*(?::[a-z*][\w.*-]*)+)`")
_QUALIFIED = re.compile(r"[\w.-]:[\w*]")
_NEED = re.compile(r"\b(?:needs?|requires?|required|only)\b|需要|要求|所需", re.IGNORECASE)
_SCOPE_AND_NAME = re.compile(r"(?:\b(?:scopes?|permissions?)|权限)\s*[:：]?\s*`", re.IGNORECASE)
_COLON_NAMES = re.compile(r"[^`]*(?:`[a-z][\w.-]*(?::[\w.*-]+)+`[^`]*)+")


def errors_of_rows(
    rows: TableRows, header: Sequence[str], columns: Columns
) -> tuple[ErrorCode, ...]:
    """Return the error codes of a table. An HTTP status in the same row becomes part of the message.

    In a table of HTTP statuses, statuses below 400 are left out. If all codes look like HTTP statuses,
    those from 200 to 209 are.
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
    are_all_statuses = are_statuses(rows, columns, key)
    for row in rows:
        code = text_of(columns.cell(row, key)).strip("`")
        if not code or len(code) > 300 or _NO_CODE.match(code.replace("-", "")):
            continue
        if (key == "http_status" and _NO_ERROR_STATUS.fullmatch(code)) or (
            are_all_statuses and _SUCCESS.fullmatch(code)
        ):
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
        cell = columns.cell(row, key)
        codes = re.findall(r"`([^`\s]{2,60})`", cell) if cell.startswith("`") else []
        found += (
            ErrorCode(
                code=each,
                message=f"{message} (HTTP {status})" if status and status != code else message,
                cause=cause,
                remedy=text_of(columns.cell(row, "remedy")),
            )
            for each in (codes or [code])
        )
    return tuple(found)


def are_statuses(rows: TableRows, columns: Columns, kind: str) -> bool:
    """Return whether all cells in the column of this kind are HTTP statuses."""
    return all(_STATUS.fullmatch(text_of(columns.cell(row, kind))) for row in rows)


def has_statuses(rows: TableRows, columns: Columns) -> bool:
    """Return whether the column `http_status` contains an HTTP status, not only states such as `paid`."""
    return any(_STATUS.match(text_of(columns.cell(row, "http_status")).strip("`")) for row in rows)


_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_STATUS_ITEM = re.compile(
    r"[*`\s\[]*(?:HTTP\s*)?([1-5]\d\d)(?![\w.])[*`)\]）】]*(?:\s+(?:[A-Z][a-z]+\b\s*){1,4}(?:[`*]+(?=[\s:：—–(-]|$))?)?[\s:：,，、—–\-/|(（*]*"
)
"""An HTTP status with its name at the start of an item: `404 Not Found – `."""
_ERROR_NAME = re.compile(
    r"`([^`\s]+)`|([A-Za-z][\w.]*_[\w.]+|[A-Z]{1,6}-?\d{2,}|\d{4,})(?=[*`]*\s*(?:[:：(（—–\-,，]|$))"
)
"""A code in a code span, or a word that can only be one: `not_found`, `E1002`, `40001`."""
_CAMEL_CASE = re.compile(r"()([A-Z][a-z]+(?:[A-Z][a-z]+)+)\b")
"""A code such as `NotFound`. The empty group gives the pattern the same groups as `_ERROR_NAME`."""


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


def are_status_items(items: Sequence[str]) -> bool:
    """Return whether all items of a list begin with an HTTP status."""
    return bool(items) and all(map(_STATUS_ITEM.match, items))


def listed_errors(items: Sequence[str]) -> tuple[ErrorCode, ...]:
    """Return the error codes of a list such as "`code`: meaning"; empty if an item has another form.

    Items about HTTP statuses below 400 are left out.
    """
    found = [_listed_error(_LINK.sub(r"\1", item)) for item in items]
    if None in found:
        return ()
    return tuple(error for error in found if error and not _NO_ERROR_STATUS.fullmatch(error.code))


def titled_error(title: str) -> ErrorCode | None:
    """Return the error if a title begins with a status, code in backticks or a word that can only be one.

    None for other titles and for statuses below 400.
    """
    text = title if "`" in title else text_of(title)
    is_named = _STATUS_ITEM.match(text) or _ERROR_NAME.match(text)
    found = _listed_error(text) if is_named else None
    return found if found and not _NO_ERROR_STATUS.fullmatch(found.code) else None


def _listed_error(item: str) -> ErrorCode | None:
    """Return the error in a list item, or None. A code takes precedence over an HTTP status before it."""
    status = _STATUS_ITEM.match(item)
    rest = item[status.end() :] if status else item
    if name := _ERROR_NAME.match(rest) or (_CAMEL_CASE.match(rest) if status else None):
        message = text_of(rest[name.end() :]).strip(" :：-–—*")
        about = f"{message} (HTTP {status[1]})".strip() if status else message
        return ErrorCode(code=name[1] or name[2], message=about)
    if status:
        message = text_of(item).partition(status[1])[2]
        return ErrorCode(code=status[1], message=message.strip(" :：-–—"))
    if match := LIST_ITEM.match(item):
        return ErrorCode(
            code=text_of(match["name"]), message=text_of(match["rest"]).strip(" :：-–—")
        )
    return None


def is_scope_label(label: str) -> bool:
    """Return whether the label of a row or line announces permissions."""
    return _LABEL.fullmatch(label) is not None


def scopes_in(text: str) -> list[PermissionPackage]:
    """Return the permissions in a cell, list or sentence: code spans, and names with dots or colons.

    The rest of the line after a name is its description.
    """
    found: dict[str, str] = {}
    for line in _SEPARATOR.split(text.replace("\\_", "_")):
        for match in _NAME.finditer(line):
            about = text_of(line[match.end() :]).strip(" :：-–—|()（）.。")
            found.setdefault(match[1] or match[2], about)
    # If there are names such as `files:read`, other code spans are conditions: "with `mode` = `all`".
    is_qualified = any(map(_QUALIFIED.search, found))
    return [
        PermissionPackage(name=name, description=about)
        for name, about in found.items()
        if not is_qualified or _QUALIFIED.search(name)
    ]


def scopes_of_sentences(paragraph: str) -> list[PermissionPackage]:
    """Return the permissions of the sentences that state what a call requires.

    In a sentence without a word for permissions, only names such as `files:read` are permissions.
    """
    found: list[PermissionPackage] = []
    for text in _SENTENCE_END.split(paragraph):
        if len(text) <= MAX_SENTENCE_CHARS and _STATEMENT.search(text):
            found += scopes_in(text)
        elif len(text) <= MAX_SENTENCE_CHARS and (named := _NAMED_SCOPE.findall(text)):
            found += [scope for names in named for scope in scopes_in(names)]
        elif len(text) <= MAX_SENTENCE_CHARS and _NEED.search(text):
            found += [PermissionPackage(name=name) for name in _COLON_NAME.findall(text)]
    return found


def scopes_of_value(value: str) -> list[PermissionPackage]:
    """Return the permissions in the text after a label.

    These are names in code or with dots or colons. Without such names, a single word is a permission;
    several words are permissions if each contains `_`, `:` or `.`.
    """
    if found := scopes_in(value):
        return found
    words = [word for word in re.split(r"[\s、,，;；|]+", text_of(value)) if word]
    is_list = bool(words) and all(map(_WORD.fullmatch, words))
    is_names = is_list and (len(words) == 1 or all(re.search(r"[_:.]", word) for word in words))
    return [PermissionPackage(name=word) for word in words] if is_names else []


def scopes_of_facts(label: str, value: str) -> list[PermissionPackage]:
    """Return the permissions of a row or line with a label.

    If the label does not announce permissions, the value must do so ("scope `contracts.transfer`"), or all
    its code spans must be like `files:read`.
    """
    if is_scope_label(label):
        return scopes_of_value(value)
    is_stated = _SCOPE_AND_NAME.search(value) or _COLON_NAMES.fullmatch(value)
    return scopes_in(value) if is_stated else []


def scopes_of_rows(rows: TableRows, columns: Columns) -> list[PermissionPackage]:
    """Return a permission for each row; empty if there are more than `MAX_PERMISSIONS` rows.

    If a column has the title "Permission", the permissions are the code in it. Otherwise, the names are in
    the column with the most identifiers, and the descriptions in the first other column.
    """
    if len(rows) > MAX_PERMISSIONS:
        return []
    cells = [columns.cell(row, "scope") for row in rows]
    if any("`" in cell for cell in cells):
        return [scope for cell in cells for scope in scopes_of_value(cell)]
    width = max((len(row) for row in rows), default=0)
    name_at = max(range(width), key=lambda index: _count_identifiers(rows, index), default=0)
    about_at = 1 if name_at == 0 else 0
    return [
        PermissionPackage(
            name=text_of(row[name_at]),
            description=text_of(row[about_at]) if len(row) > about_at else "",
        )
        for row in rows
        if len(row) > name_at and text_of(row[name_at])
    ]


def _count_identifiers(rows: TableRows, index: int) -> int:
    cells = (text_of(row[index]) for row in rows if index < len(row))
    return sum(_WORD.fullmatch(cell) is not None for cell in cells)
