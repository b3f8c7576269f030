"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-28. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 583 of 854 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 3.84,
    "headings": 3.76,
    "ngrams": 2.72,
    "identifiers": 2.18,
    "quantity": 1.39,
    "asked": 1.41,
    "unasked": -1.44,
    "rank": 1.25,
    "score": 3.37,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -5.39
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 2.38,
    "share": 2.44,
    "found": 1.50,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -1.88
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.36,
    "mean": 1.73,
    "private": -3.46,
    "personal": -1.88,
    "share": 3.15,
}
"""Weights of the features by which the probability that a question is about the platform is estimated."""
