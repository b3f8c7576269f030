"""A name mentioned in a text, and helpers that inspect the text around it."""

import re
from dataclasses import dataclass
from typing import Literal

MentionKind = Literal["target", "name", "word", "number", "permission"]
"""`target`: a URL or path; `name`: a name with separators; `word`: a single word used as a name;
`number`: an error code.
"""

CONTEXT_CHARS = 20
"""Number of characters before a mention that `is_preceded_by` searches."""


@dataclass(frozen=True)
class Mention:
    """A name in a text, which may state a fact about the platform."""

    kind: MentionKind
    text: str
    """The mention as written, with the HTTP method of a target."""
    start: int
    target: str = ""
    """For kind `target`: the URL or path without the method."""
    method: str = ""
    """For kind `target`: the HTTP method; empty if the text states none."""
    maybe_external: bool = False
    """Whether it may name something else: a file, a website, part of a library or the reader's own code."""
    is_explicit: bool = True
    """For kind `number`: whether the text calls it a code.

    Any other number counts as an error code only if the documents have codes with the same prefix.
    """
    words: tuple[str, ...] = ()
    """For kind `permission`: the words of its name in lower case, last one first."""


def surrounding_chars(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the character before `start` and the one at `end`; empty where `text` has none."""
    return text[max(0, start - 1) : start], text[end : end + 1]


def is_code_span(text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]` is the whole content of a code span."""
    return surrounding_chars(text, start, end) == ("`", "`")


def is_preceded_by(pattern: re.Pattern[str], text: str, start: int) -> bool:
    """Return whether `pattern`, which must end with `$`, matches right before `start`."""
    return pattern.search(text[max(0, start - CONTEXT_CHARS) : start]) is not None
