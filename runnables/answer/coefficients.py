"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-28. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 510 of 776 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 3.72,
    "headings": 3.61,
    "ngrams": 2.66,
    "identifiers": 2.34,
    "quantity": 1.49,
    "asked": 0.92,
    "unasked": -1.14,
    "rank": 1.41,
    "score": 3.13,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -5.37
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 2.38,
    "share": 2.32,
    "found": 1.47,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -1.88
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.36,
    "mean": 1.74,
    "private": -3.46,
    "personal": -1.88,
    "share": 3.15,
}
"""Weights of the features by which the probability that a question is about the platform is estimated."""
