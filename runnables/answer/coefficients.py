"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-23; do not edit: a module of its own, because the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 309 of 505 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 2.70,
    "headings": 2.48,
    "letters": 2.60,
    "identifiers": 2.95,
    "quantity": 1.87,
    "unasked": -1.62,
    "rank": 1.16,
    "score": 2.21,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -5.16
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "quoted": 2.73,
    "share": 2.14,
    "found": 1.15,
    "code": 0.72,
    "translated": -0.90,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -0.32
"""Log-odds that a question with a low topic score is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.18,
    "mean": 2.84,
    "private": -2.82,
    "personal": -2.63,
    "share": 2.48,
}
"""Weights of the features by which that probability is estimated."""
