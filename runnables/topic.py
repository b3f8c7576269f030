"""How much a question sounds like the documents: the topic gate that needs no model.

The score is the log-likelihood ratio of the question's words under two unigram language models:
the documents' own, smoothed with everyday language (Jelinek-Mercer; Zhai & Lafferty, "A Study of
Smoothing Methods for Language Models", 2004), against everyday language alone (word lists of
`wordfreq`). A word that the documents use more than people do counts for, one that they do not know
counts against, and words common everywhere count next to nothing. Nothing is fitted to a platform:
both models come from counts.
"""

import math
from collections.abc import Callable, Iterable

from ingestion.words import vocabulary_words, zipf_frequency

MIXTURE = 0.5
"""Weight of the documents' model against everyday language."""

RAREST_ZIPF = 2.0
"""A word that no word list knows is taken to be this common: once in ten million words."""

THRESHOLD = 0.0
"""Scores above it are on topic: the documents explain the question better than everyday talk."""

WordCounts = Callable[[Iterable[str]], dict[str, int]]


class TopicModel:
    """The two language models over one collection's vocabulary."""

    def __init__(self, word_counts: WordCounts, total: int) -> None:
        self._word_counts = word_counts
        self._total = max(total, 1)

    def word_scores(self, text: str) -> dict[str, float]:
        """Each distinct word of `text` with its log-likelihood ratio, in natural units."""
        words = [w for w in dict.fromkeys(vocabulary_words(text)) if _is_word(w)]
        counts = self._word_counts(words)
        return {word: self._ratio(word, counts.get(word, 0)) for word in words}

    def score(self, text: str) -> float:
        """The log-likelihood ratio of `text`: above `THRESHOLD` it is about the documents."""
        return sum(self.word_scores(text).values())

    def _ratio(self, word: str, count: int) -> float:
        everyday = 10 ** (max(zipf_frequency(word), RAREST_ZIPF) - 9)
        return math.log(1 - MIXTURE + MIXTURE * count / self._total / everyday)


def _is_word(word: str) -> bool:
    """Numbers and single letters are neither for nor against a topic."""
    return any(map(str.isalpha, word)) and not (len(word) == 1 and word.isascii())
