"""Secrets after a name: the separator, the extent of the value, and its plausibility.

Covers the syntaxes that developers paste: code, requests, logs, tables and sentences.
"""

import re
from typing import NamedTuple

from app.masking.plausibility import SyntaxConfidence, is_plausible, is_plausible_without_separator
from app.masking.secret_names import NAME_TOKENS, SecretKind, secret_kind, unqualified_name
from app.masking.tables import find_secret_in_row
from app.masking.text_spans import QUOTE, TextSpan, match_end

_SPACE = r"[ \t]{0,8}"
_VERB = (
    r"(?:(?![码号])[一-龥]){0,4}?"
    r"(?:是|为|就是|(?:填|用|传|设|写|配|换|改|变|设置|配置|生成)(?:的是|的|了|成|为)?)[:：]?"
    r"|(?:(?!code|id\b|num|order|trace|request)[a-z]{1,12} ){0,7}(?:is|was|equals|set to)(?=[ :]):?"
)
_SEPARATOR = re.compile(
    rf"(?P<closed>{QUOTE}|\*\*|[”’」』])?\]?(?:{_SPACE}[（(][^()（）\n]{{0,30}}[)）])?{_SPACE}(?:"
    rf"(?P<pair>,?\s{{0,40}}{QUOTE}?value{QUOTE}?\s{{0,4}}[:=])"
    r"|(?P<encoded>%(?P<level>(?:25){0,4})3[AD])"
    r"|(?P<assigned>:\s?(?:str|string|bytes|any|SecretStr)\s?=|=>|:=|={1,3}|＝|\\u003D)"
    r"|(?P<colon>->|→|[:：]|\\u003A)(?:\*\*)?(?P<broken>[ \t]{0,4}(?:[>|][+-]?)?\r?\n)?"
    r"|(?P<cell>\|)"
    r"|(?P<argument>,)"
    r"|(?P<call>\()"
    r"|(?P<element>(?:\s[^<>\n]{0,60})?>)"
    r"|(?P<bracket>\[)"
    rf"|(?P<verb>{_VERB})"
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
_VALUE_GAP = re.compile(r"[ \t]{1,4}")
_SETTER = re.compile(
    r"(?:set|with|put|add)_?[A-Z].*|app_?key|api_?key|secret|token|password", re.IGNORECASE
)


class ValueStart(NamedTuple):
    """A position where a value may start, and the syntax before it."""

    position: int
    confidence: SyntaxConfidence
    syntax: str
    """pair, encoded, assigned, colon, cell, argument, call, element, bracket or verb."""
    level: str = ""
    """Levels of percent-encoding of the separator: one `25` for each level after the first."""
    closing_quote: str = ""
    """The quotation mark after the name."""


def find_value_start(text: str, start: int, end: int) -> ValueStart | None:
    """The start of the value of the name text[start:end]; None without a separator."""
    if text.startswith("--", max(start - 2, 0)) and _VALUE_GAP.match(text, end):
        return ValueStart(match_end(_VALUE_GAP, text, end), SyntaxConfidence.ASSIGNED, "assigned")
    separator = _SEPARATOR.match(text, end)
    if separator is None:
        return None
    syntax = next(name for name in _CONFIDENCE if separator[name])
    closing_quote = separator["closed"] or ""
    if not _may_follow(syntax, text, start, end, closing_quote):
        return None
    confidence = SyntaxConfidence.SENTENCE if separator["broken"] else _CONFIDENCE[syntax]
    return ValueStart(separator.end(), confidence, syntax, separator["level"] or "", closing_quote)


def _may_follow(syntax: str, text: str, start: int, end: int, closing_quote: str) -> bool:
    """Whether `syntax` can assign a value to the name text[start:end]."""
    if syntax == "call":
        return _SETTER.fullmatch(unqualified_name(text[start:end])) is not None
    if syntax == "argument":
        return bool(closing_quote)
    if syntax == "element":
        return bool(closing_quote) or text[max(start - 1, 0) : start] in ("<", ":")
    return True


_OPENING = re.compile(
    r"(?:\[\s{0,20}|(?:new )?(?:\[\]byte|bytes|[A-Za-z]{0,20}(?:Str|String))\()?[bfruBFRU@]?"
    rf"(?P<quote>{QUOTE}|[“‘「『])"
)
_CLOSING = {"“": "”", "‘": "’", "「": "」", "『": "』"}
_BARE = re.compile(r"(?:(?!\#/|&quot;|[.](?:\s|$)|[\"'`<>,;&|)}\]\\])[!-~])+")
_ELEMENT = re.compile(r"(?:<!\[CDATA\[)?(?P<value>[^<\]\n]{1,4096})")
_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]{2,40} +)?+")
_CREDENTIALS = re.compile(
    r"(?:\w{1,40}=(?:\\{0,4}\"[^\"\\\n]*\\{0,4}\"|[^\s,;\"'`\\‹›]+)(?:[,;][ ]?)?)+"
    r"|[^\s\"'`<>,;\\‹›，。；）)}\]]+",
    re.ASCII,
)
_COOKIE = r"[A-Za-z0-9_.-]{1,60}=[!#-&(-:<-\[\]-_a-~]{0,4096}"
_COOKIES = re.compile(rf"{_COOKIE}(?:;[ ]?(?:{_COOKIE}|[A-Za-z-]{{1,20}}(?=;|\s|$))){{0,60}}")
_MAX_LITERAL_CHARS = 4_096


def find_literal(text: str, position: int) -> tuple[int, int] | None:
    """The contents (start, end) of the quoted literal at `position`; None without one."""
    opening = _OPENING.match(text, position)
    if opening is None:
        return None
    closing = _CLOSING.get(opening["quote"], opening["quote"])
    start = opening.end()
    end = text.find(closing, start, start + _MAX_LITERAL_CHARS)
    while end > 0 and text[end - 1] == "\\" and len(closing) == 1:
        end = text.find(closing, end + 1, start + _MAX_LITERAL_CHARS)
    if text.startswith((" ", "+", ",", ";"), start):
        return None  # a closing quotation mark: "sign=" + sign
    if end < 0 or "\n" in text[start:end]:
        return start, match_end(_BARE, text, start)  # truncated
    return start, end


def find_unquoted(text: str, place: ValueStart, kind: SecretKind) -> tuple[int, int]:
    """The extent (start, end) of an unquoted value; empty without one."""
    pattern, position = _BARE, place.position
    if place.syntax == "element":
        pattern = _ELEMENT
    elif kind is SecretKind.COOKIE:
        pattern = _COOKIES
    elif kind is SecretKind.AUTHORIZATION:
        pattern, position = _CREDENTIALS, skip_auth_scheme(text, position)
    elif place.syntax == "encoded":
        pattern = _percent_encoded(place.level)
    match = pattern.match(text, position)
    if match is None:
        return position, position
    return match.span("value") if "value" in pattern.groupindex else match.span()


def read_word(text: str, position: int) -> str:
    """The unquoted word at `position`; empty without one."""
    return text[position : match_end(_BARE, text, position)]


def skip_auth_scheme(text: str, position: int) -> int:
    """The start of the credentials of an Authorization header."""
    return match_end(_SCHEME, text, position)


def _percent_encoded(level: str) -> re.Pattern[str]:
    """A pattern for a value up to the next separator of the same encoding level."""
    return re.compile(rf"(?:(?!%{level}(?:26|22|27|2C|7D|0A))[A-Z0-9%.~+/=_!*@-])+", re.IGNORECASE)


_PUBLIC_VALUE = re.compile(
    r"(?:[ \t:：=\"'`*|(（>/\\-]|是|为|%(?:25){0,4}(?:3[AD]|2[27])){0,8}(?:(?:is|was)[ :]{1,3})?"
    r"(?P<value>[A-Za-z0-9-]{6,64})"
)
_LAST_ARGUMENT = re.compile(rf"{QUOTE}\s{{0,4}}\)")
"""The end of a call; a name in a list would be followed by another one."""
_END = re.compile(r"[ \t]*(?:$|[\n\r,;&|)}\]<>\"'`\\，。；、）#])")
_GAP = re.compile(r"[ \t]{0,4}")


class NamedSecrets(NamedTuple):
    """The values after names in a text, in order."""

    secrets: list[TextSpan]
    public: list[tuple[int, int]]
    """The extents of order numbers, trace ids and digests, which are not secrets."""


def find_named_secrets(text: str) -> NamedSecrets:
    """Find the values after names in `text` that are plausible for the name."""
    values = NamedSecrets([], [])
    position = 0
    while (match := NAME_TOKENS.search(text, position)) is not None:
        position = match.end()
        kind = secret_kind(match["name"]) if match["name"] else None
        if kind is SecretKind.PUBLIC:
            if value := _PUBLIC_VALUE.match(text, position):
                values.public.append(value.span("value"))
        elif kind and (secret := _secret_after(text, *match.span("name"), kind)):
            values.secrets.append(secret)
            position = secret.end
    return values


def _secret_after(text: str, start: int, end: int, kind: SecretKind) -> TextSpan | None:
    """The secret after the name text[start:end]."""
    name = text[start:end]
    place = find_value_start(text, start, end)
    if place is None:
        return _secret_without_separator(text, end, kind, name)
    if place.syntax == "cell":
        return find_secret_in_row(text, place.position, kind, name)
    literal = find_literal(text, place.position)
    if place.syntax in ("argument", "call") and not (
        literal and _LAST_ARGUMENT.match(text, literal[1])
    ):
        return None
    value_start, value_end = literal or find_unquoted(text, place, kind)
    if kind is SecretKind.AUTHORIZATION:
        value_start = skip_auth_scheme(text, value_start)
    confidence = _syntax_confidence(text, place, value_end, literal is not None)
    if not is_plausible(kind, text[value_start:value_end], confidence):
        return None
    quoted = (
        place.syntax == "colon" and literal is None and place.closing_quote.endswith(('"', "'"))
    )
    return TextSpan(
        value_start, value_end, unqualified_name(name), place.closing_quote if quoted else ""
    )


def _syntax_confidence(text: str, place: ValueStart, end: int, literal: bool) -> SyntaxConfidence:
    """The confidence in a value; words that follow it indicate a sentence."""
    if place.syntax in ("argument", "call", "verb"):
        return place.confidence
    if literal:
        return SyntaxConfidence.QUOTED
    spaced = place.syntax in ("colon", "pair") or text[place.position - 1].isspace()
    return SyntaxConfidence.SENTENCE if spaced and not _END.match(text, end) else place.confidence


def _secret_without_separator(text: str, end: int, kind: SecretKind, name: str) -> TextSpan | None:
    """The secret after a name that ends at `end`, separated by a space at most."""
    position = match_end(_GAP, text, end)
    if name.isascii() and position == end:
        return None
    value = read_word(text, position)
    if not value or not is_plausible_without_separator(kind, value):
        return None
    return TextSpan(position, position + len(value), unqualified_name(name))
