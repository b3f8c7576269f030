"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-23. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 306 of 506 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 2.73,
    "headings": 2.39,
    "letters": 2.49,
    "identifiers": 2.01,
    "quantity": 1.78,
    "parameters": 1.34,
    "unasked": -1.51,
    "rank": 1.20,
    "score": 2.22,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -4.31
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 1.78,
    "share": 2.13,
    "found": 1.02,
    "code": 1.13,
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
