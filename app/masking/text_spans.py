"""Helpers for masking: text spans, patterns for escaped characters, tests for digits and random text."""

import re
from collections.abc import Iterable
from typing import NamedTuple

QUOTE = r"""(?:\\{0,8}["'`]|%(?:25){0,4}2[27]|&quot;|&\#3[49];)"""
"""A quotation mark, which may be escaped as in nested JSON, URLs and XML."""

ENCODED = r"%(?:25){0,4}[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[nrt](?=[A-Za-z_])"
"""An escape sequence: a percent-encoded character, a \\u escape, or \\n, \\r or \\t before a word."""

_MAX_MEAN_RUN_CHARS = 3.2
"""Maximum mean length of the runs in a random string, in characters.

A run is a lower-case word (with or without an initial capital), a series of capitals, or a number. The mean
length is about two in random strings, and about five in words.
"""

_MAX_MEAN_RUN_CHARS_OF_LETTERS = 2.5
"""Maximum mean length of the runs in a string with fewer than two numbers.

It is lower than `_MAX_MEAN_RUN_CHARS`, because such a string may consist of words.
"""

_MAX_MEAN_RUN_CHARS_WITH_NUMBERS = 5.0
"""Maximum mean length of the runs in a string with at least three numbers and without punctuation."""

_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

CLOSING = {
    "“": "”", "‘": "’", "「": "」", "『": "』", "【": "】", "《": "》", "〈": "〉", "（": "）", "(": ")",
    "[": "]", "{": "}", "‹": "›", "«": "»", "<": ">", '"': '"', "'": "'", "`": "`",
}  # fmt: skip
"""Maps each opening quotation mark and bracket to the mark that closes it."""

_CLOSING_MARKS = set(CLOSING.values())
_ENCLOSED_WORD = re.compile(r"[ ]?(?P<word>[!-~]{1,256})")

_VERSION = re.compile(
    r"(?:[A-Za-z]{1,20}[-_/ ]?)?v?\d{1,3}(?:\.\d{1,4}){0,3}(?:-[a-z]{2,9})?", re.I
)
"""The version of a product or format, such as HTTP/1.1, utf8 or v2.0-beta."""

_PRODUCT = re.compile(r"[A-Za-z]{1,20}\d{1,2}[A-Za-z]{1,20}")
"""The name of a product, such as iPhone15Pro."""


class TextSpan(NamedTuple):
    """The position of a value, text[start:end], which may be a secret.

    If it is a secret, `label` replaces it. If `quote` is not empty, it is put before and after the label.
    """

    start: int
    end: int
    label: str
    quote: str = ""


def match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return where the match of `pattern` at `position` ends, or `position` if there is no match."""
    match = pattern.match(text, position)
    return match.end() if match else position


def blank_out(text: str, spans: Iterable[TextSpan]) -> str:
    """Return `text` with each character in `spans` replaced by NUL, so that its length does not change."""
    parts, position = [], 0
    for span in sorted(spans):
        start = max(span.start, position)
        if span.end > start:
            parts += [text[position:start], "\0" * (span.end - start)]
            position = span.end
    return "".join([*parts, text[position:]])


def find_enclosed(text: str, position: int) -> tuple[int, int] | None:
    """Return the start and end of the word in quotation marks or brackets at `position`, or None.

    The word consists of printable ASCII characters. A space may separate it from the marks.

    - After an ASCII mark, such as " or (, the matching closing mark must follow the word.
    - After a mark that is not ASCII, such as “ or （, the word ends at the first character that is not
      printable ASCII. The closing mark may differ or be missing, because people confuse such marks. But if
      a space follows the word, a closing mark must follow the space. Otherwise, there are several words,
      and the result is None.

    The result is also None for a word that begins with a comma, a colon, a semicolon or an equals sign.
    """
    opening = text[position : position + 1]
    if opening not in CLOSING or (word := _ENCLOSED_WORD.match(text, position + 1)) is None:
        return None
    start, end = word.span("word")
    if opening.isascii():
        end = text.find(CLOSING[opening], start, end)
        if end < 0 and text.startswith(" " + CLOSING[opening], word.end()):
            end = word.end()
    elif text.startswith(" ", end) and text[end + 1 : end + 2] not in _CLOSING_MARKS:
        return None  # several words
    return (start, end) if end > start and text[start] not in ",:;=" else None


def is_chosen_password(text: str) -> bool:
    """Return whether `text` looks like a password that a person chose, such as Maple-River27.

    Such a password has at least eight characters, at least two of them digits, and a lower-case letter. It
    does not look like a version or the name of a product.
    """
    return (
        len(text) >= 8
        and any(map(str.islower, text))
        and sum(map(str.isdigit, text)) >= 2
        and _VERSION.fullmatch(text) is None
        and not is_product_name(text)
    )


def is_product_name(text: str) -> bool:
    """Return whether `text` looks like the name of a product, such as iPhone15Pro."""
    return _PRODUCT.fullmatch(text) is not None


def has_digit(text: str) -> bool:
    """Return whether `text` contains a digit."""
    return any(map(str.isdigit, text))


def is_random(text: str, min_chars: int = 20, max_mean_run: float = _MAX_MEAN_RUN_CHARS) -> bool:
    """Return whether `text` looks random.

    A random text has at least `min_chars` ASCII letters and digits. Its runs (see `_MAX_MEAN_RUN_CHARS`)
    are at most `max_mean_run` characters long on average; texts with few or many numbers have other limits.
    A text of digits only is not random, and neither is one with repeated words, such as
    key1value1key2value2.
    """
    runs = _RUN.findall(text)
    length = sum(map(len, runs))
    if length < min_chars:
        return False
    numbers = sum(run.isdigit() for run in runs)
    words = [run for run in runs if len(run) >= 3 and run.isalpha()]
    if numbers >= 3 and text.isalnum():
        max_mean_run = max(max_mean_run, _MAX_MEAN_RUN_CHARS_WITH_NUMBERS)
    if numbers < 2:
        max_mean_run = min(max_mean_run, _MAX_MEAN_RUN_CHARS_OF_LETTERS)
    return (
        numbers < len(runs) and length / len(runs) <= max_mean_run and len(set(words)) == len(words)
    )
