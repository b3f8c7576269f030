"""Decides whether the value after the name of a secret is a secret or part of an explanation."""

import re
from enum import IntEnum

from app.masking.secret_names import SecretKind, names_secret
from app.masking.text_spans import is_random


class SyntaxConfidence(IntEnum):
    """How strongly the syntax before a text indicates that the text is a value."""

    SENTENCE = 0
    """In a sentence or in a table, as in "the token is …"."""
    LABELLED = 1
    """After a colon, where both values and explanations occur."""
    ASSIGNED = 2
    """After an assignment or a tag, as in "token=…" and "<token>…"."""
    QUOTED = 3
    """A quoted literal."""


_PLACEHOLDER = re.compile(
    r"[<{\[$%#@(!‹].*|.*(?:\*{3}|x{4}|X{4}|\.{3}|…|‹|›|\$\{|\{\{|[<{]\w+[>}]).*|[xX*.#_-]+"
    r"|(?:your|my|some|the|test|demo|example|sample)?[-_ ]?"
    r"(?:app|api|access|secret|client|user|new|old|refresh)?[-_ ]?"
    r"(?:key|secret|token|password|sign|signature|session|value)"
    r"|(?:your|my|some|insert|replace|enter|put|change|redacted|masked|hidden)(?:[-_ ].*|me)?",
    re.IGNORECASE,
)
_EXPLANATION = re.compile(
    r"(?:true|false|null|none|nil|undefined|nan|yes|no|on|off|ok|empty|blank"
    r"|str(?:ing)?|int(?:eger)?|long|number|bool(?:ean)?|object|array|list|map|text|bytes|varchar|uuid|jwt|type"
    r"|required|optional|mandatory|deprecated|missing|invalid|valid|expired|wrong|incorrect|correct|error|failed|failure"
    r"|success|unauthorized|forbidden|denied|mismatch|unknown|header|query|body|path|form|cookie|param(?:eter)?"
    r"|refresh(?:ed)?|generated?|returned|issued|revoked|basic|bearer|digest|oauth2?|isv|this|that|what|how|why|when|not"
    r"|uppercase|lowercase|upper|lower|encrypted|encoded|plain|same|different|changed|required\W?|login|user|admin)"
    r"|(?:hmac|md5|sha|rsa|aes|des|sm[234]|hex|base64|utf|gbk|ascii|pkcs|ecdsa|ed25519)[-_/a-z0-9]{0,24}"
    r"|\d+(?:\.\d+)?(?:ms|s|sec|min|m|h|d|days?|hours?|minutes?|bits?|bytes?|chars?|位|%)"
    r"|\d{1,3}[-~]\d{1,3}|v?\d+(?:\.\d+){1,3}",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"[a-z]{2,10}://.*|/[a-z_]+(?:/[a-z_.-]+)*/?|[\w./-]+\.(?:pem|key|crt|cer|p12|pfx|jks)",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z_]+(?:-[A-Za-z]+)*")
_CALL = re.compile(r"[A-Za-z_][\w.]*[(\[].*")
_CODE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::|\+)[A-Za-z_]\w*)*;?")
_WORDS = re.compile(r"[A-Za-z]+(?:[._-][A-Za-z]+)*")
_PERSONAL = re.compile(r"(?:\+|%2B)?[\d() -]{5,24}[\dXx]|[^\s@]+(?:@|%40)[^\s@]+")

_ONE_TIME_CODE = re.compile(r"\d{3,10}|(?=\D*\d)[A-Za-z0-9-]{4,10}")

_MIN_CHARS = {
    SecretKind.KEY: 4,
    SecretKind.SECRET: 4,
    SecretKind.PASSWORD: 3,
    SecretKind.TOKEN: 4,
    SecretKind.SIGN: 8,
    SecretKind.AUTHORIZATION: 6,
    SecretKind.COOKIE: 4,
}
"""Minimum length of a secret by kind, in characters."""

_MAX_PLAIN_CHARS = 256
"""Maximum length of a value that is checked in detail, in characters.

A longer value is a secret unless it has spaces or characters outside ASCII.
"""

_MIN_LETTERS_ONLY_CHARS = 8
"""Minimum length of a token without digits, in characters."""

_WORD_KINDS = {SecretKind.SECRET, SecretKind.PASSWORD}
"""The kinds of secrets for which people choose words."""


def is_plausible(kind: SecretKind, value: str, confidence: SyntaxConfidence) -> bool:
    """Return whether `value` can be a secret of `kind`.

    Placeholders, types, formulas and explanations are not plausible.
    """
    if len(value) > _MAX_PLAIN_CHARS:
        return kind is SecretKind.COOKIE or (value.isascii() and " " not in value)
    if _is_placeholder_or_explanation(value):
        return False
    if kind is SecretKind.PERSONAL:
        return _PERSONAL.fullmatch(value) is not None
    if kind is SecretKind.ONE_TIME:
        return _ONE_TIME_CODE.fullmatch(value) is not None
    if kind is SecretKind.OPAQUE:
        return is_random(value, min_chars=12)
    if confidence < SyntaxConfidence.QUOTED and _is_code(value):
        return False
    if " " in value and kind is not SecretKind.COOKIE and kind is not SecretKind.AUTHORIZATION:
        return (
            kind in _WORD_KINDS and confidence is SyntaxConfidence.QUOTED and _is_passphrase(value)
        )
    return len(value) >= _MIN_CHARS[kind] and _has_secret_characters(kind, value, confidence)


def _is_placeholder_or_explanation(value: str) -> bool:
    """Return whether `value` is a placeholder, an explanation, an address, or the name of a secret."""
    if any(pattern.fullmatch(value) for pattern in (_PLACEHOLDER, _EXPLANATION, _ADDRESS)):
        return True
    return _NAME.fullmatch(value) is not None and names_secret(value)


def is_plausible_without_separator(kind: SecretKind, value: str) -> bool:
    """Return whether `value` can be a secret of `kind` although no separator follows the name."""
    if not is_plausible(kind, value, SyntaxConfidence.SENTENCE):
        return False
    if kind in (SecretKind.PERSONAL, SecretKind.ONE_TIME):
        return True
    if kind in (SecretKind.KEY, SecretKind.PASSWORD) and len(value) >= 8:
        return any(map(str.isdigit, value))
    return is_random(value, min_chars=12)


def _has_secret_characters(kind: SecretKind, value: str, confidence: SyntaxConfidence) -> bool:
    if not value.isascii():
        return kind in _WORD_KINDS and any(map(str.isdigit, value))
    if value.isdigit():
        return _is_secret_number(kind, value, confidence)
    if any(map(str.isdigit, value)):
        return confidence > SyntaxConfidence.SENTENCE or len(value) >= 6
    if confidence is SyntaxConfidence.SENTENCE:
        return is_random(value)
    if kind in _WORD_KINDS:
        return True
    if confidence is SyntaxConfidence.QUOTED:
        return kind is not SecretKind.SIGN or len(value) >= _MIN_LETTERS_ONLY_CHARS
    return (
        confidence is SyntaxConfidence.ASSIGNED
        and len(value) >= _MIN_LETTERS_ONLY_CHARS
        and not _WORDS.fullmatch(value)
    )


def _is_secret_number(kind: SecretKind, value: str, confidence: SyntaxConfidence) -> bool:
    """Return whether a number is a secret rather than a duration or an error code."""
    if kind in (SecretKind.KEY, SecretKind.PASSWORD, SecretKind.SECRET):
        return confidence > SyntaxConfidence.SENTENCE or len(value) >= 6
    return len(value) >= (6 if confidence >= SyntaxConfidence.ASSIGNED else 8)


def _is_code(value: str) -> bool:
    """Return whether `value` is code, such as md5(text), config.token or appSecret+params."""
    if _CALL.fullmatch(value):
        return True
    if not _CODE.fullmatch(value):
        return False
    parts = re.split(r"\W+|\d+$", value)
    return any(names_secret(part) for part in parts if not any(map(str.isdigit, part)))


def _is_passphrase(value: str) -> bool:
    words = value.split()
    has_digit = any(map(str.isdigit, value))
    return len(words) <= 5 and has_digit and not any(map(_EXPLANATION.fullmatch, words))
