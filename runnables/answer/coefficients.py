"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-22; do not edit: a module of its own, because the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 67 of 152 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "with_heading": 1.20,
    "passage": 1.26,
    "identifiers": 1.67,
    "quantity": 2.14,
    "kind": 0.57,
    "rank": 1.63,
    "score": 1.96,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -4.07
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "share": 1.91,
    "found": 1.58,
    "identifiers_unstated": -0.53,
    "translated": -1.54,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -0.37
"""Log-odds that a question with a low topic score is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.88,
    "share": 3.45,
}
"""Weights of the features by which that probability is estimated."""
