"""What tells who somebody is, by shape: e-mail addresses, telephone, identity and bank card numbers."""

import re
from collections.abc import Iterator
from datetime import date

from app.masking.spans import TextSpan

_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._+%-])(?!git@)[A-Za-z0-9][A-Za-z0-9._+-]*+(?:@|%(?:25){0,4}40)"
    r"(?:[A-Za-z0-9-]{1,63}\.){1,8}(?!(?:png|jpe?g|gif|svg|webp)\b)[A-Za-z]{2,18}(?![A-Za-z0-9])"
)
_PHONE = re.compile(
    r"(?<![A-Za-z0-9_+-])(?<!\d\.)(?:"
    r"(?:(?:(?:\+|%2B|00)86|\(\+?86\)|86)[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4}"
    r"|(?:(?:\+|%2B)86[ -]?)?(?:\(0\d{2,3}\)[ -]?|0\d{2,3}[ -])\d{7,8}(?:-\d{1,6})?"
    r"|[48]00-\d{3,4}-\d{3,4}"
    r"|(?:\+|%2B)[1-9](?:[ ().-]{0,2}\d){7,14}"
    r"|(?:\(\d{3}\)[ ]?|\d{3}-)\d{3}-\d{4}"
    r")(?![A-Za-z0-9_]|-\d|\.\d)"
)
"""Chinese mobiles and landlines, service numbers, E.164, and the North American form."""

_IDENTITY = re.compile(
    r"(?<![A-Za-z0-9])[1-9]\d{5}(?P<year>(?:18|19|20)\d{2})(?P<month>\d{2})(?P<day>\d{2})"
    r"\d{3}[\dXx](?![A-Za-z0-9])"
)
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CHECK = "10X98765432"

_CARD = re.compile(
    r"(?<![A-Za-z0-9.])(?:62(?:[ -]?\d){14,17}|(?:4\d|5[1-5]|2[2-7]|35)(?:[ -]?\d){14}"
    r"|3[47](?:[ -]?\d){13})(?![A-Za-z0-9]|-\d)"
)
"""The prefixes and lengths that the card networks issue."""


def personal_numbers(text: str) -> Iterator[TextSpan]:
    """Each of them in `text`; a place may be given more than once."""
    for label, pattern in (("email", _EMAIL), ("phone", _PHONE)):
        for match in pattern.finditer(text):
            yield TextSpan(*match.span(), label)
    for match in _IDENTITY.finditer(text):
        if _is_identity(match):
            yield TextSpan(*match.span(), "id_card")
    for match in _CARD.finditer(text):
        if _is_luhn(match[0]):
            yield TextSpan(*match.span(), "bank_card")


def _is_identity(match: re.Match[str]) -> bool:
    """Whether date and check digit (GB 11643) are right."""
    try:
        date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        return False
    digits = match[0].upper()
    total = sum(weight * int(digit) for weight, digit in zip(_WEIGHTS, digits, strict=False))
    return _CHECK[total % 11] == digits[-1]


def _is_luhn(text: str) -> bool:
    """Whether the check digit (ISO/IEC 7812) is right."""
    digits = [int(character) for character in reversed(text) if character.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
