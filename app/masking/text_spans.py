"""Text spans, escaped characters, and the recognition of random strings."""

import re
from collections.abc import Iterable
from typing import NamedTuple

QUOTE = r"""(?:\\{0,8}["'`]|%(?:25){0,4}2[27]|&quot;|&\#3[49];)"""
"""A quotation mark, also escaped as in nested JSON, URLs and XML."""

ENCODED = r"%(?:25){0,4}[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[nrt](?=[A-Za-z_])"
"""An escape sequence of another character."""


class TextSpan(NamedTuple):
    """A secret text[start:end] with its `label`; the replacement is put in `quote` marks."""

    start: int
    end: int
    label: str
    quote: str = ""


def match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    """The end of the match of `pattern` at `position`; `position` without a match."""
    match = pattern.match(text, position)
    return match.end() if match else position


def blank_out(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace the characters of `spans` with NUL, keeping the length."""
    parts, position = [], 0
    for start, end in sorted(spans):
        if start >= position:
            parts += [text[position:start], "\0" * (end - start)]
            position = end
    return "".join([*parts, text[position:]])


_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

MAX_MEAN_RUN_CHARS = 3.2
"""Mean run of one character class: about two in random strings, about five in words and dates."""


def is_random(text: str, min_chars: int = 20, max_mean_run: float = MAX_MEAN_RUN_CHARS) -> bool:
    """Whether `text` has at least `min_chars` letters and digits and changes class like a random string."""
    runs = _RUN.findall(text)
    digits = sum(run.isdigit() for run in runs)
    length = sum(map(len, runs))
    return length >= min_chars and 2 <= digits < len(runs) and length / len(runs) <= max_mean_run
