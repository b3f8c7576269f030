"""The platform's glossary: terms of one language and their equivalents in the other.

A module of its own because classification, tools and analytics use it without the retriever.
"""

import re
from collections.abc import Mapping, Sequence

from ingestion.text.words import normalise, split_words, stem


class Glossary:
    """Section `[glossary]` of platform.toml, read in both directions."""

    def __init__(self, entries: Mapping[str, Sequence[str]]) -> None:
        groups = [(term, *others) for term, others in entries.items()]
        self._terms = [(_search_forms(term), group) for group in groups for term in group]

    def equivalents(self, text: str) -> list[str]:
        """Return the terms that mean the same as a term in `text`, without those that `text` contains."""
        lowered = text.lower()
        stems_of_text = _stems(text)
        terms = [
            term
            for (literal, stems), group in self._terms
            if (stems in stems_of_text if stems else literal in lowered)
            for term in group
            if term.lower() not in lowered
        ]
        return list(dict.fromkeys(terms))


def _search_forms(term: str) -> tuple[str, str]:
    """The literal form of a term, and its stems; a Chinese term has no stems and is matched literally."""
    is_latin = re.fullmatch(r"[\x00-\x7f]+", term)
    return term.lower(), _stems(term) if is_latin else ""


def _stems(text: str) -> str:
    return f" {' '.join(map(stem, split_words(normalise(text))))} "
