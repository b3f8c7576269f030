"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-29. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 631 of 928 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 4.00,
    "headings": 3.75,
    "ngrams": 2.42,
    "identifiers": 2.46,
    "quantity": 1.57,
    "asked": 1.51,
    "unasked": -1.61,
    "rank": 1.15,
    "score": 3.35,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -6.00
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 2.97,
    "share": 2.64,
    "found": 1.56,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -1.77
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.30,
    "mean": 2.01,
    "private": -3.22,
    "personal": -1.91,
    "share": 3.23,
}
"""Weights of the features by which the probability that a question is about the platform is estimated."""
