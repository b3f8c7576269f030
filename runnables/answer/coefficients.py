"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-28. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 583 of 854 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 3.88,
    "headings": 3.73,
    "ngrams": 2.71,
    "identifiers": 2.16,
    "quantity": 1.39,
    "asked": 1.32,
    "unasked": -1.45,
    "rank": 1.20,
    "score": 3.41,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -5.46
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 2.54,
    "share": 2.55,
    "found": 1.41,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -1.94
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.32,
    "mean": 1.91,
    "private": -3.44,
    "personal": -1.84,
    "share": 3.38,
}
"""Weights of the features by which the probability that a question is about the platform is estimated."""
