"""Masks secrets in texts. For example, mask("sign=9f8e…&page=1") returns "sign=‹sign›&page=1"."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from string import ascii_letters, digits
from types import MappingProxyType

from app.masking.named_values import find_named_secrets, find_secrets_in_columns
from app.masking.personal_data import find_personal_data, is_identity_number
from app.masking.secret_shapes import find_secrets_by_shape
from app.masking.text_spans import TextSpan, blank_out

_MIN_REPEATED_CHARS = 8
"""Minimum length, in characters, of a named secret that is also masked elsewhere in the text.

Such a secret must also contain a digit.
"""

_MIN_KNOWN_CHARS = 4
"""Minimum length, in characters, of a secret that is also masked in other texts."""

_WIDE = "＠－＿．" + "".join(chr(0xFEE0 + ord(char)) for char in ascii_letters + digits)
_NARROW = str.maketrans(_WIDE, "@-_." + ascii_letters + digits)
"""Maps full-width characters to their usual forms, because a secret may be written in either form."""
_WIDE_CHAR = re.compile(f"[{_WIDE}]")


def mask(text: str, known_secrets: Mapping[str, str] = MappingProxyType({})) -> str:
    """Replace each secret and each item of personal data in `text` with ‹name›.

    `known_secrets` maps further secrets to their names, for example the `SecretScan.secrets` of another
    text. These secrets are replaced as well. Masking a masked text does not change it.
    """
    narrow = _narrow(text)
    known = _repeated(narrow, known_secrets)
    return _replace(text, _merge_overlapping([*_secrets(narrow), *known]))


class SecretScan:
    """The secrets and personal data of one text. The text is scanned once, on first access."""

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def has_secret(self) -> bool:
        """Whether `masked` differs from the text."""
        return bool(self._spans)

    @property
    def masked(self) -> str:
        """The text with ‹name› in place of each secret, as `mask` returns it."""
        return _replace(self._text, self._spans)

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secrets with their names, for masking other texts that quote this text.

        Such a text may lack the syntax by which a secret is recognised. Secrets shorter than
        `_MIN_KNOWN_CHARS` are left out.
        """
        found = _labels(_narrow(self._text), self._spans)
        return {secret: label for secret, label in found.items() if len(secret) >= _MIN_KNOWN_CHARS}

    @cached_property
    def _spans(self) -> list[TextSpan]:
        return _secrets(self._text)


def _secrets(text: str) -> list[TextSpan]:
    """Return the spans of secrets in `text`, in order and without overlaps."""
    text = _narrow(text)
    named, public = find_named_secrets(text)
    named += find_secrets_in_columns(text)
    rest = blank_out(text, named)
    labels = _labels(text, named)
    repeated = list(
        _repeated(rest, {key: labels[key] for key in filter(_is_maskable_anywhere, labels)})
    )
    # The value of a public name such as `cert_no` is still masked if it is an identity number.
    public = [span for span in public if not is_identity_number(text[span.start : span.end])]
    rest = blank_out(rest, [*public, *repeated])
    shaped = list(find_secrets_by_shape(rest))
    personal = find_personal_data(blank_out(rest, shaped))
    return _merge_overlapping([*named, *repeated, *shaped, *personal])


def _narrow(text: str) -> str:
    """Return `text` with the usual forms of full-width characters. The length does not change."""
    return text.translate(_NARROW) if _WIDE_CHAR.search(text) else text  # translating is slow


def _replace(text: str, spans: Iterable[TextSpan]) -> str:
    """Return `text` with each span replaced by its label."""
    parts, position = [], 0
    for span in spans:
        parts += [text[position : span.start], span.quote, f"‹{span.label}›", span.quote]
        position = span.end
    return "".join([*parts, text[position:]])


def _labels(text: str, spans: Iterable[TextSpan]) -> dict[str, str]:
    return {text[span.start : span.end]: span.label for span in spans}


def _is_maskable_anywhere(secret: str) -> bool:
    return len(secret) >= _MIN_REPEATED_CHARS and any(map(str.isdigit, secret))


def _repeated(text: str, labels: Mapping[str, str]) -> Iterable[TextSpan]:
    for secret, label in labels.items():
        start = text.find(secret)
        while start >= 0:
            yield TextSpan(start, start + len(secret), label)
            start = text.find(secret, start + len(secret))


def _merge_overlapping(spans: list[TextSpan]) -> list[TextSpan]:
    """Sort `spans`, and merge those that overlap. A merged span has the label of the first."""
    merged: list[TextSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged
