"""What the platform's glossary adds to a question: its terms in the other language."""

import re
from collections.abc import Mapping, Sequence

from ingestion.words import normalise, split_words, stem


class Glossary:
    """`[glossary]` of platform.toml, read in both directions."""

    def __init__(self, entries: Mapping[str, Sequence[str]]) -> None:
        groups = [(term, *others) for term, others in entries.items()]
        self._terms = [(_shape(term), tuple(group)) for group in groups for term in group]

    def widen(self, question: str) -> list[str]:
        """The terms that mean the same as one in `question`, without those that stand there."""
        lowered = question.lower()
        words = _stems(question)
        found = [
            term
            for (text, stems), group in self._terms
            if (stems in words if stems else text in lowered)
            for term in group
            if term.lower() not in lowered
        ]
        return list(dict.fromkeys(found))


def _shape(term: str) -> tuple[str, str]:
    """A term as it is looked for: a Latin one by the stems of its words, a Chinese one as it stands."""
    latin = re.fullmatch(r"[\x00-\x7f]+", term)
    return term.lower(), _stems(term) if latin else ""


def _stems(text: str) -> str:
    return f" {' '.join(map(stem, split_words(normalise(text))))} "
