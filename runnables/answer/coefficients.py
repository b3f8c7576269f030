"""Coefficients of the ranking of passages and of the confidence, fitted on 2026-11-22.

They are logistic regressions on the work part of the question sets; docs/explanation/answers.md has the
figures.
"""

PASSAGE_WEIGHTS = {
    "with_heading": 1.94,
    "passage": 1.49,
    "identifiers": 1.24,
    "quantity": 2.12,
    "kind": 1.6,
    "rank": 1.76,
    "score": 1.47,
}
"""Weights of the features by which passages are ranked."""

CONFIDENCE_INTERCEPT = -3.70
"""Log-odds that an answer is right whose features are all 0."""

CONFIDENCE_WEIGHTS = {
    "share": 2.03,
    "found": 1.38,
    "identifiers_unstated": -0.62,
    "translated": -1.78,
}
"""Weights of the features by which the probability of a right answer is estimated."""
