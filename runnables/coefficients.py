"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on 2026-11-29. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for 610 of 906 questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {
    "words": 3.82,
    "headings": 3.89,
    "ngrams": 2.40,
    "identifiers": 2.46,
    "quantity": 1.60,
    "asked": 1.38,
    "unasked": -1.69,
    "rank": 1.16,
    "score": 3.34,
}
"""Weights of the features by which passages are ranked."""

ANSWER_INTERCEPT = -5.82
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {
    "first": 2.86,
    "share": 2.50,
    "found": 1.56,
}
"""Weights of the features by which the probability of a right answer is estimated."""

TOPIC_INTERCEPT = -1.76
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {
    "topic": 0.30,
    "mean": 2.01,
    "private": -3.22,
    "personal": -1.91,
    "share": 3.19,
}
"""Weights of the features by which the probability that a question is about the platform is estimated."""
