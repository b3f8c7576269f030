"""Where a value ends: a literal at its quotation mark, anything else where its syntax says."""

import re

from app.masking.secret_names import SecretKind
from app.masking.separators import ValuePlace
from app.masking.spans import QUOTE, end_of

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
