"""What stands between a name and its value, in code, in requests, in logs and in sentences.
Where a value ends: a literal at its quotation mark, anything else where its syntax says.
Secrets that a name announces, in every syntax that developers paste.
"""

import re
from typing import NamedTuple

from app.masking.plausibility import SyntaxConfidence, is_plausible, is_plausible_unmarked
from app.masking.secret_names import TOKENS, SecretKind, kind_of, own_name
from app.masking.tables import secret_in_row
from app.masking.text_spans import QUOTE, TextSpan, end_of

_SPACE = r"[ \t]{0,8}"
_SAID = (
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
    rf"|(?P<said>{_SAID})"
    r")[ \t]{0,20}",
    re.IGNORECASE,
)
_FIRMNESS = {
    "pair": SyntaxConfidence.WRITTEN,
    "encoded": SyntaxConfidence.ASSIGNED,
    "assigned": SyntaxConfidence.ASSIGNED,
    "colon": SyntaxConfidence.WRITTEN,
    "cell": SyntaxConfidence.SAID,
    "argument": SyntaxConfidence.SAID,
    "call": SyntaxConfidence.SAID,
    "element": SyntaxConfidence.ASSIGNED,
    "bracket": SyntaxConfidence.SAID,
    "said": SyntaxConfidence.SAID,
}
_VALUE_GAP = re.compile(r"[ \t]{1,4}")
_SETTER = re.compile(
    r"(?:set|with|put|add)_?[A-Z].*|app_?key|api_?key|secret|token|password", re.IGNORECASE
)


class ValuePlace(NamedTuple):
    """Where a value may begin, and what the syntax before it says."""

    position: int
    firmness: SyntaxConfidence
    syntax: str
    """pair, encoded, assigned, colon, cell, argument, call, element, bracket or said."""
    level: str = ""
    """How often the separator is percent-encoded: a 25 for each time after the first."""
    closed: str = ""
    """The quotation mark behind the name."""


def place_behind(text: str, start: int, end: int) -> ValuePlace | None:
    """Where the value of the name text[start:end] begins; None if no separator says so."""
    if text.startswith("--", max(start - 2, 0)) and _VALUE_GAP.match(text, end):
        return ValuePlace(end_of(_VALUE_GAP, text, end), SyntaxConfidence.ASSIGNED, "assigned")
    separator = _SEPARATOR.match(text, end)
    if separator is None:
        return None
    syntax = next(name for name in _FIRMNESS if separator[name])
    closed = separator["closed"] or ""
    if not _may_follow(syntax, text, start, end, closed):
        return None
    firmness = SyntaxConfidence.SAID if separator["broken"] else _FIRMNESS[syntax]
    return ValuePlace(separator.end(), firmness, syntax, separator["level"] or "", closed)


def _may_follow(syntax: str, text: str, start: int, end: int, closed: str) -> bool:
    """Whether the name text[start:end] is one to which `syntax` gives a value."""
    if syntax == "call":
        return _SETTER.fullmatch(own_name(text[start:end])) is not None
    if syntax == "argument":
        return bool(closed)
    if syntax == "element":
        return bool(closed) or text[max(start - 1, 0) : start] in ("<", ":")
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
_LONGEST = 4_096
"""Characters of a literal."""


def literal_at(text: str, position: int) -> tuple[int, int] | None:
    """Where the inside of a literal lies that begins at `position`, if one does."""
    opening = _OPENING.match(text, position)
    if opening is None:
        return None
    closing = _CLOSING.get(opening["quote"], opening["quote"])
    start = opening.end()
    end = text.find(closing, start, start + _LONGEST)
    while end > 0 and text[end - 1] == "\\" and len(closing) == 1:
        end = text.find(closing, end + 1, start + _LONGEST)
    if text.startswith((" ", "+", ",", ";"), start):
        return None  # it ended there: "sign=" + sign
    if end < 0 or "\n" in text[start:end]:
        return start, end_of(_BARE, text, start)  # cut off
    return start, end


def bare_at(text: str, place: ValuePlace, kind: SecretKind) -> tuple[int, int]:
    """Where a value without quotation marks lies; empty if there is none."""
    pattern, position = _BARE, place.position
    if place.syntax == "element":
        pattern = _ELEMENT
    elif kind is SecretKind.COOKIE:
        pattern = _COOKIES
    elif kind is SecretKind.AUTHORIZATION:
        pattern, position = _CREDENTIALS, after_scheme(text, position)
    elif place.syntax == "encoded":
        pattern = _percent_encoded(place.level)
    found = pattern.match(text, position)
    if found is None:
        return position, position
    return found.span("value") if "value" in pattern.groupindex else found.span()


def word_at(text: str, position: int) -> str:
    """The value that begins at `position` with nothing before it; empty if there is none."""
    return text[position : end_of(_BARE, text, position)]


def after_scheme(text: str, position: int) -> int:
    """Where the credentials of an Authorization header begin."""
    return end_of(_SCHEME, text, position)


def _percent_encoded(level: str) -> re.Pattern[str]:
    """A value up to the next mark that is encoded as often as the one before it."""
    return re.compile(rf"(?:(?!%{level}(?:26|22|27|2C|7D|0A))[A-Z0-9%.~+/=_!*@-])+", re.IGNORECASE)


_KEPT = re.compile(
    r"(?:[ \t:：=\"'`*|(（>/\\-]|是|为|%(?:25){0,4}(?:3[AD]|2[27])){0,8}(?:(?:is|was)[ :]{1,3})?"
    r"(?P<value>[A-Za-z0-9-]{6,64})"
)
_LAST = re.compile(rf"{QUOTE}\s{{0,4}}\)")
"""The end of a call; a name in a list is followed by another name."""
_END = re.compile(r"[ \t]*(?:$|[\n\r,;&|)}\]<>\"'`\\，。；、）#])")
_GAP = re.compile(r"[ \t]{0,4}")


class NamedSecrets(NamedTuple):
    """What stands behind names in a text, in order."""

    secrets: list[TextSpan]
    kept: list[tuple[int, int]]
    """Where the values of orders, traces and digests are, which are no secrets."""


def announced(text: str) -> NamedSecrets:
    """The values in `text` behind names, where they look like what the name says."""
    found = NamedSecrets([], [])
    position = 0
    while (match := TOKENS.search(text, position)) is not None:
        position = match.end()
        kind = kind_of(match["name"]) if match["name"] else None
        if kind is SecretKind.PUBLIC:
            if kept := _KEPT.match(text, position):
                found.kept.append(kept.span("value"))
        elif kind and (secret := _secret_behind(text, *match.span("name"), kind)):
            found.secrets.append(secret)
            position = secret.end
    return found


def _secret_behind(text: str, start: int, end: int, kind: SecretKind) -> TextSpan | None:
    """The secret behind the name text[start:end]."""
    name = text[start:end]
    place = place_behind(text, start, end)
    if place is None:
        return _unmarked(text, end, kind, name)
    if place.syntax == "cell":
        return secret_in_row(text, place.position, kind, name)
    literal = literal_at(text, place.position)
    if place.syntax in ("argument", "call") and not (literal and _LAST.match(text, literal[1])):
        return None
    value_start, value_end = literal or bare_at(text, place, kind)
    if kind is SecretKind.AUTHORIZATION:
        value_start = after_scheme(text, value_start)
    firmness = _firmness(text, place, value_end, literal is not None)
    if not is_plausible(kind, text[value_start:value_end], firmness):
        return None
    quoted = place.syntax == "colon" and literal is None and place.closed.endswith(('"', "'"))
    return TextSpan(value_start, value_end, own_name(name), place.closed if quoted else "")


def _firmness(text: str, place: ValuePlace, end: int, literal: bool) -> SyntaxConfidence:
    """How sure a value stands there: words that go on behind it are a sentence."""
    if place.syntax in ("argument", "call", "said"):
        return place.firmness
    if literal:
        return SyntaxConfidence.QUOTED
    spaced = place.syntax in ("colon", "pair") or text[place.position - 1].isspace()
    return SyntaxConfidence.SAID if spaced and not _END.match(text, end) else place.firmness


def _unmarked(text: str, end: int, kind: SecretKind, name: str) -> TextSpan | None:
    """The secret right behind a name that ends at `end`, with nothing between that says so."""
    position = end_of(_GAP, text, end)
    if name.isascii() and position == end:
        return None
    value = word_at(text, position)
    if not value or not is_plausible_unmarked(kind, value):
        return None
    return TextSpan(position, position + len(value), own_name(name))
