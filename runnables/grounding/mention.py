"""The type of a mentioned name, and helpers that inspect its surroundings."""

import re
from dataclasses import dataclass
from typing import Literal

MentionKind = Literal["target", "name", "word", "number", "permission"]
"""`target`: a URL or path; `name`: a name with separators; `word`: a single word used as a name;
`number`: an error code.
"""

CONTEXT_CHARS = 20
"""Characters before a mention that `is_preceded_by` searches."""


@dataclass(frozen=True)
class Mention:
    """A name in a text that may state a fact about the platform."""

    kind: MentionKind
    text: str
    """The mention as written, with the HTTP method of a target."""
    start: int
    target: str = ""
    """Of a target: the URL or path alone."""
    method: str = ""
    """Of a target: its HTTP method, if the text states one."""
    maybe_external: bool = False
    """Whether it may belong to a file, a website, a library or the reader's own code instead."""
    is_explicit: bool = True
    """Of a number: whether the text calls it a code. Otherwise only similar known codes can tell."""
    words: tuple[str, ...] = ()
    """Of a permission: its words in lower case, last one first."""


def surrounding_chars(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the characters before `start` and at `end`; empty at the limits of `text`."""
    return text[max(0, start - 1) : start], text[end : end + 1]


def is_code_span(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]` is the whole content of a code span."""
    return surrounding_chars(text, start, end) == ("`", "`")


def is_preceded_by(pattern: re.Pattern[str], text: str, start: int) -> bool:
    """Whether `pattern`, which must end with `$`, matches right before `start`."""
    return pattern.search(text[max(0, start - CONTEXT_CHARS) : start]) is not None
