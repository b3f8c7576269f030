"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-28. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 313 of 506 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 3.37,
    "headings": 3.23,
    "ngrams": 2.15,
    "identifiers": 2.78,
    "quantity": 1.96,
    "asked": 0.91,
    "unasked": -1.84,
    "rank": 1.07,
    "score": 3.14,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -4.16
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 2.14,
    "share": 1.95,
    "found": 0.99,
    "code": 0.85,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -2.17
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.35,
    "mean": 1.42,
    "private": -3.10,
    "personal": -1.53,
    "share": 3.88,
}
"""Weights of the features by which the probability of such a question is estimated."""
