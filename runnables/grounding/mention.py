"""A name as it stands in a text, and what stands beside it there."""

import re
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
