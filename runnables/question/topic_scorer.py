"""Scores how likely it is that a question is about the documents. The topic gate uses the score.

The score is the log-likelihood ratio of the question's words under two unigram language models. The
first is the model of the documents, smoothed with everyday language (Jelinek-Mercer; Zhai & Lafferty, "A
Study of Smoothing Methods for Language Models", 2004). The second is everyday language alone (the word
lists of `wordfreq`). Words that are more frequent in the documents than in everyday language raise the
score. Words that the documents do not contain lower it, except `DEVELOPER_WORDS`. The most common words are
ignored.

docs/decisions/0002-topic-gate.md has measurements on platforms that the gate was not tuned on.
"""

import math

from ingestion.text.language import COMMON_ZIPF, zipf_frequency
from ingestion.text.words import (
    COMPARISON_WORDS,
    CONTRACTIONS,
    WordCounts,
    read_word_lists,
    vocabulary_words,
    with_indexed_versions,
    words_within,
)

DOCUMENT_WEIGHT = 0.3
"""Weight of the documents in the language model that mixes them with everyday language."""

DEVELOPER_SHARE = 1e-3
"""Assumed minimum frequency of each of `DEVELOPER_WORDS` in the documents, as a share of all words."""

_WORDS = read_word_lists(__file__, "topic_scorer")

DEVELOPER_WORDS = _WORDS["developer"]
"""Words that developers use on every platform, whether or not its documents contain them."""

STOP_WORDS = _WORDS["stop"] | COMPARISON_WORDS | CONTRACTIONS
"""Words of questions and requests, and function words; they say nothing about the subject."""


def is_uncommon_word(word: str) -> bool:
    """Return whether `word` is neither a number, nor a single letter, nor one of the most common words."""
    is_letter = len(word) == 1 and word.isascii()
    return any(map(str.isalpha, word)) and not is_letter and zipf_frequency(word) < COMMON_ZIPF


def is_content_word(word: str) -> bool:
    """Return whether `word` can indicate a topic, that is, is uncommon and not a stop word."""
    return word not in STOP_WORDS and is_uncommon_word(word)


class TopicScorer:
    """Scores texts against the documents of one collection."""

    def __init__(self, word_counts: WordCounts, total: int) -> None:
        """`total` is the number of words in the documents, counting repetitions."""
        self._word_counts = word_counts
        self._total = max(total, 1)

    def score(self, text: str) -> float:
        """Return the log-likelihood ratio of `text`, in nats."""
        return sum(self.word_scores(text).values())

    def word_scores(self, text: str) -> dict[str, float]:
        """Return the log-likelihood ratio (natural logarithm) of each uncommon word of `text`.

        If the documents contain only parts of a Chinese word, that is, shorter words within it, these
        parts are scored instead.
        """
        indexed = vocabulary_words(with_indexed_versions(text, self._word_counts))
        words = [word for word in dict.fromkeys(indexed) if is_uncommon_word(word)]
        counts = self._word_counts(words)
        parts = {word: words_within(word) for word in words if word not in counts}
        counts |= self._word_counts([part for each in parts.values() for part in each])
        scored = (
            [part for part in parts.get(word, ()) if part in counts] or [word] for word in words
        )
        return {word: self._ratio(word, counts.get(word, 0)) for each in scored for word in each}

    def _ratio(self, word: str, count: int) -> float:
        share = count / self._total
        if word in DEVELOPER_WORDS:
            share = max(share, DEVELOPER_SHARE)
        everyday = 10 ** (zipf_frequency(word) - 9)  # Zipf: log10 of the count per billion words
        return math.log(1 - DOCUMENT_WEIGHT + DOCUMENT_WEIGHT * share / everyday)
