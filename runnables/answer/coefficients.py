"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-22; do not edit: a module of its own, because the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 309 of 505 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 2.58,
    "headings": 2.53,
    "letters": 2.34,
    "identifiers": 2.99,
    "quantity": 1.80,
    "unasked": -1.63,
    "rank": 1.10,
    "score": 2.25,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -4.97
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "quoted": 2.81,
    "share": 1.98,
    "found": 1.08,
    "code": 1.49,
    "translated": -0.76,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -0.35
"""Log-odds that a question with a low topic score is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.17,
    "mean": 2.81,
    "private": -2.78,
    "personal": -2.63,
    "share": 2.54,
}
"""Weights of the features by which that probability is estimated."""
