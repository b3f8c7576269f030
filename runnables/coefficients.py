"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-30. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 610 of 907 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 3.66,
    "headings": 3.78,
    "ngrams": 2.63,
    "identifiers": 2.38,
    "quantity": 1.69,
    "asked": 1.27,
    "unasked": -1.59,
    "rank": 1.10,
    "score": 3.34,
}
"""Weights of the features by which passages are ranked.

`RankedChunk.features` in retrieval/relevance.py computes the features.
"""

ANSWER_INTERCEPT = -5.89
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 2.80,
    "share": 2.62,
    "found": 1.61,
}
"""Weights of the features by which the probability of a right answer is estimated.

`answer_features` in answer/confidence.py computes the features.
"""

TOPIC_INTERCEPT = -1.72
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.30,
    "mean": 2.09,
    "private": -3.22,
    "personal": -1.98,
    "share": 3.12,
}
"""Weights of the features by which the probability that a question is about the platform is estimated.

`topic_features` in classification/topic_gate.py computes the features.
"""
