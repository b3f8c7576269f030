"""Reads the permissions that API pages state in tables, lists, lines and sentences.

Platforms call them permissions, scopes, privileges or roles. A `PermissionPackage` is a single permission,
whatever the platform calls it. In function names, "scope" stands for a permission.
"""

import re

from ingestion.sources.api_pages.columns import Columns, TableRows, text_of
from ingestion.text.sentences import first_sentence, split_sentences
from schemas.document import PermissionPackage

MAX_PERMISSIONS = 12
"""Maximum number of rows in a table of permissions.

A longer table lists the permissions of a platform, not those of one operation.
"""

MAX_SENTENCE_CHARS = 300
"""Maximum number of characters in a sentence that states permissions."""

_LABEL = re.compile(
    r".*(?:权限|授权(?:范围|项)|scopes?|permissions?|oauth|privileges?|(?:required|needed) roles?).*"
    r"|roles?|角色",
    re.IGNORECASE,
)
_LINE_BREAK = re.compile(r"<br\s*/?>|\n", re.IGNORECASE)
_STATEMENT = re.compile(
    r"(?:需要|所需|要求|申请|开通|拥有|具备|权限)[^。]{0,20}(?:权限|[:：](?!//))"
    r"|\b(?:requires?|needs?|required|scopes?|permissions?|privileges?)\b.{0,60}"
    r"\b(?:scopes?|permissions?|roles?|privileges?)\b"
    r"|\b(?:scopes?|permissions?|privileges?)\b.{0,20}[:：`]|权限\s*`"
    r"|\A\W{0,3}(?:roles?|角色)\W{0,3}[:：]\W{0,4}`",
    re.IGNORECASE,
)
"""A text about permissions that a call needs, such as "需要 … 权限", "requires the scope" or "Scope: `"."""
_NAME = re.compile(
    r"`((?=[^`]*[A-Za-z])(?!\\|https?:/*`|<?none>?`)[^`\s\[\](){}]{2,80})`|(?<![\w./:@-])([a-z][\w-]*(?:[:.](?:[\w-]+|\*(?!\*)))+)(?![\w/])"
)
_OWNER = re.compile(
    r"\s*所?(?:对应|属于?|代表)的?\s*(?:用户|账[号户]|成员|应用|机器人)|\s+belongs\b", re.IGNORECASE
)
"""Words after the name of a credential that refer to its owner: "the user that `token` belongs to"."""
_NAMES_IN_CODE = re.compile(r"`([^`\s,]+(?:,[^`\s,]+)+)`")
"""Several names in one code span: "`files:read,files:write`"."""
_CODE_OR_DOTTED = (
    r"(?:`[^`\s]{2,80}`|(?<![\w./:@-])(?:\*\*|__|[*_\"“])?[a-z][\w-]*(?:[:.](?:[\w-]+|\*(?!\*)))+)"
    r"(?:\*\*|__|[*_\"”])?"
)
_ENUMERATION = (
    rf"{_CODE_OR_DOTTED}(?:(?:\s*[,，、/和或]\s*|,?\s+(?:and|or)\s+){_CODE_OR_DOTTED}){{0,5}}"
)
_NAMED_SCOPE = re.compile(
    rf"{_ENUMERATION}\s*(?:(?:(?:oauth|access) )?(?:scope|permission|privilege)s?\b|权限)",
    re.IGNORECASE,
)
"""Names and a word for permissions right after them: "with the `files:read` scope"."""
_CALLER = r"\b(?:keys?|tokens?|callers?|users?|accounts?|members?|apps?|clients?|you)\b"
_ROLE_OF_CALLER = re.compile(
    rf"(?:\bonly\b.{{0,40}}{_CALLER}|{_CALLER}.{{0,20}}\b(?:must|ha(?:s|ve) to)\b).{{0,60}}\broles?\b",
    re.IGNORECASE,
)
"""A condition such as "Only users with the `editor` role" or "The key must have the role `editor`"."""
_NAMED_ROLE = re.compile(rf"{_ENUMERATION}\s?roles?\b|\broles?\s?{_ENUMERATION}", re.IGNORECASE)
_CONSTANT = r"[A-Z][A-Z\d]{0,40}(?:_[A-Z\d]{1,40}){1,8}(?!\w)"
_CONSTANT_SCOPE = re.compile(
    rf"(?:\b(?i:scope|permission|privilege|role)s?|权限)\s?[:：]?\s?({_CONSTANT})"
    rf"|(?<![\w`])({_CONSTANT})\s?(?:(?i:scope|permission|privilege|role)\b|权限)"
)
"""A name in capitals right next to a word for permissions: "needs the permission FILE_READ"."""
_SEPARATOR = re.compile(r"<br\s*/?>|\n|[;；、,，]\s*(?=`)|</li>|\s[·•|]\s")
_NEXT_NAME = re.compile(
    r"\s*(?:[.。]|(?:[,，、/|&]\s*)?(?:\b(?:and|or)\b|[或和及与]|[,，、/&])\s*`)", re.IGNORECASE
)
"""What follows a name without a description: the end of the sentence, or another name."""
_WORD = re.compile(r"(?!(?:none|any)$)[A-Za-z][\w.:*-]{2,79}", re.IGNORECASE)
"""A word that can be the name of a permission."""
_COLON_NAME = re.compile(r"`([a-z][\w.-]*(?::[a-z*][\w.*-]*)+)`")
_COLON = re.compile(r"[\w.-]:[\w*]")
_ACTION = re.compile(r"[a-z][\w.-]*(?::[\w.*-]+)+", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")
_NEED = re.compile(r"\b(?:needs?|requires?|required|only)\b|需要|要求|所需", re.IGNORECASE)
_REQUIREMENT = re.compile(
    r"\A\W*(?:(?:oauth|access|api) )?(?:scope|permission|privilege)s?\b|\A\W*(?:权限|授权(?:范围|项))"
    r"|\b(?:needs?|requires?|required|must|only)\b|需(?!求)|要求|必须|仅|只有|先(?:申请|开通)",
    re.IGNORECASE,
)
"""A word for permissions at the start of a sentence, or a word that says that something is required."""
_SCOPE_AND_NAME = re.compile(r"(?:\b(?:scopes?|permissions?)|权限)\s*[:：]?\s*`", re.IGNORECASE)
_ONLY_COLON_NAMES = re.compile(r"[^`]*(?:`[a-z][\w.-]*(?::[\w.*-]+)+`[^`]*)+")


def is_scope_label(label: str) -> bool:
    """Return whether the label of a row or line announces permissions."""
    return _LABEL.fullmatch(label) is not None


def begins_with_permissions(paragraph: str) -> bool:
    """Return whether the first sentence of `paragraph` states the permissions that are required.

    True for "Required scope: `files:read`", but not for "Revokes all permissions".
    """
    sentence = first_sentence(" ".join(paragraph.split()))
    text = text_of(sentence)
    label, *value = re.split("[:：]", text, maxsplit=1)
    if value and is_scope_label(label):
        return True
    is_required = _REQUIREMENT.search(text) is not None or bool(scopes_of_sentences(sentence))
    return is_scope_label(text) and is_required


def scopes_in(text: str) -> list[PermissionPackage]:
    """Return the permissions in a cell, list or sentence: code spans, and names with dots or colons.

    The rest of the line after a name is its description, unless the sentence ends, or another name follows
    as in "`a` or `b`". These names are left out:

    - Names before words such as "belongs to", because they are credentials.
    - Names without colons, if there are names with colons, such as `files:read`.
    - Names without colons in a sentence that follows, on the same line, a sentence that names a permission;
      unless their own sentence states permissions or begins with a code span.
    """
    found: dict[str, str] = {}
    text = _NAMES_IN_CODE.sub(lambda names: names[0].replace(",", "`, `"), text)
    for line in _SEPARATOR.split(text.replace("\\_", "_")):
        start, is_named = 0, False
        for sentence in split_sentences(line):
            end = start + len(sentence)
            begins_with_name = sentence.lstrip(" *_").startswith("`")
            is_stated = not is_named or begins_with_name or _STATEMENT.search(sentence) is not None
            for match in _NAME.finditer(line, start, end):
                name = match[1] or match[2]
                is_credential = _OWNER.match(line, match.end()) is not None
                if (is_stated or _COLON.search(name)) and not is_credential:
                    is_named = True
                    found.setdefault(name, _description(line[match.end() :]))
            start = end
    # If there are names such as `files:read`, leave out the other code spans. They are conditions, as in
    # "with `mode` = `all`".
    has_colon_name = any(map(_COLON.search, found))
    return [
        PermissionPackage(name=name, description=about)
        for name, about in found.items()
        if not has_colon_name or _COLON.search(name)
    ]


def _description(rest: str) -> str:
    """Return the description in the rest of a line after a name.

    It is empty if the sentence ends or another name follows, or if the rest is the number of a footnote.
    """
    text = "" if _NEXT_NAME.match(rest) else text_of(rest).strip(" :：-–—|()（）.。")
    return "" if text.isdigit() else text


def scopes_of_sentences(paragraph: str) -> list[PermissionPackage]:
    """Return the permissions of the sentences that state what a call requires.

    In a sentence without a word for permissions, only names such as `files:read` are permissions.
    """
    found: list[PermissionPackage] = []
    lines = _LINE_BREAK.split(paragraph)
    for text in (sentence for line in lines for sentence in split_sentences(line)):
        if len(text) > MAX_SENTENCE_CHARS:
            continue
        if _STATEMENT.search(text):
            found += scopes_in(text) or _scopes_in_capitals(text)
        elif named := _names_with_word(text):
            found += [scope for names in named for scope in scopes_in(names)]
        elif _NEED.search(text):
            found += [PermissionPackage(name=name) for name in _COLON_NAME.findall(text)]
            found += _scopes_in_capitals(text)
    return found


def _scopes_in_capitals(sentence: str) -> list[PermissionPackage]:
    """Return the names in capitals, such as `FILE_READ`, that are next to a word for permissions."""
    names = _CONSTANT_SCOPE.findall(sentence)
    return [PermissionPackage(name=before or after) for before, after in names]


def _names_with_word(sentence: str) -> list[str]:
    """Return phrases such as "`files:read` scope".

    The phrase "role `editor`" counts if the sentence says that callers must have the role.
    """
    is_role = _ROLE_OF_CALLER.search(sentence) is not None
    return _NAMED_SCOPE.findall(sentence) or (_NAMED_ROLE.findall(sentence) if is_role else [])


def scopes_of_value(value: str) -> list[PermissionPackage]:
    """Return the permissions in the text after a label, such as "`read`, `write`" or "FILE_READ".

    The result is empty for several plain words, such as "any role".
    """
    if found := scopes_in(value):
        return found
    words = [word for word in re.split(r"[\s、,，;；|]+", text_of(value)) if word]
    is_list = bool(words) and all(map(_WORD.fullmatch, words))
    are_names = is_list and (len(words) == 1 or all(re.search(r"[_:.]", word) for word in words))
    return [PermissionPackage(name=word) for word in words] if are_names else []


def scopes_of_facts(label: str, value: str) -> list[PermissionPackage]:
    """Return the permissions of a row or line with a label.

    If the label does not announce permissions, the value must do so, as in "scope `contracts.transfer`", or
    all its code spans must look like `files:read`.
    """
    if is_scope_label(label):
        return scopes_of_value(value)
    is_stated = _SCOPE_AND_NAME.search(value) or _ONLY_COLON_NAMES.fullmatch(value)
    return scopes_in(value) if is_stated else []


def scopes_of_rows(rows: TableRows, columns: Columns) -> list[PermissionPackage]:
    """Return the permissions of the rows; empty if there are more than `MAX_PERMISSIONS` rows.

    If a column with a title such as "Permission" contains code, the code spans are the permissions.
    Otherwise, the names are in the column with the most identifiers, and the descriptions are in the first
    of the other columns.
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
        if len(row) > name_at and _LETTER.search(text_of(row[name_at]))
    ]


def scopes_of_actions(rows: TableRows) -> list[PermissionPackage]:
    """Return the permissions in the first column whose cells all look like `files:Read`; may be empty.

    Some platforms call such permissions actions.
    """
    for column in zip(*rows, strict=False):
        names = list(map(text_of, column))
        if all(map(_ACTION.fullmatch, names)) and len(names) <= MAX_PERMISSIONS:
            return [PermissionPackage(name=name) for name in names]
    return []


def _count_identifiers(rows: TableRows, index: int) -> int:
    cells = (text_of(row[index]) for row in rows if index < len(row))
    return sum(_WORD.fullmatch(cell) is not None for cell in cells)
