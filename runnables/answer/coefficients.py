"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-28. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 405 of 637 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 3.58,
    "headings": 3.55,
    "ngrams": 2.29,
    "identifiers": 2.60,
    "quantity": 1.76,
    "asked": 0.83,
    "unasked": -1.13,
    "rank": 1.45,
    "score": 3.13,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -5.09
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 2.04,
    "share": 2.29,
    "found": 1.44,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -2.30
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.38,
    "mean": 1.53,
    "private": -3.20,
    "personal": -1.55,
    "share": 3.69,
}
"""Weights of the features by which the probability that a question is about the platform is estimated."""
