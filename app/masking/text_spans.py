"""Places in a text, and what may stand for a character there.
What nobody chose: told from names and numbers by how often its characters change class.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

QUOTE = r"""(?:\\{0,8}["'`]|%(?:25){0,4}2[27]|&quot;|&\#3[49];)"""
"""A quotation mark, also as it stands in JSON within JSON, in a url and in XML."""

ENCODED = r"%(?:25){0,4}[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[nrt](?=[A-Za-z_])"
"""Another character that is written as an escape sequence."""


class TextSpan(NamedTuple):
    """text[start:end] is a secret; `label` says which, `quote` stands around what replaces it."""

    start: int
    end: int
    label: str
    quote: str = ""


def end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Where what `pattern` finds at `position` ends; `position` if it finds nothing there."""
    match = pattern.match(text, position)
    return match.end() if match else position


def blanked(text: str, places: Iterable[tuple[int, int]]) -> str:
    """`text`, as long as before, with NUL characters at `places`."""
    parts, position = [], 0
    for start, end in sorted(places):
        if start >= position:
            parts += [text[position:start], "\0" * (end - start)]
            position = end
    return "".join([*parts, text[position:]])


_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

LONGEST_RUN = 3.2
"""Characters on average: random ones change class after two, words and dates after five."""


def is_random(text: str, shortest: int = 20, longest_run: float = LONGEST_RUN) -> bool:
    """Whether `text` has at least `shortest` letters and digits, as mixed as only chance mixes them."""
    runs = _RUN.findall(text)
    digits = sum(run.isdigit() for run in runs)
    length = sum(map(len, runs))
    return length >= shortest and 2 <= digits < len(runs) and length / len(runs) <= longest_run
