"""A name as it stands in a text, and what stands beside it there.
Numbers of four to six digits that a text gives as error codes, or may.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MentionKind = Literal["target", "name", "word", "number", "permission"]


@dataclass(frozen=True)
class Mention:
    """A name as it stands in a text."""

    kind: MentionKind
    text: str
    start: int
    target: str = ""
    """Of a target: the url or path alone."""
    method: str = ""
    """Of a target: the HTTP method that stands with it."""
    foreign: bool = False
    """Whether it may be a file, a site, a library's code or the reader's own, and so no fact."""
    stated: bool = True
    """Of a number: whether the text calls it a code; else only its likeness to known codes can."""
    words: tuple[str, ...] = ()
    """Of a permission: its words in lower case, the last one first."""


def beside(text: str, start: int, end: int) -> tuple[str, str]:
    """The characters before `start` and at `end`; empty where `text` begins or ends."""
    return text[max(0, start - 1) : start], text[end : end + 1]


def in_code_span(text: str, start: int, end: int) -> bool:
    """Whether what lies between `start` and `end` is a code span of its own."""
    return beside(text, start, end) == ("`", "`")


def follows(pattern: re.Pattern[str], text: str, start: int) -> bool:
    """Whether `pattern`, which ends with `$`, is found in the 20 characters before `start`."""
    return pattern.search(text[max(0, start - 20) : start]) is not None


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
