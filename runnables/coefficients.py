"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-12-01. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 665 of 1034 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 3.58,
    "headings": 3.78,
    "ngrams": 2.88,
    "identifiers": 2.76,
    "quantity": 1.52,
    "asked": 1.26,
    "unasked": -1.56,
    "rank": 0.92,
    "score": 3.28,
}
"""Weights of the features by which passages are ranked.

`RankedChunk.features` in retrieval/relevance.py computes the features.
"""

ANSWER_INTERCEPT = -5.82
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 3.24,
    "share": 2.55,
    "found": 1.37,
}
"""Weights of the features by which the probability of a right answer is estimated.

`answer_features` in answer/confidence.py computes the features.
"""

TOPIC_INTERCEPT = -1.82
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.31,
    "mean": 2.13,
    "private": -3.23,
    "personal": -2.01,
    "share": 3.07,
}
"""Weights of the features by which the probability that a question is about the platform is estimated.

`topic_features` in classification/topic_gate.py computes the features.
"""
