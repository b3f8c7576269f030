"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-22; do not edit: a module of its own, because the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 226 of 385 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 2.79,
    "letters": 2.51,
    "identifiers": 2.27,
    "quantity": 1.20,
    "asked": 0.50,
    "unasked": -1.55,
    "rank": 1.18,
    "score": 1.75,
    "document": 1.54,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -5.28
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "quoted": 3.07,
    "share": 1.90,
    "found": 1.21,
    "code": 1.97,
    "translated": -1.12,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -0.65
"""Log-odds that a question with a low topic score is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.15,
    "mean": 2.86,
    "private": -2.58,
    "personal": -2.32,
    "share": 3.13,
}
"""Weights of the features by which that probability is estimated."""
