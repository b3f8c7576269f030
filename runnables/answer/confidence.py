"""The calibrated probabilities behind refusals and the confidence of quoted answers.

Two logistic regressions estimate the probability that a question is about the platform, and that an
answer is right. `benchmarks/fit_answers` fits them to questions that the documents answer and to questions
that the documents do not answer; docs/explanation/answers.md has the figures.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runnables.answer.coefficients import (
    ANSWER_INTERCEPT,
    ANSWER_WEIGHTS,
    TOPIC_INTERCEPT,
    TOPIC_WEIGHTS,
)
from runnables.answer.passages import QuotedPassage
from runnables.question.query_terms import QueryTerms
from schemas.answer import Confidence

HIGH = 0.8
"""Probability from which the confidence is `high`."""

MEDIUM = 0.5
"""Probability from which the confidence is `medium`."""

REST_DOCUMENTED = 0.55
"""Probability from which a question with an identifier that no document contains is answered in part."""

INCOMPLETE = 0.49
"""Probability of an answer without an identifier of the question: low confidence; chosen, not measured."""

NOT_COVERED = 0.04
"""Probability below which the answer says that the documents do not cover the question."""


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


@dataclass(frozen=True)
class Quotes:
    """The passages that an answer quotes, and those that it could have quoted."""

    terms: QueryTerms
    """The terms of the whole question."""
    passages: Sequence[QuotedPassage]
    ranked: Sequence[Sequence[QuotedPassage]]
    """All passages for each part of the question, best first."""


def quotes_probability(quotes: Quotes, has_missing_identifiers: bool) -> float:
    """Return the probability that `quotes` answer the question, 0 to 1.

    If no document contains an identifier of the question, an answer that would otherwise have at least the
    probability `REST_DOCUMENTED` has low confidence, because the rest of the question is documented. Any
    other answer then has probability 0.
    """
    if not quotes.passages:
        return 0.0
    probability = answer_probability(answer_features(quotes))
    if not has_missing_identifiers:
        return probability
    return INCOMPLETE if probability >= REST_DOCUMENTED else 0.0


def answer_features(quotes: Quotes) -> dict[str, float]:
    """Return the features of an answer with `quotes`, which have at least one passage."""
    terms, passages = quotes.terms, quotes.passages
    words = frozenset[str]().union(*(passage.words for passage in passages))
    text = "\n".join(passage.text for passage in passages).lower()
    stated = sum(identifier in text for identifier in terms.identifiers)
    return {
        "first": min(map(_first_probability, quotes.ranked)),
        "share": terms.share(words) if terms.weights else float(stated > 0),
        "found": math.log1p(len(words) + stated),
        "code": float(any(passage.defines_code for passage in passages)),
    }


def _first_probability(ranked: Sequence[QuotedPassage]) -> float:
    """Return the probability that the first passage is right, assuming that one of `ranked` is.

    A passage's relevance is in log-odds, so the probabilities are the softmax of the relevance. If the
    first passage defines a code of the question, all passages that define such a code count.
    """
    first_weight = total = 0.0
    for passage in ranked:
        weight = math.exp(passage.relevance - ranked[0].relevance)
        total += weight
        if passage is ranked[0] or (ranked[0].defines_code and passage.defines_code):
            first_weight += weight
    return first_weight / total if total else 0.0


def _probability(
    intercept: float, weights: Mapping[str, float], features: Mapping[str, float]
) -> float:
    logit = intercept + sum(weight * features[name] for name, weight in weights.items())
    return 1 / (1 + math.exp(-logit))
