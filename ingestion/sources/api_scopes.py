"""Reads the permissions that API pages name in tables, lists, labelled lines and sentences."""

import re

from ingestion.sources.api_columns import TableRows, text_of
from schemas.api_document import PermissionPackage

MAX_SENTENCE_CHARS = 300
"""A longer sentence does not state permissions."""

_LABEL = re.compile(r".*(?:权限|授权范围|scopes?|permissions?|oauth).*", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!])\s+(?=[A-Z*_`])|[。！]\s*|<br\s*/?>|\n", re.IGNORECASE)
_STATEMENT = re.compile(
    r"(?:需要|所需|要求|申请|开通|拥有|具备|权限)[^。]{0,20}(?:权限|[:：])"
    r"|\b(?:requires?|needs?|required|scopes?|permissions?)\b.{0,60}\b(?:scopes?|permissions?)\b"
    r"|\b(?:scopes?|permissions?)\b.{0,20}[:：`]",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"`([^`\s]{2,80})`|(?<![\w./:@-])([a-z][\w-]*(?:[:.](?:[\w-]+|\*(?!\*)))+)(?![\w/])"
)
_SEPARATOR = re.compile(r"<br\s*/?>|\n|[;；、,，]\s*(?=`)|</li>")
_WORD = re.compile(r"[A-Za-z][\w.:*-]{2,79}")
_COLON_NAMES = re.compile(r"[^`]*(?:`[a-z][\w.-]*(?::[\w.*-]+)+`[^`]*)+")


def is_scope_label(label: str) -> bool:
    """Return whether the label of a row or line announces permissions."""
    return _LABEL.fullmatch(label) is not None


def scopes_in(text: str) -> list[PermissionPackage]:
    """Return the permissions in a cell, list or sentence: code spans and dotted names.

    What follows a name on its line describes it.
    """
    found: dict[str, str] = {}
    for line in _SEPARATOR.split(text.replace("\\_", "_")):
        for match in _NAME.finditer(line):
            about = text_of(line[match.end() :]).strip(" :：-–—|()（）.。")
            found.setdefault(match[1] or match[2], about)
    return [PermissionPackage(name=name, description=about) for name, about in found.items()]


def scopes_of_sentences(paragraph: str) -> list[PermissionPackage]:
    """Return the permissions of the sentences that state what a call requires."""
    sentences = (text.strip() for text in _SENTENCE_END.split(paragraph))
    stated = (
        text for text in sentences if len(text) <= MAX_SENTENCE_CHARS and _STATEMENT.search(text)
    )
    return [scope for text in stated for scope in scopes_in(text)]


def scopes_of_value(value: str) -> list[PermissionPackage]:
    """Return the permissions after a label: names in code or with dots, else a list of words."""
    if found := scopes_in(value):
        return found
    words = [word for word in re.split(r"[\s、,，;；|]+", text_of(value)) if word]
    is_list = bool(words) and all(map(_WORD.fullmatch, words))
    is_names = is_list and (len(words) == 1 or all(re.search(r"[_:.]", word) for word in words))
    return [PermissionPackage(name=word) for word in words] if is_names else []


def scopes_of_facts(label: str, value: str) -> list[PermissionPackage]:
    """Return the permissions of a row or line with a label.

    Without a label that announces them, only names such as `files:read` are permissions.
    """
    if is_scope_label(label):
        return scopes_of_value(value)
    return scopes_in(value) if _COLON_NAMES.fullmatch(value) else []


def scopes_of_rows(rows: TableRows) -> list[PermissionPackage]:
    """Return a permission per row.

    The cell with the name is in the column with most identifiers, and the text before or after it
    describes it.
    """
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
