"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-23. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 307 of 506 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 2.71,
    "headings": 2.37,
    "letters": 2.35,
    "identifiers": 2.11,
    "quantity": 1.79,
    "parameters": 1.34,
    "unasked": -1.51,
    "rank": 1.21,
    "score": 2.24,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -4.34
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 1.85,
    "share": 2.20,
    "found": 0.98,
    "code": 1.12,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -0.32
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.18,
    "mean": 2.84,
    "private": -2.82,
    "personal": -2.63,
    "share": 2.48,
}
"""Weights of the features by which the probability of such a question is estimated."""
