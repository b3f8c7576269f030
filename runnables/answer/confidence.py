"""The calibrated probability that an answer is right, and the confidence that follows from it.

A logistic regression over features of the question and of the cited chunks estimates the probability. It is
fitted on questions that the documents answer and questions that they do not answer;
docs/explanation/answers.md has the figures.
"""

import math
from collections.abc import Mapping, Sequence

from ingestion.store.collection import Collection
from ingestion.text.language import detect_language
from runnables.answer.coefficients import CONFIDENCE_INTERCEPT, CONFIDENCE_WEIGHTS
from runnables.answer.passages import Passage
from runnables.answer.query_terms import QueryTerms
from runnables.state import PipelineState
from schemas.answer import Confidence

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


def probability_of(features: Mapping[str, float]) -> float:
    """Return the probability that an answer with these features is right."""
    logit = CONFIDENCE_INTERCEPT + sum(
        weight * features[name] for name, weight in CONFIDENCE_WEIGHTS.items()
    )
    return 1 / (1 + math.exp(-logit))


def answer_features(
    state: PipelineState, passages: Sequence[Passage], collection: Collection
) -> dict[str, float]:
    """Return the features of an answer that quotes `passages`, of which there is at least one. Blocks."""
    question = state["question"]
    terms = QueryTerms.of(question, state["classification"].structured, collection)
    chunks = [passage.chunk for passage in passages]
    sections = "\n".join(f"{c.title} {c.section} {c.api_name} {c.api_url} {c.body}" for c in chunks)
    found = terms.found_in(sections)
    lowered = sections.lower()
    stated = sum(identifier in lowered for identifier in terms.identifiers)
    return {
        "share": terms.share(found) if terms.weights else float(stated > 0),
        "found": math.log1p(len(found) + stated),
        "identifiers_unstated": float(stated < len(terms.identifiers)),
        "translated": float(detect_language(question.text) != chunks[0].language),
    }
