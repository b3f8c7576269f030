"""Numbers of four to six digits that a text gives as error codes, or may."""

import re
from collections.abc import Iterator

from runnables.grounding.mention import Mention, follows, in_code_span

_NUMBER = re.compile(r"(?<![\w.,/=$¥￥+-])(?<!\d:)\d{4,6}(?!\w|[.,:/-]\d|[*×]|\s?[%％])", re.ASCII)
"""Alone: no part of an amount, a date, a time, a name or a sum."""

_UNIT = re.compile(
    r"\s?(?:[个条次元分秒毫天年月日时字笔页份张件位人倍行端]|[A-Za-z]+s\b|CNY|USD|[KMG]B\b|fen\b)"
)
"""Behind a number that counts something; 端 as in 端口, a port."""

_CODE_BEFORE = re.compile(
    r"(?:codes?|errors?|错误码|返回码|状态码|报错|错误)[^0-9，。,.;；\n]{0,8}$", re.I
)
_CELL_BEFORE = re.compile(r"^\s{0,3}\|[ `*]{0,3}$", re.MULTILINE)
"""A row's first cell: what an error table lists."""

_ANSWER_BEFORE = re.compile(
    r"(?:返回|报|收到|得到|提示|碰到|遇到|出现|看到|以|\b(?:gets?|got|sees?|receives?d?|raises?|throws?|"
    r"answers?|returns?|gives?|with|as|in|by))"
    r"[\s`\"'“的是为了到]{0,4}$"
)
"""An API may answer with a code, but with a number of things, too."""


def error_codes(text: str) -> Iterator[Mention]:
    """The numbers in `text` that are codes, and those that known codes may tell to be one."""
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        called = in_code_span(text, start, end) or any(
            follows(before, text, start) for before in (_CODE_BEFORE, _CELL_BEFORE)
        )
        if called or not _UNIT.match(text, end):
            stated = called or (_is_no_amount(match[0]) and follows(_ANSWER_BEFORE, text, start))
            yield Mention("number", match[0], start, stated=stated)


def _is_no_amount(number: str) -> bool:
    """Whether it is neither round nor as short as a year or a count of results mostly is."""
    return len(number) > 4 and int(number) % 1000 != 0
