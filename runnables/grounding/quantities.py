"""Extraction of numbers with their units, so that 30 天, 三十天 and thirty days are equal."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Literal

QuantityKind = Literal["time", "size", "money", "percent", "clock"]
Unit = tuple[QuantityKind, Decimal]

MAX_NUMBER_CHARS = 25
"""Maximum length of a number that is converted, in characters; longer ones are compared as written."""

_DAY = Decimal(86_400)
_UNITS: Mapping[str, Unit] = {
    **dict.fromkeys(("毫秒", "ms", "millisecond"), ("time", Decimal("0.001"))),
    **dict.fromkeys(("秒", "s", "sec", "second"), ("time", Decimal(1))),
    **dict.fromkeys(("分钟", "min", "minute"), ("time", Decimal(60))),
    **dict.fromkeys(("小时", "钟头", "h", "hour"), ("time", Decimal(3_600))),
    **dict.fromkeys(("天", "日", "工作日", "自然日"), ("time", _DAY)),
    **dict.fromkeys(("day", "working day", "business day"), ("time", _DAY)),
    **dict.fromkeys(("周", "星期", "week"), ("time", 7 * _DAY)),
    **dict.fromkeys(("个月", "month"), ("time", 30 * _DAY)),
    **dict.fromkeys(("年", "year"), ("time", 360 * _DAY)),  # twelve months of 30 days
    **dict.fromkeys(("字节", "byte"), ("size", Decimal(1))),
    **{f"{prefix}b": ("size", Decimal(1_024) ** power) for power, prefix in enumerate("kmgt", 1)},
    **dict.fromkeys(("分", "fen"), ("money", Decimal(1))),
    **dict.fromkeys(("元", "块", "yuan", "cny", "rmb"), ("money", Decimal(100))),
    "点": ("clock", Decimal(60)),
    **dict.fromkeys(("%", "百分点", "percent", "per cent"), ("percent", Decimal(1))),
}
_MULTIPLES = {"万": 10**4, "亿": 10**8}
_HAN_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2,
}
_HAN_MULTIPLIERS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000}
_NUMBER_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "ninety": 90,
}  # fmt: skip


def _alternatives(words: Mapping[str, object], *, ascii_only: bool) -> str:
    selected = [word for word in words if word.isascii() == ascii_only]
    return "|".join(map(re.escape, sorted(selected, key=len, reverse=True)))


_NUMBER = re.compile(
    r"(?P<date>\d{4}(?:[-/.]|\s?年\s?)\d{1,2}(?:[-/.]|\s?月\s?)\d{1,2}(?!\d)(?:\s?日)?)"
    r"|(?P<clock>(?<![\d:])\d{1,2}:\d\d(?!\d))"
    r"|(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![,\d])|\d+(?:\.\d+)*)(?:\s*(?P<multiple>[万亿](?!一)))?"
    r"|(?<!第)(?P<share>百分之)?(?P<han>[零〇一二两三四五六七八九十百千万]+)"
    rf"|\b(?P<word>{'|'.join(_NUMBER_WORDS)})\b",
    re.IGNORECASE,
)
_UNIT = re.compile(
    rf"[\s\-]*(?:(?P<latin>{_alternatives(_UNITS, ascii_only=True)})s?(?![A-Za-z])"
    rf"|个?(?P<han>{_alternatives(_UNITS, ascii_only=False)})(?![素志期击支别组]))",  # 元素, 日志, 周期 …
    re.IGNORECASE,
)
_HALF_HOUR = re.compile(r"(?<!个)(?<!\d)半个?小时|\bhalf an hour\b", re.IGNORECASE)
_COUNTER = re.compile(r"\s*[\u3400-\u9fff]")
_JOINER = re.compile(r"\s*(?:到|至|或|和|、|,|，|/|~|-|–|\bto\b|\bor\b|\band\b)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Quantity:
    """A number in a text."""

    value: str
    """The number in digits, without thousands separators; `2026-1-31` for a date, `9:30` for a time."""
    amount: tuple[QuantityKind, Decimal] | None = None
    """Amount in seconds, bytes, fen (0.01 yuan), per cent, or minutes after 12 o'clock.

    None if the number has no known unit.
    """
    has_counter: bool = False
    """Whether a Chinese word that is not a known unit follows, as in `10 个包裹`."""
    is_word: bool = False
    """Whether the number is written in words, such as `三十` or `thirty`."""
    parts: tuple[str, ...] = ()
    """The numbers in a date or a time of day."""


def extract_quantities(text: str) -> list[Quantity]:
    """Return the numbers in `text`, including numbers within identifiers, in order."""
    text = _HALF_HOUR.sub("30 min", unicodedata.normalize("NFKC", text))
    matches = list(_NUMBER.finditer(text))
    units = [_unit_after(text, match) for match in matches]
    joiners = [_JOINER.fullmatch(text, a.end(), b.start()) for a, b in pairwise(matches)]
    for index, joiner in reversed(list(enumerate(joiners))):
        if joiner and units[index] is None:  # "5 到 10 分钟": the unit of the last number applies
            units[index] = units[index + 1]
    return [_to_quantity(text, match, unit) for match, unit in zip(matches, units, strict=True)]


def _unit_after(text: str, match: re.Match[str]) -> Unit | None:
    if match["share"]:
        return _UNITS["%"]
    unit = _UNIT.match(text, match.end())
    return _UNITS[(unit["latin"] or unit["han"]).lower()] if unit else None


def _to_quantity(text: str, match: re.Match[str], unit: Unit | None) -> Quantity:
    if match["date"]:
        parts = _integers(match["date"])
        return Quantity("-".join(parts), parts=parts)
    if match["clock"]:
        parts = _integers(match["clock"])
        minutes = Decimal(60 * int(parts[0]) + int(parts[1]))
        return Quantity(":".join(parts), _to_amount(minutes, ("clock", Decimal(1))), parts=parts)
    value = _value(match)
    has_counter = unit is None and bool(_COUNTER.match(text, match.end()))
    is_decimal = len(match[0]) <= MAX_NUMBER_CHARS and value.count(".") < 2
    amount = _to_amount(Decimal(value), unit) if unit and is_decimal else None
    return Quantity(value, amount, has_counter, is_word=match["digits"] is None)


def _integers(text: str) -> tuple[str, ...]:
    return tuple(str(int(number)) for number in re.findall(r"\d+", text))


def _to_amount(number: Decimal, unit: Unit) -> tuple[QuantityKind, Decimal]:
    kind, factor = unit
    amount = number * factor
    return kind, amount % 720 if kind == "clock" else amount  # 18:00 equals six o'clock


def _value(match: re.Match[str]) -> str:
    if match["word"]:
        return str(_NUMBER_WORDS[match["word"].lower()])
    if len(match[0]) > MAX_NUMBER_CHARS:
        return match[0]
    if match["han"]:
        return str(_han_value(match["han"]))
    digits = match["digits"].replace(",", "")
    if digits.count(".") > 1:
        return digits
    return _format(Decimal(digits) * _MULTIPLES.get(match["multiple"], 1))


def _format(number: Decimal) -> str:
    """Return a whole number without a decimal point, and any other as is (version 3.10 is not 3.1)."""
    return str(int(number)) if number == number.to_integral_value() else format(number, "f")


def _han_value(numeral: str) -> int:
    """Return the value of a Chinese numeral: `三十` is 30, `一百二十` 120, `二〇二六` 2026."""
    if not set(numeral) & set(_HAN_MULTIPLIERS):
        return int("".join(str(_HAN_DIGITS[digit]) for digit in numeral))
    total, digit = 0, 0
    for character in numeral:
        if character in _HAN_DIGITS:
            digit = _HAN_DIGITS[character]
        elif character == "万":
            total, digit = ((total + digit) or 1) * 10_000, 0
        else:
            total, digit = total + (digit or 1) * _HAN_MULTIPLIERS[character], 0
    return total + digit
