"""The calibrated probabilities behind refusals and the confidence of quoted answers.

Two logistic regressions estimate the probability that a question is about the platform, and that an
answer is right. `benchmarks/fit_answers` fits them to questions that the documents answer and questions
that they do not answer; docs/explanation/answers.md has the figures.
"""

import math
from collections.abc import Mapping, Sequence

from ingestion.text.language import detect_language
from runnables.answer.coefficients import (
    ANSWER_INTERCEPT,
    ANSWER_WEIGHTS,
    TOPIC_INTERCEPT,
    TOPIC_WEIGHTS,
)
from runnables.question.query_terms import QueryTerms
from schemas.answer import Confidence
from schemas.document import Chunk
from schemas.question import ExtractedDetails

HIGH = 0.77
"""Probability from which the confidence is `high`."""

MEDIUM = 0.5
"""Probability from which the confidence is `medium`."""

NOT_COVERED = 0.06
"""Probability below which the documents do not cover the question."""


def confidence_of(probability: float) -> Confidence:
    """Return the confidence of an answer that is right with this probability."""
    if probability >= HIGH:
        return "high"
    return "medium" if probability >= MEDIUM else "low"


def answer_probability(features: Mapping[str, float]) -> float:
    """Return the probability that an answer with these features is right."""
    return _probability(ANSWER_INTERCEPT, ANSWER_WEIGHTS, features)


def topic_probability(features: Mapping[str, float]) -> float:
    """Return the probability that a question with these features is about the platform."""
    return _probability(TOPIC_INTERCEPT, TOPIC_WEIGHTS, features)


def answer_features(
    details: ExtractedDetails, terms: QueryTerms, chunks: Sequence[Chunk]
) -> dict[str, float]:
    """Return the features of an answer that quotes `chunks`, of which there is at least one."""
    sections = "\n".join(f"{c.title} {c.section} {c.api_name} {c.api_url} {c.body}" for c in chunks)
    found = terms.found_in(sections)
    lowered = sections.lower()
    stated = sum(identifier in lowered for identifier in terms.identifiers)
    return {
        "share": terms.share(found) if terms.weights else float(stated > 0),
        "found": math.log1p(len(found) + stated),
        "identifiers_unstated": float(stated < len(terms.identifiers)),
        "translated": float(detect_language(details.text) != chunks[0].language),
    }


def _probability(
    intercept: float, weights: Mapping[str, float], features: Mapping[str, float]
) -> float:
    logit = intercept + sum(weight * features[name] for name, weight in weights.items())
    return 1 / (1 + math.exp(-logit))
