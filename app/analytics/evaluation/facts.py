"""Compares the facts that a right answer states with a text."""

import re
import unicodedata
from collections.abc import Sequence

from app.analytics.evaluation.dataset import Fact

_EMPHASIS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPACE = re.compile(r"\s+")


def normalise_text(text: str) -> str:
    """Return `text` in NFKC and case-folded, with single spaces, without Markdown emphasis and escapes."""
    plain = _EMPHASIS.sub("", _ESCAPE.sub(r"\1", unicodedata.normalize("NFKC", text)))
    return _SPACE.sub(" ", plain).strip().casefold()


def missing_facts(facts: Sequence[Fact], text: str) -> list[Fact]:
    """Return the facts of which no alternative occurs in `text`. Both are normalised first."""
    normalised = normalise_text(text)
    return [
        fact
        for fact in facts
        if not any(normalise_text(alternative) in normalised for alternative in fact)
    ]
