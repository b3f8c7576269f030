"""Finds secrets and personal data that can be recognised by their format alone, without a name.

Personal data are e-mail addresses, telephone numbers, Chinese identity numbers and bank card numbers.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date

from app.masking.secret_names import NAME_TOKENS, names_secret
from app.masking.text_spans import QUOTE, TextSpan, blank_out, is_random

_NOT_A_PLACEHOLDER = r"(?![<{$*‹]|(?:x{3,}|pwd|pass|passwd|password|secret|token)(?:[@\s\"']|$))"

_SHAPES = {
    "private_key": re.compile(
        r"-----BEGIN (?:[A-Z]{1,12} ){0,3}PRIVATE KEY-----.*?"
        r"(?:-----END (?:[A-Z]{1,12} ){0,3}PRIVATE KEY-----|\Z)",
        re.DOTALL,
    ),
    "password": re.compile(
        rf"(?<=://)[^\s:/@\"'<>‹]{{0,80}}:(?P<of_url>{_NOT_A_PLACEHOLDER}[^\s/@\"'<>‹]{{1,200}})@"
        r"|\bcurl\b[^\n]{0,400}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"'‹]{1,80}:"
        rf"(?P<of_curl>{_NOT_A_PLACEHOLDER}[^\s\"'‹]{{1,200}})"
        r"|\b(?:(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,200}?\s-p"
        r"|(?:redis-cli\b[^\n]{0,200}?\s-a|sshpass\s-p)[ ]?[\"']?)"
        rf"(?P<of_option>{_NOT_A_PLACEHOLDER}[^\s\"'‹]{{3,200}})"
        rf"|\bauth\s{{0,3}}[=:]\s{{0,3}}[\[(]\s{{0,3}}{QUOTE}[^\s\"']{{1,80}}{QUOTE}\s{{0,3}},\s{{0,3}}{QUOTE}"
        rf"(?P<of_tuple>{_NOT_A_PLACEHOLDER}[^\s\"'‹›]{{1,200}})"
    ),
    "jwt": re.compile(
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"
    ),
    "authorization": re.compile(
        r"\b(?:Bearer|Basic)\s{1,4}"
        r"(?P<value>(?=[A-Za-z._~+/-]{0,200}[0-9=])[A-Za-z0-9._~+/-]{8,}={0,2})"
    ),
    "key": re.compile(
        r"(?<![A-Za-z0-9])(?:"
        r"(?:sk|pk|rk|ak|at|rt|hf|npm|gh[opsur]|github_pat|glpat|xox[abeprs]|whsec)[-_]"
        r"(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{14,}"
        r"|(?:A[KS]IA|LTAI|AKID|AIza|ya29\.|SG\.)"
        r"(?=[A-Za-z_.-]{0,60}[0-9])[A-Za-z0-9_.-]{12,}(?<![.-]))"
    ),
    "webhook": re.compile(
        r"hooks?(?=[./])[A-Za-z0-9_./-]{0,80}?(?:/|\?key=)"
        r"(?P<token>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
        r"|[A-Z0-9]{8,12}/[A-Z0-9]{8,12}/[A-Za-z0-9]{20,})"
    ),
}

_LOGIN = re.compile(
    r"登[录陆不]|[口密][令码]|账[号户]|\b(?:log(?:ged|ging)?|sign(?:ed|ing)?)[ -]?(?:in|on)\b"
    r"|\b(?:login|passwords?|credentials?)\b",
    re.IGNORECASE,
)
_TYPED = re.compile(
    r"(?:[用输试填入从][了的]?|\b(?:with|using|typed?|enter(?:ed)?|tried)[ ]|[\w)][ ]?/)[ ]?"
    r"(?P<value>[A-Za-z0-9][^\s\"'`,;:，。；：、（）()<>{}‹›|=&/\\]{7,60})",
    re.IGNORECASE,
)
"""What is typed at a login, as in "log in with …" or "admin / …"."""

_VERSION = re.compile(r"[A-Za-z]+[-_ ]?v?[0-9.]+")

_DIGEST_NAME = re.compile(
    r"(?<![A-Za-z])(?<!hmac[-_])(?:sha-?(?:1|256|384|512)|md5|checksum|digest|commit|revision|git\b)"
    r"|摘要|校验和|哈希",
    re.IGNORECASE,
)

_HEX = re.compile(r"(?<![A-Za-z0-9])[0-9A-Fa-f]{32,}(?![A-Za-z0-9])")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}(?:={1,2}|(?:%3D){1,2})?", re.IGNORECASE)
_PIECE = re.compile(r"[A-Za-z0-9+]+")
_UUID = re.compile(
    r"(?<![A-Za-z0-9-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![A-Za-z0-9-])", re.IGNORECASE
)
_FILE = re.compile(r"\.[A-Za-z]{2,5}\b")

_CLIENT = re.compile(r"(?:Client|Credentials?|Auth|Signer|SDK|Sdk)\((?P<arguments>[^()\n]{0,400})")
_ARGUMENT = re.compile(rf"{QUOTE}(?P<value>(?=[A-Za-z_-]{{0,60}}\d)[A-Za-z0-9_-]{{6,200}}){QUOTE}")


def find_secrets_by_shape(text: str) -> Iterator[TextSpan]:
    """Yield each secret in `text` that has a known format; spans may overlap."""
    for label, pattern in _SHAPES.items():
        spans = [
            TextSpan(*match.span(match.lastgroup or 0), label) for match in pattern.finditer(text)
        ]
        text = blank_out(text, spans)
        yield from spans
    yield from _sdk_credentials(text)
    yield from _typed_passwords(text)
    yield from _random_strings(text)


def _sdk_credentials(text: str) -> Iterator[TextSpan]:
    """Yield the credentials in the arguments of an SDK client, as in Client(url, "key1", "secret2")."""
    for call in _CLIENT.finditer(text):
        for argument in _ARGUMENT.finditer(text, *call.span("arguments")):
            yield TextSpan(*argument.span("value"), "credential")


def _typed_passwords(text: str) -> Iterator[TextSpan]:
    """Yield words that a person would choose as a password, in lines about a login."""
    for match in _TYPED.finditer(text):
        value = match["value"]
        has_both_cases = not value.islower() and not value.isupper()
        is_chosen = has_both_cases and sum(map(str.isdigit, value)) >= 2
        if is_chosen and not _VERSION.fullmatch(value) and _LOGIN.search(_line(text, match)):
            yield TextSpan(*match.span("value"), "password")


def _is_digest(text: str, match: re.Match[str]) -> bool:
    """Return whether the line of `match` or the one before names a digest, and neither names a secret."""
    line_start = text.rfind("\n", 0, match.start())
    line = text[text.rfind("\n", 0, max(line_start, 0)) + 1 : line_start + 1] + _line(text, match)
    return _DIGEST_NAME.search(line) is not None and not any(
        names_secret(name["name"]) for name in NAME_TOKENS.finditer(line) if name["name"]
    )


def _line(text: str, match: re.Match[str]) -> str:
    return text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]


def _random_strings(text: str) -> Iterator[TextSpan]:
    """Yield long hexadecimal and base64 strings, except UUIDs (request ids) and file names."""
    uuids = {match.span() for match in _UUID.finditer(text)}
    for pattern, is_random_string in ((_HEX, _is_random_hex), (_BASE64, _is_random_base64)):
        for match in pattern.finditer(text):
            is_file = _FILE.match(text, match.end()) is not None
            is_public = match.span() in uuids or is_file or _is_digest(text, match)
            if is_random_string(match[0]) and not is_public:
                yield TextSpan(*match.span(), "secret")


def _is_random_hex(text: str) -> bool:
    """Return whether a string of hexadecimal digits is random.

    The check is lenient, because few other strings are this long.
    """
    return is_random(text, max_mean_run=8)


def _is_random_base64(text: str) -> bool:
    """Return whether `text` is random, and also one of its parts between dashes and slashes."""
    pieces = _PIECE.findall(text)
    return any(is_random(piece, min_chars=16) for piece in pieces) and is_random(text)


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
"""Chinese mobile, landline and service numbers, E.164 numbers, and the North American format."""

_IDENTITY = re.compile(
    r"(?<![A-Za-z0-9])[1-9]\d{5}[ -]?(?P<year>(?:18|19|20)\d{2})[ -]?(?P<month>\d{2})(?P<day>\d{2})"
    r"[ -]?\d{3}[\dXx](?![A-Za-z0-9])"
)
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
)

_CARD = re.compile(
    r"(?<![A-Za-z0-9.])(?:62(?:[ -]?\d){14,17}|(?:4\d|5[1-5]|2[2-7]|35)(?:[ -]?\d){14}"
    r"|3[47](?:[ -]?\d){13})(?![A-Za-z0-9]|-\d)"
)
"""Prefixes and lengths of card networks."""


def is_identity_number(text: str) -> bool:
    """Return whether `text` is a Chinese identity number."""
    match = _IDENTITY.fullmatch(text)
    return match is not None and _is_identity_number(match)


def _is_identity_number(match: re.Match[str]) -> bool:
    """Return whether the date and the check digit (GB 11643) are valid."""
    try:
        date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        return False
    digits = [10 if char in "Xx" else int(char) for char in match[0] if char.isalnum()]
    return sum(digit << 17 - index for index, digit in enumerate(digits)) % 11 == 1


def _is_iban(match: re.Match[str]) -> bool:
    """Return whether the check digits (ISO 13616) are valid."""
    text = match[0].replace(" ", "")
    return int("".join(str(int(char, 36)) for char in text[4:] + text[:4])) % 97 == 1


def _is_luhn(match: re.Match[str]) -> bool:
    """Return whether the check digit (ISO/IEC 7812) is valid."""
    digits = [int(character) for character in reversed(match[0]) if character.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


_PERSONAL_DATA: Sequence[tuple[str, re.Pattern[str], Callable[[re.Match[str]], bool]]] = (
    ("email", _EMAIL, bool),
    ("phone", _PHONE, bool),
    ("id_card", _IDENTITY, _is_identity_number),
    ("iban", _IBAN, _is_iban),
    ("bank_card", _CARD, _is_luhn),
)
"""Label, format, and check of each kind."""


def find_personal_data(text: str) -> Iterator[TextSpan]:
    """Yield each item of personal data in `text`; spans may overlap."""
    for label, pattern, is_valid in _PERSONAL_DATA:
        for match in pattern.finditer(text):
            if is_valid(match):
                yield TextSpan(*match.span(), label)
