"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-28. Do not edit this module: the command
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

ANSWER_INTERCEPT = -4.30
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 1.79,
    "share": 2.12,
    "found": 1.03,
    "code": 1.12,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -2.02
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.23,
    "mean": 1.66,
    "private": -2.70,
    "personal": -1.56,
    "share": 4.17,
}
"""Weights of the features by which the probability of such a question is estimated."""
