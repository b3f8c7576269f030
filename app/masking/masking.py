"""Secrets are taken out of what is kept: mask("sign=9f8e…&page=1") == "sign=‹sign›&page=1"."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pydantic import JsonValue

from app.masking.named_values import announced
from app.masking.plausibility import SyntaxConfidence, is_plausible
from app.masking.secret_names import SecretKind, kind_of, own_name
from app.masking.secret_shapes import personal_numbers, shaped_secrets
from app.masking.tables import secrets_in_columns
from app.masking.text_spans import TextSpan, blanked

_REPEATED = 8
"""Characters from which a secret with a digit is one wherever it stands again: in what was signed."""

_TELLING = 4
"""Characters from which a secret is one in what is made of its text."""


def mask(text: str, known: Mapping[str, str] = MappingProxyType({})) -> str:
    """`text` with ‹name› for each key, signature, token, password, telephone number, e-mail address, and
    for what `secrets_in` another text found.

    Everything else stays as it is; what is masked already stays so.
    """
    parts, position = [], 0
    for span in _apart([*_secrets(text), *_repeated(text, known)]):
        parts += [text[position : span.start], span.quote, f"‹{span.label}›", span.quote]
        position = span.end
    return "".join([*parts, text[position:]])


def mask_value(value: JsonValue) -> JsonValue:
    """`value` with its strings, and what its keys name, masked; a masked number becomes a string."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [mask_value(item) for item in value]
    if isinstance(value, dict):
        return {mask(key): _mask_named(_name_of(key, value), item) for key, item in value.items()}
    if value is None or isinstance(value, bool):
        return value
    masked = mask(str(value))
    return value if masked == str(value) else masked


def secrets_in(text: str) -> Mapping[str, str]:
    """The secrets of `text`, each with its name: what is made of it may show them without the syntax
    by which they are known.
    """
    found = {text[span.start : span.end]: span.label for span in _secrets(text)}
    return {secret: label for secret, label in found.items() if len(secret) >= _TELLING}


def has_secret(text: str) -> bool:
    """Whether `mask` would change `text`."""
    return bool(_secrets(text))


def _name_of(key: str, pair: dict[str, JsonValue]) -> str:
    """`key`, or in {"name": "sign", "value": …} what it is the value of."""
    names = (pair.get(naming) for naming in ("name", "key")) if key.lower() == "value" else ()
    return next((name for name in names if isinstance(name, str)), key)


def _mask_named(name: str, value: JsonValue) -> JsonValue:
    kind = kind_of(name)
    if isinstance(value, list):
        return [_mask_named(name, item) for item in value]
    if isinstance(value, dict) or value is None or isinstance(value, bool) or kind is None:
        return mask_value(value)
    if kind is SecretKind.PUBLIC:
        return mask_value(value) if has_secret(f"{name}: {value}") else value
    if is_plausible(kind, str(value), SyntaxConfidence.QUOTED):
        return f"‹{own_name(name)}›"
    return mask_value(value)


def _secrets(text: str) -> list[TextSpan]:
    """The places of secrets in `text`, in order and apart from each other."""
    named, kept = announced(text)
    named += secrets_in_columns(text)
    rest = blanked(text, _places(named))
    labels = {text[span.start : span.end]: span.label for span in named}
    repeated = list(_repeated(rest, dict(filter(_is_one_anywhere, labels.items()))))
    rest = blanked(rest, [*kept, *_places(repeated)])
    shaped = list(shaped_secrets(rest))
    personal = personal_numbers(blanked(rest, _places(shaped)))
    return _apart([*named, *repeated, *shaped, *personal])


def _places(spans: list[TextSpan]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


def _is_one_anywhere(labelled: tuple[str, str]) -> bool:
    secret, _ = labelled
    return len(secret) >= _REPEATED and any(map(str.isdigit, secret))


def _repeated(text: str, labels: Mapping[str, str]) -> Iterable[TextSpan]:
    for secret, label in labels.items():
        start = text.find(secret)
        while start >= 0:
            yield TextSpan(start, start + len(secret), label)
            start = text.find(secret, start + len(secret))


def _apart(spans: list[TextSpan]) -> list[TextSpan]:
    """`spans` in order; those that overlap become one, named as the first."""
    apart: list[TextSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if apart and span.start < apart[-1].end:
            apart[-1] = apart[-1]._replace(end=max(span.end, apart[-1].end))
        else:
            apart.append(span)
    return apart
