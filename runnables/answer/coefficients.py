"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-23. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 308 of 505 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 2.93,
    "headings": 2.30,
    "letters": 2.46,
    "identifiers": 2.94,
    "quantity": 1.93,
    "parameters": 1.36,
    "unasked": -1.49,
    "rank": 1.19,
    "score": 2.26,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -4.85
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "quoted": 2.48,
    "share": 2.05,
    "found": 1.10,
    "code": 0.87,
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
