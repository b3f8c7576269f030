"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-23. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 311 of 506 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 2.85,
    "headings": 2.39,
    "letters": 2.24,
    "identifiers": 2.50,
    "quantity": 1.98,
    "parameters": 1.38,
    "unasked": -1.50,
    "rank": 1.15,
    "score": 2.15,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -4.78
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "quoted": 2.51,
    "share": 2.07,
    "found": 1.01,
    "code": 1.11,
    "translated": -0.83,
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
