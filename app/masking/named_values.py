"""Secrets that a name announces, in every syntax that developers paste."""

import re
from typing import NamedTuple

from app.masking.plausible import SyntaxConfidence, is_plausible, is_plausible_unmarked
from app.masking.secret_names import TOKENS, SecretKind, kind_of, own_name
from app.masking.separators import ValuePlace, place_behind
from app.masking.spans import QUOTE, TextSpan, end_of
from app.masking.tables import secret_in_row
from app.masking.written_values import after_scheme, bare_at, literal_at, word_at

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
