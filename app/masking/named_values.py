"""Finds secrets by the name before them, such as `token` or `password`, in text that developers paste.

The name can be in code, in a request or log, in a table, or in a sentence. A value is found in three steps:
match the separator after the name, find where the value ends, and check that the value is plausible for the
name. Without a separator, as in "password hunter22", a stricter check applies. In a table, the value is in
the same row after the name, or in the column under the name.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from app.masking.secret_names import (
    NAME_TOKENS,
    SecretKind,
    SyntaxConfidence,
    is_plausible,
    is_plausible_without_separator,
    names_secret,
    secret_kind,
    unqualified_name,
)
from app.masking.text_spans import QUOTE, TextSpan, match_end

_SPACE = r"[ \t]{0,8}"
_VERB = (
    r"(?:(?![码号])[一-龥]){0,4}"
    r"(?:是|为|就是|(?:填|用|传|设|写|配|换|改|变|设置|配置|生成)(?:的是|的|了|成|为){0,2})[:：]?"
    r"|(?:(?!code|id\b|num|order|trace|request)[a-z]{1,12} ){0,7}(?:is|was|be|equals|set to)(?=[ :]):?"
    r"|(?<=password )to(?= )|(?:for|of|on|in) [a-z0-9 _.-]{1,30}:"
)
# Each separator is a group, and the keys of `_CONFIDENCE` are the names of these groups. The comment for a
# group shows an example of the separator, with the name `token`.
_SEPARATOR = re.compile(
    rf"(?P<closed>{QUOTE}|\*\*|[”’」』])?\]?(?:{_SPACE}[（(][^()（）\n]{{0,30}}[)）])?{_SPACE}(?:"
    rf"(?P<pair>,?\s{{0,40}}{QUOTE}?value{QUOTE}?\s{{0,4}}[:=])"  # {"name": "token", "value": "…"}
    r"|(?P<encoded>%(?P<level>(?:25){0,4})3[AD])"  # token%3D…
    r"|(?P<assigned>:\s?(?:str|string|bytes|any|SecretStr)\s?=|=>|:=|={1,3}|＝|\\u003D)"  # token=…
    # token: …, where `broken` is a line break before the value
    r"|(?P<colon>->|→|[:：]|\\u003A)(?:\*\*)?(?P<broken>[ \t]{0,4}(?:[>|][+-]?)?\r?\n)?"
    r"|(?P<cell>\|)"  # | token | … |
    r"|(?P<argument>,)"  # put("token", "…")
    r"|(?P<call>\()"  # setToken("…")
    r"|(?P<element>(?:\s[^<>\n]{0,60})?>)"  # <token>…</token>
    r"|(?P<bracket>\[)"  # token[…]
    rf"|(?P<verb>{_VERB})"  # the token is …
    r")[ \t]{0,20}",
    re.IGNORECASE,
)
_CONFIDENCE = {
    "pair": SyntaxConfidence.LABELLED,
    "encoded": SyntaxConfidence.ASSIGNED,
    "assigned": SyntaxConfidence.ASSIGNED,
    "colon": SyntaxConfidence.LABELLED,
    "cell": SyntaxConfidence.SENTENCE,
    "argument": SyntaxConfidence.SENTENCE,
    "call": SyntaxConfidence.SENTENCE,
    "element": SyntaxConfidence.ASSIGNED,
    "bracket": SyntaxConfidence.SENTENCE,
    "verb": SyntaxConfidence.SENTENCE,
}
_KEY_SEGMENT = re.compile(r":[\w{}.-]{1,60}:")
"""The part `:42:` after the name in a key such as shop:token:42:lock."""
_VALUE_GAP = re.compile(r"[ \t]{1,4}")
_SETTER = re.compile(
    r"(?:set|with|put|add)_?[A-Z].*|app_?key|api_?key|secret|token|password", re.IGNORECASE
)
_OPENING = re.compile(
    r"(?:\[\s{0,20}|(?:new )?(?:\[\]byte|bytes|[A-Za-z]{0,20}(?:Str|String))\()?[bfruBFRU@]?"
    rf"(?P<quote>{QUOTE}|[“‘「『])"
)
_CLOSING = {"“": "”", "‘": "’", "「": "」", "『": "』"}
_BARE = re.compile(r"(?:(?!\#/|&quot;|[.](?:\s|$)|[\"'`<>,;&|)}\]\\])[!-~])+")
_GROUPED = re.compile(r"\d{3,6}(?:[ -]\d{3,8}){1,5}[Xx]?(?![A-Za-z0-9])")
"""A number with spaces or dashes, such as 110105 19491231 002X."""
_ELEMENT = re.compile(r"(?:<!\[CDATA\[)?(?P<value>[^<\]\n]{1,4096})")
_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]{2,40} +)?+")
"""The optional scheme before credentials, such as Bearer."""
_CREDENTIALS = re.compile(
    r"(?:\w{1,40}=(?:\\{0,4}\"[^\"\\\n]*\\{0,4}\"|[^\s,;\"'`\\‹›]+)(?:[,;][ ]?)?)+"
    r"|[^\s\"'`<>,;\\‹›，。；）)}\]]+",
    re.ASCII,
)
_COOKIE = r"[A-Za-z0-9_.-]{1,60}=[!#-&(-:<-\[\]-_a-~]{0,4096}"
_COOKIES = re.compile(rf"{_COOKIE}(?:;[ ]?(?:{_COOKIE}|[A-Za-z-]{{1,20}}(?=;|\s|$))){{0,60}}")
_PUBLIC_VALUE = re.compile(
    r"(?:[ \t:：=\"'`*|（>/\\-]|(?<=\s)\(|[是为传填用]"
    r"|%(?:25){0,4}(?:3[AD]|2[27])){0,8}(?:(?:is|was)[ :]{1,3})?"
    r"(?P<value>(?:W/\")?[A-Za-z0-9][A-Za-z0-9+/=_-]{5,1000})"
)
_LAST_ARGUMENT = re.compile(rf"{QUOTE}\s{{0,4}}\)")
"""Matches the end of a quoted last argument.

In `put("token", "x")`, "x" is the last argument and therefore the value. In a list of names such as
`("token", "page", "size")`, "page" is not the last argument and therefore not a value.
"""
_END = re.compile(r"[ \t]*(?:$|[\n\r,;&|)}\]<>\"'`\\，。；、）#])")
_GAP = re.compile(r"(?:(?<=no)\.)?[ \t]{0,4}", re.IGNORECASE)
_EXAMPLE = re.compile(r"(?:sample|example|dummy|fake|示例|样例)[ ]?$", re.IGNORECASE)
"""Matches a word before a name that marks the value as an example, as in "sample passport"."""
_MAX_LITERAL_CHARS = 4_096
"""Maximum length of a quoted literal, in characters."""

_CELL = re.compile(r"[ \t*`]{0,8}(?P<value>[^|\n`*]{0,200}?)[ \t*`]{0,8}(?:\||$)")
_MAX_CELLS = 4
"""Maximum number of cells to check after the cell with the name.

A row that describes a parameter may have four more cells: type, "required", description and example.
"""
_HEADER = re.compile(r"[\w .-]{1,60}")
_DELIMITERS = re.compile(r"\|?(?:[ \t]{0,4}:?-{1,80}:?[ \t]{0,4}\|?){2,}")


class _ValueStart(NamedTuple):
    """A position where a value may start, and the syntax before it."""

    position: int
    confidence: SyntaxConfidence
    syntax: str
    """The name of the group in `_SEPARATOR` that matched; "assigned" for an option (`--token`)."""
    level: str = ""
    """The level of percent-encoding of the separator: "" for `%3D`, "25" for `%253D`, and so on."""
    closing_quote: str = ""
    """The closing quotation mark or `**` after the name, if any."""


def _find_value_start(text: str, start: int, end: int) -> _ValueStart | None:
    """Return where the value of the name text[start:end] starts; None if no separator assigns a value."""
    # --token …
    if text.startswith("--", max(start - 2, 0)) and _VALUE_GAP.match(text, end):
        return _ValueStart(match_end(_VALUE_GAP, text, end), SyntaxConfidence.ASSIGNED, "assigned")
    separator = _SEPARATOR.match(text, end)
    if separator is None:
        return None
    syntax = next(name for name in _CONFIDENCE if separator[name])
    closing_quote = separator["closed"] or ""
    if not _may_follow(syntax, text, start, end, closing_quote):
        return None
    confidence = SyntaxConfidence.SENTENCE if separator["broken"] else _CONFIDENCE[syntax]
    return _ValueStart(separator.end(), confidence, syntax, separator["level"] or "", closing_quote)


def _may_follow(syntax: str, text: str, start: int, end: int, closing_quote: str) -> bool:
    """Return whether `syntax` can assign a value to the name text[start:end]."""
    if syntax == "call":
        return _SETTER.fullmatch(unqualified_name(text[start:end])) is not None
    if syntax == "argument":
        return bool(closing_quote)
    if syntax == "element":
        return bool(closing_quote) or text[max(start - 1, 0) : start] in ("<", ":")
    if syntax == "colon":
        in_key = text[max(start - 1, 0) : start] == ":" and text[end + 1 : end + 2].isalnum()
        return not in_key and _KEY_SEGMENT.match(text, end) is None
    return True


def _find_literal(text: str, position: int) -> tuple[int, int] | None:
    """Return the start and end of the text in the quoted literal at `position`, or None.

    A literal without a closing quotation mark ends where an unquoted value would end.
    """
    opening = _OPENING.match(text, position)
    if opening is None:
        return None
    closing = _CLOSING.get(opening["quote"], opening["quote"])
    start = opening.end()
    end = text.find(closing, start, start + _MAX_LITERAL_CHARS)
    while end > 0 and text[end - 1] == "\\" and len(closing) == 1:
        end = text.find(closing, end + 1, start + _MAX_LITERAL_CHARS)
    if text.startswith((" ", "+", ",", ";"), start):
        return None  # the quotation mark closes a literal: "sign=" + sign
    if end < 0 or "\n" in text[start:end]:
        return start, match_end(_BARE, text, start)
    return start, end


def _find_unquoted(text: str, value_start: _ValueStart, kind: SecretKind) -> tuple[int, int]:
    """Return the start and end of an unquoted value; they are equal if there is no value."""
    pattern, position = _BARE, value_start.position
    if value_start.syntax == "element":
        pattern = _ELEMENT
    elif kind is SecretKind.COOKIE:
        pattern = _COOKIES
    elif kind is SecretKind.AUTHORIZATION:
        pattern, position = _CREDENTIALS, match_end(_SCHEME, text, position)
    elif value_start.syntax == "encoded":
        pattern = _percent_encoded(value_start.level)
    elif kind is SecretKind.PERSONAL:
        return position, _word_end(text, position, kind)
    match = pattern.match(text, position)
    if match is None:
        return position, position
    return match.span("value") if "value" in pattern.groupindex else match.span()


def _word_end(text: str, position: int, kind: SecretKind) -> int:
    """Return where the unquoted value at `position` ends. A PERSONAL number may contain spaces."""
    end = match_end(_BARE, text, position)
    return max(end, match_end(_GROUPED, text, position)) if kind is SecretKind.PERSONAL else end


def _percent_encoded(level: str) -> re.Pattern[str]:
    """Return a pattern for a value that ends at the next delimiter encoded at `level`, such as %26 (&)."""
    return re.compile(rf"(?:(?!%{level}(?:26|22|27|2C|7D|0A))[A-Z0-9%.~+/=_!*@-])+", re.IGNORECASE)


class NamedValues(NamedTuple):
    """The values that follow known names in a text. Both lists are in the order of the text."""

    secrets: list[TextSpan]
    public: list[TextSpan]
    """Values that are not secrets, such as order numbers, trace ids and digests."""


def find_named_values(text: str) -> NamedValues:
    """Return the plausible secrets and the public values that follow names in `text`."""
    values = NamedValues([], [])
    position = 0
    while (match := NAME_TOKENS.search(text, position)) is not None:
        position = match.end()
        kind = secret_kind(match["name"]) if match["name"] else None
        if kind is SecretKind.PUBLIC:
            if value := _PUBLIC_VALUE.match(text, position):
                values.public.append(TextSpan(*value.span("value"), match["name"]))
        elif kind and (secret := _secret_after(text, *match.span("name"), kind)):
            values.secrets.append(secret)
            position = secret.end
    return values


def _secret_after(text: str, start: int, end: int, kind: SecretKind) -> TextSpan | None:
    """Return the secret that follows the name text[start:end], or None."""
    name = text[start:end]
    if kind is SecretKind.PERSONAL and _EXAMPLE.search(text, max(start - 8, 0), start):
        return None
    value_start = _find_value_start(text, start, end)
    if value_start is None:
        return _secret_without_separator(text, end, kind, name)
    if value_start.syntax == "cell":
        return _find_secret_in_row(text, value_start.position, kind, name)
    literal = _find_literal(text, value_start.position)
    if value_start.syntax in ("argument", "call") and not (
        literal and _LAST_ARGUMENT.match(text, literal[1])
    ):
        return None
    if name.lower() == "pass" and literal is None:
        kind = SecretKind.OPAQUE  # "pass" may be a verb, or a test result such as "pass: 12"
    secret_start, secret_end = literal or _find_unquoted(text, value_start, kind)
    if kind is SecretKind.AUTHORIZATION:
        secret_start = match_end(_SCHEME, text, secret_start)
    confidence = _syntax_confidence(text, value_start, secret_end, literal is not None)
    if not is_plausible(kind, text[secret_start:secret_end], confidence):
        return None
    # In {"otp": 123456}, the label needs quotation marks, because JSON has to stay valid.
    needs_quotes = (
        value_start.syntax == "colon"
        and literal is None
        and value_start.closing_quote.endswith(('"', "'"))
    )
    return TextSpan(
        secret_start,
        secret_end,
        unqualified_name(name),
        value_start.closing_quote if needs_quotes else "",
    )


def _syntax_confidence(
    text: str, value_start: _ValueStart, end: int, is_quoted: bool
) -> SyntaxConfidence:
    """Return how strongly the syntax indicates a value that ends at `end`.

    For example, "see" in "token: see below" counts as part of a sentence, because more words follow.
    """
    if value_start.syntax in ("argument", "call", "verb"):
        return value_start.confidence
    if is_quoted:
        return SyntaxConfidence.QUOTED
    spaced = value_start.syntax in ("colon", "pair") or text[value_start.position - 1].isspace()
    return (
        SyntaxConfidence.SENTENCE
        if spaced and not _END.match(text, end)
        else value_start.confidence
    )


def _secret_without_separator(text: str, end: int, kind: SecretKind, name: str) -> TextSpan | None:
    """Return the secret that follows `name` without a separator, as in "password hunter22", or None.

    The name ends at `end`. After a Chinese name, the secret may follow without a space.
    """
    position = match_end(_GAP, text, end)
    if name.lower() == "pass":
        return None  # "pass" is a verb here
    if name.isascii() and position == end:
        return None
    value = text[position : _word_end(text, position, kind)]
    if not value or not is_plausible_without_separator(kind, value):
        return None
    return TextSpan(position, position + len(value), unqualified_name(name))


def _find_secret_in_row(text: str, position: int, kind: SecretKind, name: str) -> TextSpan | None:
    """Return the first plausible secret in the `_MAX_CELLS` cells from `position` on, or None."""
    for _ in range(_MAX_CELLS):
        cell = _CELL.match(text, position)
        if cell is None or cell.end() == position:
            return None
        if is_plausible(kind, cell["value"], SyntaxConfidence.SENTENCE):
            return TextSpan(*cell.span("value"), unqualified_name(name))
        position = cell.end()
    return None


def find_secrets_in_columns(text: str) -> Iterator[TextSpan]:
    """Yield the secrets in Markdown tables, in the columns whose headers name secrets."""
    headers: list[str] = []
    position, previous_line = 0, ""
    for line in text.splitlines(keepends=True):
        row = line.strip()
        if "|" not in row:
            headers = []
        elif _DELIMITERS.fullmatch(row):
            headers = [cell["value"] for cell in _cells(previous_line)]
            headers = [header if _HEADER.fullmatch(header) else "" for header in headers]
        else:
            yield from _secrets_under(headers, line, position)
        previous_line = line
        position += len(line)


def _secrets_under(headers: list[str], line: str, position: int) -> Iterator[TextSpan]:
    if not any(map(names_secret, headers)):
        return
    for header, cell in zip(headers, _cells(line), strict=False):
        kind = secret_kind(header)
        if kind not in (None, SecretKind.PUBLIC) and is_plausible(
            kind, cell["value"], SyntaxConfidence.SENTENCE
        ):
            start, end = cell.span("value")
            yield TextSpan(position + start, position + end, unqualified_name(header))


def _cells(line: str) -> list[re.Match[str]]:
    """Return the cells of a row, followed by one empty cell."""
    row = line.strip()
    start = line.index(row) + row.startswith("|")
    return list(_CELL.finditer(line, start, len(line.rstrip())))
