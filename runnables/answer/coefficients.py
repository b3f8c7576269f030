"""Coefficients fitted on 2026-11-22 by `python -m benchmarks.fit_answers`. Do not edit by hand."""

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
