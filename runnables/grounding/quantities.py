"""Reads numbers with their units from texts: 30 天, 三十天 and "thirty days" are the same quantity."""

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
"""Maximum length of a number in digits or Chinese characters that is converted, with its separators.

Longer numbers are compared as written. Numbers in English words are always converted.
"""

MIN_LARGE_NUMBER = 20
"""Smaller numbers that are written in words may be idioms (see `Quantity.may_be_idiom`).

A Chinese numeral may be an idiom, whatever its value, unless it begins with a digit followed by 十, 百, 千
or 万. For example, 千万 and 二〇二六 may be idioms, but 三十 may not.
"""

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
_HAN_AFTER_DIGITS = {
    "百": 100,
    "千": 1_000,
    "万": 10**4,
    "十万": 10**5,
    "百万": 10**6,
    "千万": 10**7,
    "亿": 10**8,
}
"""Multipliers after a number in digits, as in 3 万."""
_HAN_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2,
}
_HAN_MULTIPLIERS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000}
"""Multipliers within a Chinese numeral, as in 三万."""
_NUMBER_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_ENGLISH_MULTIPLIERS = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
"""Multipliers within an English numeral, as in "three thousand"."""
_LATIN_SUFFIXES = {"k": 1_000, "thousand": 1_000, "w": 10_000, "m": 1_000_000, "million": 1_000_000}
"""Multipliers after a number in digits, as in `20k` and `20 thousand`."""

_MULTIPLIER_WORD = "|".join(_ENGLISH_MULTIPLIERS)
_ONES = "|".join(word for word, value in _NUMBER_WORDS.items() if value < 10)
_TENS = "|".join(word for word, value in _NUMBER_WORDS.items() if value >= 20)
_BELOW_HUNDRED = rf"(?:(?:{_TENS})(?:[\s-](?:{_ONES})\b|-one\b)?|{'|'.join(_NUMBER_WORDS)})"
_NUMBER_IN_WORDS = (
    rf"(?:{_BELOW_HUNDRED}|(?:an?|one)(?=\s(?:{_MULTIPLIER_WORD})\b))"
    rf"(?:\s(?:{_MULTIPLIER_WORD})\b"
    rf"(?:\s{_BELOW_HUNDRED}\b|\sand\s{_BELOW_HUNDRED}\b(?!\s(?:{_MULTIPLIER_WORD})\b))?)*"
    r"(?!-(?:first|third|[a-z]+th)\b)"
)
"""Matches `twenty`, `twenty-one`, `five hundred` and `a thousand and fifty`, but not `one` alone."""

_LARGE_HAN_NUMBER = re.compile(r"[一二两三四五六七八九][十百千万]")


def _alternatives(words: Mapping[str, object], *, is_ascii: bool) -> str:
    selected = [word for word in words if word.isascii() == is_ascii]
    return "|".join(map(re.escape, sorted(selected, key=len, reverse=True)))


_NUMBER = re.compile(
    rf"""
    (?P<date>
        \d{{4}} (?:[-/.]|\s?年\s?) \d{{1,2}} (?:[-/.]|\s?月\s?) \d{{1,2}} (?!\d) (?:\s?日)?
    )
    | (?P<clock> (?<![\d:]) \d{{1,2}} : \d\d (?!\d) )
    | (?P<digits>
        \d{{1,3}} (?:,\d{{3}})+ (?:\.\d+)? (?![,\d])  # 1,234,567.5, but not 1,234,5
        | \d+ (?:\.\d+)*
    )
    (?: \s* (?P<multiple>
        (?: [十百千]?万 | 亿 ) (?!一)  # not 万一, "in case"
        | 百 (?!分)  # not 百分点, "percentage point"
        | 千 (?![克米瓦卡赫字])  # not a unit: kg, km, kW, kcal, kHz, KB
    ))?
    (?: \s? (?P<suffix>{"|".join(_LATIN_SUFFIXES)}) (?![A-Za-z]) )?  # 20k, but not 20km
    | (?<!第)  # not an ordinal
    (?P<share>百分之)? (?P<han>[零〇一二两三四五六七八九十百千万]+)
    | \b (?P<word>{_NUMBER_IN_WORDS}) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_UNIT = re.compile(
    rf"[\s\-]*(?:(?P<latin>{_alternatives(_UNITS, is_ascii=True)})s?(?![A-Za-z])"
    # not the start of another word, such as 元素, 日志 or 周期
    rf"|个?(?P<han>{_alternatives(_UNITS, is_ascii=False)})(?![素志期击支别组]))",
    re.IGNORECASE,
)
_HALF_HOUR = re.compile(r"(?<!个)(?<!\d)半个?小时|\bhalf an hour\b", re.IGNORECASE)
_COUNTER = re.compile(r"\s*[\u3400-\u9fff]")
_JOINER = re.compile(r"\s*(?:到|至|或|和|、|,|，|/|~|-|–|\bto\b|\bor\b|\band\b)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Quantity:
    """A number in a text."""

    value: str
    """The number in digits, such as `1000` for `1,000`, `30000` for `3 万` and `20` for `20k`.

    A suffix such as `k` is applied only in `other_values`. A date is written as `2026-1-31`, and a time as
    `9:30`.
    """
    amount: tuple[QuantityKind, Decimal] | None = None
    """Kind of unit, and amount in seconds, bytes, fen (0.01 yuan), per cent, or minutes after 12 o'clock.

    None if the number has no known unit, or cannot be converted.
    """
    has_counter: bool = False
    """Whether a Chinese word that is not a known unit follows, as in `10 个包裹`."""
    may_be_idiom: bool = False
    """Whether the number is written in words that may mean something else, such as `一` or `千万`."""
    other_values: tuple[str, ...] = ()
    """Other numbers that the text also states: those in a date or time of day; `20000` for `20k`."""


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
        return Quantity("-".join(parts), other_values=parts)
    if match["clock"]:
        parts = _integers(match["clock"])
        minutes = Decimal(60 * int(parts[0]) + int(parts[1]))
        clock = _to_amount(minutes, ("clock", Decimal(1)))
        return Quantity(":".join(parts), clock, other_values=parts)
    value = _value(match)
    has_counter = unit is None and bool(_COUNTER.match(text, match.end()))
    is_decimal = len(value) <= MAX_NUMBER_CHARS and value.count(".") < 2
    amount = _to_amount(Decimal(value), unit) if unit and is_decimal else None
    other_values: tuple[str, ...] = ()
    if is_decimal and match["suffix"]:
        factor = _LATIN_SUFFIXES[match["suffix"].lower()]
        other_values = (_format(Decimal(value) * factor),)
    return Quantity(value, amount, has_counter, _may_be_idiom(match, value), other_values)


def _may_be_idiom(match: re.Match[str], value: str) -> bool:
    if match["digits"]:
        return False
    if match["han"] and not _LARGE_HAN_NUMBER.match(match["han"]):
        return True
    # The length is tested first, because a very long numeral is not converted to digits (see `_value`).
    return len(value) < 3 and int(value) < MIN_LARGE_NUMBER


def _integers(text: str) -> tuple[str, ...]:
    return tuple(str(int(number)) for number in re.findall(r"\d+", text))


def _to_amount(number: Decimal, unit: Unit) -> tuple[QuantityKind, Decimal]:
    kind, factor = unit
    amount = number * factor
    return kind, amount % 720 if kind == "clock" else amount  # 18:00 equals six o'clock


def _value(match: re.Match[str]) -> str:
    if match["word"]:
        return str(_english_value(match["word"].lower()))
    if len(match[0]) > MAX_NUMBER_CHARS:
        return match[0]
    if match["han"]:
        return str(_han_value(match["han"]))
    digits = match["digits"].replace(",", "")
    if digits.count(".") > 1:
        return digits
    return _format(Decimal(digits) * _HAN_AFTER_DIGITS.get(match["multiple"], 1))


def _format(number: Decimal) -> str:
    """Return a whole number without a decimal point; keep other numbers (version 3.10 is not 3.1)."""
    return str(int(number)) if number == number.to_integral_value() else format(number, "f")


def _english_value(numeral: str) -> int:
    """Return the value of an English numeral: `five hundred` is 500, `twenty-one thousand` 21000."""
    total = part = 0
    for word in re.findall(r"[a-z]+", numeral):
        if word == "hundred":
            part = (part or 1) * 100
        elif word in _ENGLISH_MULTIPLIERS:
            total, part = total + (part or 1) * _ENGLISH_MULTIPLIERS[word], 0
        else:
            part += 1 if word == "one" else _NUMBER_WORDS.get(word, 0)
    return total + part


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
