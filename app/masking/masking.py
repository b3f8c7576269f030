"""Masks secrets in texts. For example, mask("sign=9f8e…&page=1") returns "sign=‹sign›&page=1"."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from string import ascii_letters, digits
from types import MappingProxyType

from pydantic import JsonValue

from app.masking.named_values import find_named_secrets, find_secrets_in_columns
from app.masking.secret_names import (
    SecretKind,
    SyntaxConfidence,
    is_plausible,
    secret_kind,
    unqualified_name,
)
from app.masking.secret_shapes import (
    find_personal_data,
    find_secrets_by_shape,
    is_identity_number,
)
from app.masking.text_spans import TextSpan, blank_out

_MIN_REPEATED_CHARS = 8
"""Minimum length, in characters, of a named secret that is also masked elsewhere in the text.

Such a secret must also contain a digit.
"""

_MIN_KNOWN_CHARS = 4
"""Minimum length, in characters, of a secret that is also masked in other texts."""

_WIDE = "＠－＿．" + "".join(chr(0xFEE0 + ord(char)) for char in ascii_letters + digits)
_NARROW = str.maketrans(_WIDE, "@-_." + ascii_letters + digits)
"""Full-width characters, in which secrets are recognised as well, and their usual forms."""


def mask(text: str, known_secrets: Mapping[str, str] = MappingProxyType({})) -> str:
    """Replace each secret and each item of personal data in `text` with ‹name›.

    `known_secrets` maps further secrets to their names, such as `SecretScan.secrets` of another text.
    They are replaced as well. Masking a masked text does not change it.
    """
    known = _repeated(text.translate(_NARROW), known_secrets)
    return _replace(text, _merge_overlapping([*_secrets(text), *known]))


def mask_json(value: JsonValue) -> JsonValue:
    """Mask the strings in `value`, and the values whose keys name a secret.

    A number that is masked becomes a string.
    """
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [mask_json(item) for item in value]
    if isinstance(value, dict):
        return {
            mask(key): _mask_named(_value_name(key, value), item) for key, item in value.items()
        }
    if value is None or isinstance(value, bool):
        return value
    masked = mask(str(value))
    return value if masked == str(value) else masked


class SecretScan:
    """The secrets of one text. The text is scanned once, on first access."""

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
        """The secrets with their names, to mask them in texts derived from the text.

        A derived text may lack the syntax from which a secret can be recognised. Secrets shorter than
        `_MIN_KNOWN_CHARS` are left out.
        """
        text = self._text.translate(_NARROW)
        found = {text[span.start : span.end]: span.label for span in self._spans}
        return {secret: label for secret, label in found.items() if len(secret) >= _MIN_KNOWN_CHARS}

    @cached_property
    def _spans(self) -> list[TextSpan]:
        return _secrets(self._text)


def has_secret(text: str) -> bool:
    """Return whether `mask` would change `text`."""
    return bool(_secrets(text))


def _value_name(key: str, pair: dict[str, JsonValue]) -> str:
    """Return the name of a value: `key`, or "sign" for the value in {"name": "sign", "value": …}."""
    names = (pair.get(naming) for naming in ("name", "key")) if key.lower() == "value" else ()
    return next((name for name in names if isinstance(name, str)), key)


def _mask_named(name: str, value: JsonValue) -> JsonValue:
    kind = secret_kind(name)
    if isinstance(value, list):
        return [_mask_named(name, item) for item in value]
    if isinstance(value, dict) or value is None or isinstance(value, bool) or kind is None:
        return mask_json(value)
    if kind is SecretKind.PUBLIC:
        return mask_json(value) if has_secret(f"{name}: {value}") else value
    if is_plausible(kind, str(value), SyntaxConfidence.QUOTED):
        return f"‹{unqualified_name(name)}›"
    return mask_json(value)


def _secrets(text: str) -> list[TextSpan]:
    """Return the spans of secrets in `text`, in order and without overlaps."""
    text = text.translate(_NARROW)
    named, public = find_named_secrets(text)
    named += find_secrets_in_columns(text)
    rest = blank_out(text, _positions(named))
    labels = {text[span.start : span.end]: span.label for span in named}
    repeated = list(_repeated(rest, dict(filter(_is_maskable_anywhere, labels.items()))))
    # `cert_no` may be an order's or a person's number; only the latter has a date and a check digit.
    public = [(start, end) for start, end in public if not is_identity_number(text[start:end])]
    rest = blank_out(rest, [*public, *_positions(repeated)])
    shaped = list(find_secrets_by_shape(rest))
    personal = find_personal_data(blank_out(rest, _positions(shaped)))
    return _merge_overlapping([*named, *repeated, *shaped, *personal])


def _replace(text: str, spans: Iterable[TextSpan]) -> str:
    """Return `text` with the label of each span in its place."""
    parts, position = [], 0
    for span in spans:
        parts += [text[position : span.start], span.quote, f"‹{span.label}›", span.quote]
        position = span.end
    return "".join([*parts, text[position:]])


def _positions(spans: list[TextSpan]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


def _is_maskable_anywhere(labelled: tuple[str, str]) -> bool:
    secret, _ = labelled
    return len(secret) >= _MIN_REPEATED_CHARS and any(map(str.isdigit, secret))


def _repeated(text: str, labels: Mapping[str, str]) -> Iterable[TextSpan]:
    for secret, label in labels.items():
        start = text.find(secret)
        while start >= 0:
            yield TextSpan(start, start + len(secret), label)
            start = text.find(secret, start + len(secret))


def _merge_overlapping(spans: list[TextSpan]) -> list[TextSpan]:
    """Sort `spans` and merge overlapping ones under the label of the first."""
    merged: list[TextSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged
