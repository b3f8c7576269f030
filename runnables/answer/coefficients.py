"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-22; do not edit. docs/explanation/answers.md has the figures.
A right passage is ranked first for 68 of 152 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "with_heading": 1.24,
    "passage": 1.33,
    "identifiers": 1.47,
    "quantity": 2.19,
    "kind": 0.56,
    "rank": 1.59,
    "score": 2.05,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -4.05
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "share": 1.91,
    "found": 1.56,
    "identifiers_unstated": -0.51,
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
