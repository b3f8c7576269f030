"""Whether what stands behind a secret's name is a secret, or talk about one."""

import re
from enum import IntEnum

from app.masking.secret_names import SecretKind, names_secret
from app.masking.text_spans import is_random


class SyntaxConfidence(IntEnum):
    """How sure the syntax is that a value stands here."""

    SAID = 0
    """In a sentence: the token is …"""
    WRITTEN = 1
    """Behind a colon or in a table, as values and explanations are."""
    ASSIGNED = 2
    """token=…, <token>…"""
    QUOTED = 3
    """A literal."""


_STAND_IN = re.compile(
    r"[<{\[$%#@(!‹].*|.*(?:\*{3}|x{4}|X{4}|\.{3}|…|‹|›|\$\{|\{\{|[<{]\w+[>}]).*|[xX*.#_-]+"
    r"|(?:your|my|some|the|test|demo|example|sample)?[-_ ]?"
    r"(?:app|api|access|secret|client|user|new|old|refresh)?[-_ ]?"
    r"(?:key|secret|token|password|sign|signature|session|value)"
    r"|(?:your|my|some|insert|replace|enter|put|change|redacted|masked|hidden)(?:[-_ ].*|me)?",
    re.IGNORECASE,
)
_TALK = re.compile(
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

_SENT = re.compile(r"\d{3,10}|(?=\D*\d)[A-Za-z0-9-]{4,10}")

_SHORTEST = {
    SecretKind.KEY: 4,
    SecretKind.SECRET: 4,
    SecretKind.PASSWORD: 3,
    SecretKind.TOKEN: 4,
    SecretKind.SIGN: 8,
    SecretKind.AUTHORIZATION: 6,
    SecretKind.COOKIE: 4,
}
_LONG = 256
"""Characters of which nothing but a secret, or a text, has more."""
_LETTERS_ALONE = 8
"""Characters from which a bare word may be a token, where a value certainly stands."""

_NAMED_LIKE_WORDS = {SecretKind.SECRET, SecretKind.PASSWORD}
"""People choose words for them."""


def is_plausible(kind: SecretKind, value: str, firmness: SyntaxConfidence) -> bool:
    """Whether `value` is a secret of that kind, not a placeholder, a type, a formula or a word about it."""
    if len(value) > _LONG:
        return kind is SecretKind.COOKIE or (value.isascii() and " " not in value)
    if _is_no_value(value):
        return False
    if kind is SecretKind.PERSONAL:
        return _PERSONAL.fullmatch(value) is not None
    if kind is SecretKind.ONE_TIME:
        return _SENT.fullmatch(value) is not None
    if kind is SecretKind.OPAQUE:
        return is_random(value, shortest=12)
    if firmness < SyntaxConfidence.QUOTED and _is_code(value):
        return False
    if " " in value and kind is not SecretKind.COOKIE and kind is not SecretKind.AUTHORIZATION:
        return (
            kind in _NAMED_LIKE_WORDS
            and firmness is SyntaxConfidence.QUOTED
            and _is_passphrase(value)
        )
    return len(value) >= _SHORTEST[kind] and _is_chosen(kind, value, firmness)


def _is_no_value(value: str) -> bool:
    """Whether `value` stands for one, is a word about it, an address, or the name itself."""
    if any(pattern.fullmatch(value) for pattern in (_STAND_IN, _TALK, _ADDRESS)):
        return True
    return _NAME.fullmatch(value) is not None and names_secret(value)


def is_plausible_unmarked(kind: SecretKind, value: str) -> bool:
    """Whether `value` is one although nothing but a space stands between it and the name."""
    if not is_plausible(kind, value, SyntaxConfidence.SAID):
        return False
    if kind in (SecretKind.PERSONAL, SecretKind.ONE_TIME):
        return True
    if kind in (SecretKind.KEY, SecretKind.PASSWORD) and len(value) >= 8:
        return any(map(str.isdigit, value))
    return is_random(value, shortest=12)


def _is_chosen(kind: SecretKind, value: str, firmness: SyntaxConfidence) -> bool:
    if not value.isascii():
        return kind in _NAMED_LIKE_WORDS and any(map(str.isdigit, value))
    if value.isdigit():
        return _is_number(kind, value, firmness)
    if any(map(str.isdigit, value)):
        return firmness > SyntaxConfidence.SAID or len(value) >= 6
    if firmness is SyntaxConfidence.SAID:
        return is_random(value)
    if kind in _NAMED_LIKE_WORDS:
        return True
    if firmness is SyntaxConfidence.QUOTED:
        return kind is not SecretKind.SIGN or len(value) >= _LETTERS_ALONE
    return (
        firmness is SyntaxConfidence.ASSIGNED
        and len(value) >= _LETTERS_ALONE
        and not _WORDS.fullmatch(value)
    )


def _is_number(kind: SecretKind, value: str, firmness: SyntaxConfidence) -> bool:
    """Whether digits alone are a secret: not a lifetime in seconds, nor an error code."""
    if kind in (SecretKind.KEY, SecretKind.PASSWORD, SecretKind.SECRET):
        return firmness > SyntaxConfidence.SAID or len(value) >= 6
    return len(value) >= (6 if firmness >= SyntaxConfidence.ASSIGNED else 8)


def _is_code(value: str) -> bool:
    """Whether `value` computes or names the secret: md5(text), config.token, appSecret + params."""
    if _CALL.fullmatch(value):
        return True
    if not _CODE.fullmatch(value):
        return False
    parts = re.split(r"\W+|\d+$", value)
    return any(names_secret(part) for part in parts if not any(map(str.isdigit, part)))


def _is_passphrase(value: str) -> bool:
    words = value.split()
    return len(words) <= 5 and any(map(str.isdigit, value)) and not any(map(_TALK.fullmatch, words))
