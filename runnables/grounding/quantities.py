"""The numbers that a text states, with their units: 30 天, 三十天 and thirty days are the same."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Literal

QuantityKind = Literal["time", "size", "money", "percent", "clock"]
Unit = tuple[QuantityKind, Decimal]

LONGEST = 25
"""Characters of a number; longer runs of digits are compared as they are written."""

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
    **dict.fromkeys(("年", "year"), ("time", 360 * _DAY)),  # twelve such months
    **dict.fromkeys(("字节", "byte"), ("size", Decimal(1))),
    **{f"{prefix}b": ("size", Decimal(1_024) ** n) for n, prefix in enumerate("kmgt", 1)},
    **dict.fromkeys(("分", "fen"), ("money", Decimal(1))),
    **dict.fromkeys(("元", "块", "yuan", "cny", "rmb"), ("money", Decimal(100))),
    "点": ("clock", Decimal(60)),
    **dict.fromkeys(("%", "百分点", "percent", "per cent"), ("percent", Decimal(1))),
}
_MULTIPLES = {"万": 10**4, "亿": 10**8}
_HAN_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_POWERS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000}
_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
_WORDS |= {"ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30}
_WORDS |= {"forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}


def _longest_first(words: Mapping[str, object], ascii_ones: bool) -> str:
    chosen = [word for word in words if word.isascii() == ascii_ones]
    return "|".join(map(re.escape, sorted(chosen, key=len, reverse=True)))


_NUMBER = re.compile(
    r"(?P<date>\d{4}(?:[-/.]|\s?年\s?)\d{1,2}(?:[-/.]|\s?月\s?)\d{1,2}(?!\d)(?:\s?日)?)"
    r"|(?P<clock>(?<![\d:])\d{1,2}:\d\d(?!\d))"
    r"|(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![,\d])|\d+(?:\.\d+)*)(?:\s*(?P<multiple>[万亿](?!一)))?"
    r"|(?<!第)(?P<share>百分之)?(?P<han>[零〇一二两三四五六七八九十百千万]+)"
    rf"|\b(?P<word>{'|'.join(_WORDS)})\b",
    re.IGNORECASE,
)
_UNIT = re.compile(
    rf"[\s\-]*(?:(?P<latin>{_longest_first(_UNITS, True)})s?(?![A-Za-z])"
    rf"|个?(?P<han>{_longest_first(_UNITS, False)})(?![素志期击支别组]))",  # 元素, 日志, 周期 …
    re.IGNORECASE,
)
_HALF_HOUR = re.compile(r"(?<!个)(?<!\d)半个?小时|\bhalf an hour\b", re.IGNORECASE)
_COUNTED = re.compile(r"\s*[\u3400-\u9fff]")
_JOINT = re.compile(r"\s*(?:到|至|或|和|、|,|，|/|~|-|–|\bto\b|\bor\b|\band\b)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Quantity:
    """A number as it is written, without thousands separators and needless zeros."""

    value: str
    amount: tuple[QuantityKind, Decimal] | None = None
    """So many seconds, bytes, fen, per cent, or minutes after twelve; None where no unit says which."""
    counted: bool = False
    """Whether a Chinese word follows that is no known unit: `10 个包裹`."""
    spelled: bool = False
    """Whether it is written in words: `三十`, `thirty`."""
    parts: tuple[str, ...] = ()
    """The numbers that a date and a time of day are made of."""


def quantities(text: str) -> list[Quantity]:
    """The numbers of `text` in order, those within identifiers too."""
    text = _HALF_HOUR.sub("30 min", unicodedata.normalize("NFKC", text))
    found = list(_NUMBER.finditer(text))
    units = [_unit(text, match) for match in found]
    joints = [_JOINT.fullmatch(text, a.end(), b.start()) for a, b in pairwise(found)]
    for place, joint in reversed(list(enumerate(joints))):
        if joint and units[place] is None:  # "5 到 10 分钟": the last one's unit counts for all
            units[place] = units[place + 1]
    return [_read(text, match, unit) for match, unit in zip(found, units, strict=True)]


def _unit(text: str, match: re.Match[str]) -> Unit | None:
    if match["share"]:
        return _UNITS["%"]
    following = _UNIT.match(text, match.end())
    return _UNITS[(following["latin"] or following["han"]).lower()] if following else None


def _read(text: str, match: re.Match[str], unit: Unit | None) -> Quantity:
    if match["date"]:
        parts = _numbers(match["date"])
        return Quantity("-".join(parts), parts=parts)
    if match["clock"]:
        parts = _numbers(match["clock"])
        minutes = Decimal(60 * int(parts[0]) + int(parts[1]))
        return Quantity(":".join(parts), _amount(minutes, ("clock", Decimal(1))), parts=parts)
    value = _value(match)
    counted = unit is None and bool(_COUNTED.match(text, match.end()))
    number = len(match[0]) <= LONGEST and value.count(".") < 2
    amount = _amount(Decimal(value), unit) if unit and number else None
    return Quantity(value, amount, counted, spelled=match["digits"] is None)


def _numbers(text: str) -> tuple[str, ...]:
    return tuple(str(int(number)) for number in re.findall(r"\d+", text))


def _amount(number: Decimal, unit: Unit) -> tuple[QuantityKind, Decimal]:
    kind, worth = unit
    return kind, number * worth % 720 if kind == "clock" else number * worth  # 18:00 is six o'clock


def _value(match: re.Match[str]) -> str:
    if match["word"]:
        return str(_WORDS[match["word"].lower()])
    if len(match[0]) > LONGEST:
        return match[0]
    if match["han"]:
        return str(_han_value(match["han"]))
    digits = match["digits"].replace(",", "")
    if digits.count(".") > 1:
        return digits
    return _plain(Decimal(digits) * _MULTIPLES.get(match["multiple"], 1))


def _plain(number: Decimal) -> str:
    """Whole numbers without a point; others as they are, for version 3.10 is not 3.1."""
    return str(int(number)) if number == number.to_integral_value() else format(number, "f")


def _han_value(numeral: str) -> int:
    """`三十` is 30, `一百二十` 120, `二〇二六` 2026."""
    if not set(numeral) & set(_HAN_POWERS):
        return int("".join(str(_HAN_DIGITS[c]) for c in numeral))
    total, digit = 0, 0
    for character in numeral:
        if character in _HAN_DIGITS:
            digit = _HAN_DIGITS[character]
        elif character == "万":
            total, digit = ((total + digit) or 1) * 10_000, 0
        else:
            total, digit = total + (digit or 1) * _HAN_POWERS[character], 0
    return total + digit
