"""Masks secrets and personal data in texts.

For example, mask("sign=9f8e7d6c5b4a3210&page=1") returns "sign=‹sign›&page=1".

Personal data are e-mail addresses, telephone numbers, identity numbers (China, Hong Kong), tax ids (Brazil,
United States), IBANs and bank card numbers. They are found by their format. If a number has check digits,
they must be valid. These are not masked:

- e-mail addresses in reserved domains, such as example.com
- card numbers with at most four different digits, such as the test number 4111 1111 1111 1111
- IBANs, card numbers and tax ids after words that introduce an example, such as "test card"

After a name such as `card_no` or `passport`, any plausible number is masked. This rule does not apply if a
word such as "sample" precedes the name.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from types import MappingProxyType

from app.masking.named_values import find_named_values
from app.masking.secret_names import is_placeholder
from app.masking.secret_shapes import find_secrets_by_shape
from app.masking.tables import find_secrets_in_columns
from app.masking.text_spans import TextSpan, blank_out, has_digit
from app.masking.values_before_names import find_values_before_names

_MIN_REPEATED_CHARS = 8
"""Minimum length, in characters, of a secret that is masked wherever it is repeated.

The secret was found by its name, as in `token=…`, and contains a digit. Repetitions may lack the name.
"""

_MIN_KNOWN_CHARS = 4
"""Minimum length, in characters, of the secrets in `SecretScan.secrets`."""

_WIDE = "＠－＿．" + "".join(
    chr(0xFEE0 + ord(char)) for char in string.ascii_letters + string.digits
)
_TRADITIONAL = (
    "碼鑰權證簽憑據驗號動態電話郵銀護機聯繫訂單為設換變從當輸試錄陸帳賬戶時應樣測編間請標識鏈書結"
)
_SIMPLIFIED = (
    "码钥权证签凭据验号动态电话邮银护机联系订单为设换变从当输试录陆账账户时应样测编间请标识链书结"
)
_NORMAL_FORMS = str.maketrans(
    f"{_WIDE}{_TRADITIONAL}\u3000\u00a0",
    f"@-_.{string.ascii_letters}{string.digits}{_SIMPLIFIED}  ",
)
"""Maps variants of characters to the characters in the patterns.

Full-width characters become ASCII, and special spaces become spaces. The traditional Chinese characters in
names of secrets, such as 密碼, become simplified ones.
"""
_VARIANT = re.compile(f"[{_WIDE}{_TRADITIONAL}\u3000\u00a0]")
_LABEL = re.compile(r"‹[^‹›\n]{1,80}›")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
"""Zero-width characters, which copying from a web page or a chat may add to names and values."""


def mask(text: str, known_secrets: Mapping[str, str] = MappingProxyType({})) -> str:
    """Replace each secret and each item of personal data in `text` with its label, such as ‹sign›.

    `known_secrets` maps secrets that were found in another text to their labels (see `SecretScan.secrets`).
    They are replaced as well, wherever they occur in `text`. Masking a masked text does not change it.
    """
    plain = _PlainText(text)
    known = _occurrences(plain.text, known_secrets)
    return _replace(text, plain.locate(_merge_overlapping([*_secrets(plain.text), *known])))


def is_masked(text: str) -> bool:
    """Return whether `text` consists only of labels such as ‹secret›, and punctuation around them."""
    rest = _LABEL.sub("", text)
    return rest != text and not any(map(str.isalnum, rest))


class _PlainText:
    """A text without zero-width characters, in which `_NORMAL_FORMS` replace variants of characters."""

    def __init__(self, text: str) -> None:
        self.text = _plain(text)
        visible = _INVISIBLE.sub("", self.text)
        self._positions: Sequence[int] = range(len(self.text))
        """The position in the original text of each character of `text`."""
        if visible != self.text:
            self._positions = [
                position for position, char in enumerate(self.text) if not _INVISIBLE.match(char)
            ]
            self.text = visible

    def locate(self, spans: Iterable[TextSpan]) -> list[TextSpan]:
        """Convert `spans` of `text` to spans of the original text. An empty span is not allowed."""
        return [
            span._replace(start=self._positions[span.start], end=self._positions[span.end - 1] + 1)
            for span in spans
        ]


class SecretScan:
    """The secrets and personal data of one text, which is scanned once, when a property is first read."""

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def has_secret(self) -> bool:
        """Whether the text contains a secret or personal data."""
        return bool(self._spans)

    @property
    def masked(self) -> str:
        """The text with each secret replaced by its label, as `mask` returns it."""
        return _replace(self._text, self._plain.locate(self._spans))

    @property
    def secrets(self) -> Mapping[str, str]:
        """Maps each secret to its label, for masking texts that quote this text.

        For example, an answer may quote a token without the `token=` by which it was recognised.
        Secrets shorter than `_MIN_KNOWN_CHARS` are left out.
        """
        found = _labels(self._plain.text, self._spans)
        return {secret: label for secret, label in found.items() if len(secret) >= _MIN_KNOWN_CHARS}

    @cached_property
    def _plain(self) -> _PlainText:
        return _PlainText(self._text)

    @cached_property
    def _spans(self) -> list[TextSpan]:
        return _secrets(self._plain.text)


def _secrets(text: str) -> list[TextSpan]:
    """Return the spans of secrets and personal data in `text`, in order and without overlaps."""
    named, public = find_named_values(text)
    named += find_secrets_in_columns(text)
    named += find_values_before_names(blank_out(text, named))
    rest = blank_out(text, named)
    repeatable = {
        secret: label
        for secret, label in _labels(text, named).items()
        if len(secret) >= _MIN_REPEATED_CHARS and has_digit(secret)
    }
    repeated = list(_occurrences(rest, repeatable))
    # `public` contains values whose names, such as `cert_no`, show that they are not secrets. A Chinese
    # identity number is masked even after such a name.
    public = [
        span for span in public if not _is_chinese_identity_number(text[span.start : span.end])
    ]
    rest = blank_out(rest, [*public, *repeated])
    shaped = list(find_secrets_by_shape(rest))
    personal = find_personal_data(blank_out(rest, shaped))
    return _merge_overlapping([*named, *repeated, *shaped, *personal])


def _plain(text: str) -> str:
    """Return `text` with variants of characters replaced by `_NORMAL_FORMS`. The length does not change."""
    return text.translate(_NORMAL_FORMS) if _VARIANT.search(text) else text  # translating is slow


def _replace(text: str, spans: Iterable[TextSpan]) -> str:
    """Return `text` with each span replaced by ‹label›. `spans` is sorted and without overlaps."""
    parts, position = [], 0
    for span in spans:
        parts += [text[position : span.start], span.quote, f"‹{span.label}›", span.quote]
        position = span.end
    return "".join([*parts, text[position:]])


def _labels(text: str, spans: Iterable[TextSpan]) -> dict[str, str]:
    return {text[span.start : span.end]: span.label for span in spans}


def _occurrences(text: str, labels: Mapping[str, str]) -> Iterable[TextSpan]:
    """Yield a span for each occurrence in `text` of a secret in `labels`, which maps secrets to labels."""
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


# --- personal data --------------------------------------------------------------------------------

_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._+%-])(?!git@)[A-Za-z0-9][A-Za-z0-9._+-]*+(?:@|%(?:25){0,4}40)"
    r"(?:[A-Za-z0-9-]{1,63}\.){1,8}(?!(?:png|jpe?g|gif|svg|webp)\b)[A-Za-z]{2,18}(?![A-Za-z0-9])"
)
_USER_INFO = re.compile(r"://[^\s/@]*$")
_PHONE = re.compile(
    r"(?<![A-Za-z0-9_+-])(?<!\d\.)(?:"
    r"(?:(?:(?:\+|%2B|00)86|\(\+?86\)|86)[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4}"
    r"|(?:(?:\+|%2B)86[ -]?)?(?:\(0\d{2,3}\)[ -]?|0\d{2,3}[ -])\d{7,8}(?:-\d{1,6})?"
    r"|[48]00-\d{3,4}-\d{3,4}"
    r"|(?:\+|%2B)[1-9](?:[ ().-]{0,2}\d){7,14}"
    r"|(?:\(\d{3}\)[ ]?|\d{3}-)\d{3}-\d{4}"
    r")(?![A-Za-z0-9_]|-\d|\.\d)"
)
"""Matches Chinese mobile, landline and service numbers, E.164 numbers, and North American numbers."""

_CHINESE_IDENTITY = re.compile(
    r"(?<![A-Za-z0-9])[1-9]\d{5}[ -]?(?P<year>(?:18|19|20)\d{2})[ -]?(?P<month>\d{2})(?P<day>\d{2})"
    r"[ -]?\d{3}[\dXx](?![A-Za-z0-9])"
)
_SOCIAL_SECURITY = re.compile(
    r"(?<![A-Za-z0-9-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![A-Za-z0-9-])"
)
"""Matches a social security number of the United States, which has no check digit."""

_CPF = re.compile(r"(?<![A-Za-z0-9.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![A-Za-z0-9-])")
_HONG_KONG_IDENTITY = re.compile(
    r"(?<![A-Za-z0-9])(?P<letters>[A-Z]{1,2})(?P<digits>\d{6})[(（](?P<check>[0-9A])[)）]"
)
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
)

_CARD = re.compile(
    r"(?<![A-Za-z0-9.])(?:62(?:[ -]?\d){14,17}|(?:4\d|5[1-5]|2[2-7]|35|65)(?:[ -]?\d){14}"
    r"|6011(?:[ -]?\d){12}|3[47](?:[ -]?\d){13})(?![A-Za-z0-9]|-\d)"
)
"""Matches the prefixes and lengths of UnionPay, Visa, Mastercard, JCB, Discover and American Express."""


def _is_chinese_identity_number(text: str) -> bool:
    match = _CHINESE_IDENTITY.fullmatch(text)
    return match is not None and _is_chinese_identity(match)


def _is_chinese_identity(match: re.Match[str]) -> bool:
    """Return whether the date and the check digit (GB 11643) of a Chinese identity number are valid."""
    try:
        date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        return False
    digits = [10 if char in "Xx" else int(char) for char in match[0] if char.isalnum()]
    return sum(digit << 17 - index for index, digit in enumerate(digits)) % 11 == 1


def _is_cpf(match: re.Match[str]) -> bool:
    """Return whether both check digits of a Brazilian taxpayer number (CPF) are valid.

    A number whose digits are all the same is not a CPF.
    """
    digits = [int(char) for char in match[0] if char.isdigit()]
    return len(set(digits)) > 1 and all(
        _cpf_check_digit(digits[:count]) == digits[count] for count in (9, 10)
    )


def _cpf_check_digit(digits: list[int]) -> int:
    weighted = sum(digit * weight for weight, digit in enumerate(reversed(digits), 2))
    return weighted * 10 % 11 % 10


def _is_hong_kong_identity(match: re.Match[str]) -> bool:
    """Return whether the check digit of a Hong Kong identity number is valid.

    A number with one letter is checked as if a space, which has the value 36, preceded the letter.
    """
    values = [int(char, 36) for char in match["letters"] + match["digits"] + match["check"]]
    weighted = sum(value * weight for weight, value in enumerate(reversed(values), 1))
    return (weighted + (36 * 9 if len(values) == 8 else 0)) % 11 == 0


def _is_iban(match: re.Match[str]) -> bool:
    """Return whether the check digits of an IBAN (ISO 13616) are valid."""
    text = match[0].replace(" ", "")
    return int("".join(str(int(char, 36)) for char in text[4:] + text[:4])) % 97 == 1


def _is_email(match: re.Match[str]) -> bool:
    """Return whether the address may belong to a person.

    The result is False for placeholders, for addresses in reserved domains, and for `pass@host` in a URL
    such as https://user:pass@host.
    """
    return (
        not is_placeholder(match[0])
        and _USER_INFO.search(match.string, max(match.start() - 80, 0), match.start()) is None
    )


def _is_bank_card(match: re.Match[str]) -> bool:
    """Return whether the check digit (ISO/IEC 7812) is valid and the number is not a test number."""
    if len(set(filter(str.isdigit, match[0]))) <= _MAX_TEST_DIGITS:
        return False
    digits = [int(character) for character in reversed(match[0]) if character.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


_PERSONAL_DATA: Sequence[tuple[str, re.Pattern[str], Callable[[re.Match[str]], bool]]] = (
    ("email", _EMAIL, _is_email),
    ("phone", _PHONE, bool),
    ("id_card", _CHINESE_IDENTITY, _is_chinese_identity),
    ("tax_id", _SOCIAL_SECURITY, bool),
    ("tax_id", _CPF, _is_cpf),
    ("id_card", _HONG_KONG_IDENTITY, _is_hong_kong_identity),
    ("iban", _IBAN, _is_iban),
    ("bank_card", _CARD, _is_bank_card),
)
"""The label, format and validity check of each kind of personal data."""

_NUMBERS_WITH_EXAMPLES = {"iban", "bank_card", "tax_id"}
"""Labels of the kinds of numbers for which documentation often gives valid examples."""

_MAX_TEST_DIGITS = 4
"""Maximum number of different digits in a card number that counts as a test number.

Many published test numbers, such as 4111 1111 1111 1111, have few different digits.
"""

_EXAMPLE = re.compile(
    r"(?:\b(?:test|sample|example|doc(?:s|umentation)?)\b|测试|示例|样例|文档)[^,.;:，。；：\n]{0,24}$",
    re.IGNORECASE,
)


def _is_example(text: str, match: re.Match[str]) -> bool:
    """Return whether the words just before `match` say that it is an example."""
    return _EXAMPLE.search(text, max(match.start() - 40, 0), match.start()) is not None


def find_personal_data(text: str) -> Iterator[TextSpan]:
    """Yield each item of personal data in `text`; spans may overlap."""
    for label, pattern, is_valid in _PERSONAL_DATA:
        for match in pattern.finditer(text):
            if is_valid(match) and not (
                label in _NUMBERS_WITH_EXAMPLES and _is_example(text, match)
            ):
                yield TextSpan(*match.span(), label)
