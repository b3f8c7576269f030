"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-28. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 629 of 928 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 3.97,
    "headings": 3.76,
    "ngrams": 2.61,
    "identifiers": 2.30,
    "quantity": 1.41,
    "asked": 1.42,
    "unasked": -1.46,
    "rank": 1.22,
    "score": 3.24,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -5.75
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 2.67,
    "share": 2.76,
    "found": 1.46,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -1.78
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.31,
    "mean": 1.96,
    "private": -3.20,
    "personal": -1.89,
    "share": 3.25,
}
"""Weights of the features by which the probability that a question is about the platform is estimated."""
