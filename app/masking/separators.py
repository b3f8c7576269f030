"""What stands between a name and its value, in code, in requests, in logs and in sentences."""

import re
from typing import NamedTuple

from app.masking.plausible import SyntaxConfidence
from app.masking.secret_names import own_name
from app.masking.spans import QUOTE, end_of

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
