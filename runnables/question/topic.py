"""How much a question sounds like the documents: the topic gate that needs no model.

The score is the log-likelihood ratio of the question's words under two unigram language models:
the documents' own, smoothed with everyday language (Jelinek-Mercer; Zhai & Lafferty, "A Study of
Smoothing Methods for Language Models", 2004), against everyday language alone (the word lists of
`wordfreq`). A word that the documents use more than people do speaks for them, one that they do not
know speaks against, and words that everybody uses all the time are not heard. Figures on platforms
it was not made with: docs/decisions/0002-topic-gate.md.
"""

import math
from collections.abc import Callable, Iterable

from ingestion.everyday_words import COMMON_ZIPF, zipf_frequency
from ingestion.words import vocabulary_words
from runnables.question.developer_words import DEVELOPER_WORDS

MIXTURE = 0.3
"""Weight of the documents' model against everyday language."""

DEVELOPER_SHARE = 1e-3
"""Share of the documents' words that each word of `DEVELOPER_WORDS` is taken to have at least."""

THRESHOLD = 1.0
"""A question is on topic above it: when the documents explain it e times better than everyday talk."""

WordCounts = Callable[[Iterable[str]], dict[str, int]]


class TopicScorer:
    """The two language models over one collection's vocabulary."""

    def __init__(self, word_counts: WordCounts, total: int) -> None:
        self._word_counts = word_counts
        self._total = max(total, 1)

    def word_scores(self, text: str) -> dict[str, float]:
        """Each telling word of `text` with its log-likelihood ratio, in natural units."""
        words = [word for word in dict.fromkeys(vocabulary_words(text)) if _tells(word)]
        counts = self._word_counts(words)
        return {word: self._ratio(word, counts.get(word, 0)) for word in words}

    def score(self, text: str) -> float:
        """The log-likelihood ratio of `text`: above `THRESHOLD` it is about the documents."""
        return sum(self.word_scores(text).values())

    def _ratio(self, word: str, count: int) -> float:
        share = count / self._total
        if word in DEVELOPER_WORDS:
            share = max(share, DEVELOPER_SHARE)
        everyday = 10 ** (zipf_frequency(word) - 9)
        return math.log(1 - MIXTURE + MIXTURE * share / everyday)


def _tells(word: str) -> bool:
    """Numbers, single letters and the most common words are neither for nor against a topic."""
    is_letter = len(word) == 1 and word.isascii()
    return any(map(str.isalpha, word)) and not is_letter and zipf_frequency(word) < COMMON_ZIPF
