"""Scores how likely a question is about the documents: the topic gate that needs no model.

The score is the log-likelihood ratio of the question's words under two unigram language models: that
of the documents, smoothed with everyday language (Jelinek-Mercer; Zhai & Lafferty, "A Study of Smoothing
Methods for Language Models", 2004), and everyday language alone (the word lists of `wordfreq`). Words
that are more frequent in the documents raise it, words that the documents do not contain lower it, and
the most common words are ignored. Measurements on platforms that it was not tuned on:
docs/decisions/0002-topic-gate.md.
"""

import math
from collections.abc import Callable, Iterable

from ingestion.text.word_frequency import zipf_frequency
from ingestion.text.words import vocabulary_words
from runnables.question.content_words import DEVELOPER_WORDS, is_uncommon_word

DOCUMENT_WEIGHT = 0.3
"""Weight of the documents' language model in the mixture with everyday language."""

DEVELOPER_SHARE = 1e-3
"""Least share of the documents' words that each of `DEVELOPER_WORDS` is taken to have."""

TOPIC_THRESHOLD = 1.0
"""Score above which a question is on topic: the documents explain it e times better."""

WordCounts = Callable[[Iterable[str]], dict[str, int]]
"""Returns the number of occurrences in the documents for each word that has any."""


class TopicScorer:
    """The two language models over the vocabulary of one collection."""

    def __init__(self, word_counts: WordCounts, total: int) -> None:
        """`total` is the number of all words in the documents."""
        self._word_counts = word_counts
        self._total = max(total, 1)

    def score(self, text: str) -> float:
        """Return the log-likelihood ratio of `text`; above `TOPIC_THRESHOLD` it is on topic."""
        return sum(self.word_scores(text).values())

    def word_scores(self, text: str) -> dict[str, float]:
        """Return the log-likelihood ratio (natural logarithm) of each uncommon word of `text`."""
        words = [word for word in dict.fromkeys(vocabulary_words(text)) if is_uncommon_word(word)]
        counts = self._word_counts(words)
        return {word: self._ratio(word, counts.get(word, 0)) for word in words}

    def _ratio(self, word: str, count: int) -> float:
        share = count / self._total
        if word in DEVELOPER_WORDS:
            share = max(share, DEVELOPER_SHARE)
        everyday = 10 ** (zipf_frequency(word) - 9)
        return math.log(1 - DOCUMENT_WEIGHT + DOCUMENT_WEIGHT * share / everyday)
