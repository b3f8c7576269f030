"""Splits Chinese and English prose into sentences.

A dot inside a code span, a URL or an abbreviation such as "e.g." does not end a sentence. The common
libraries for splitting sentences are not used: they either need a trained model or do not support Chinese
and code.
"""

import re
from collections.abc import Iterator

_NO_END = re.compile(
    r"`[^`\n]+`|https?://[A-Za-z0-9._~:/?#@!$&*+,;=%{}-]+(?<=[A-Za-z0-9/_=&-])"
    r"|\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|Fig|Dr|Mr|Ms|Mrs)\.(?=\s)"
    r"|\bNo\.(?=\s\d)|\b[A-Z]\.(?=\s[A-Z]\.)|(?<=\b[A-Z]\.\s)[A-Z]\.(?=\s)|\.(?=\s{1,9}(?:[a-z]{1,20}\b|\d))"
)
"""Code spans, URLs and abbreviations. A dot after a URL may end a sentence.

A dot whose next word begins with a lower-case letter or a digit belongs to an abbreviation: "max. 100
entries".
"""

_CITATIONS = r"(?:\s{0,3}\[\d{1,3}\])*"
_END = re.compile(
    rf"(?:[。！？；…]+[\"'”’」』）)]*{_CITATIONS}|(?<![.!?])[.!?]++[\"'”’)]*{_CITATIONS}(?=\s|$))\s*|\n\s*\n"
)
"""The end of a sentence, with closing quotes, brackets, citation marks and whitespace after it."""


def split_sentences(prose: str) -> Iterator[str]:
    """Yield the sentences of `prose`, each with the whitespace after it. No character is left out.

    A blank line also ends a sentence. `prose` must not contain lists, tables or fenced code.
    """
    masked = _NO_END.sub(lambda match: "x" * len(match[0]), prose)
    start = 0
    for end in _END.finditer(masked):
        yield prose[start : end.end()]
        start = end.end()
    if start < len(prose):
        yield prose[start:]


def first_sentence(prose: str) -> str:
    """Return the first sentence of `prose` without whitespace around it; empty if there is none."""
    return next(split_sentences(prose.strip()), "").strip()
