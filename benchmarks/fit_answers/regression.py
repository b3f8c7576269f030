"""Fits linear models, and cross-validates them over the corpora."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from benchmarks.fit_answers.examples import Array, Example, RankingExample

RANKING_PENALTY = 0.5
"""The loss includes half of this value times the squared distance of each ranking weight from 1."""

LOGISTIC_PENALTY = 10.0
"""The loss includes half of this value times the square of each standardised coefficient."""


@dataclass(frozen=True)
class Logistic:
    """A logistic regression over named features."""

    intercept: float
    weights: dict[str, float]

    def probabilities(self, examples: Sequence[Example]) -> Array:
        """Return the estimated probability of each example."""
        logits = self.intercept + _matrix(examples, list(self.weights)) @ list(
            self.weights.values()
        )
        return np.asarray(1 / (1 + np.exp(-logits)))


def fit_ranking(examples: Sequence[RankingExample], columns: Sequence[int]) -> Array:
    """Return the weight of each feature; features outside `columns` have weight 0.

    The loss is the negative log-likelihood that one of a question's right passages is chosen, if passages
    are chosen with a softmax of their weighted sums (a conditional logit). A penalty, see
    `RANKING_PENALTY`, is added. Only questions with both right and wrong passages count.
    """
    useful = [e for e in examples if e.right.any() and not e.right.all()]
    kept = np.zeros(examples[0].features.shape[1])
    kept[list(columns)] = 1

    def loss(weights: Array) -> tuple[float, Array]:
        value = 0.5 * RANKING_PENALTY * float(np.sum(kept * (weights - 1) ** 2))
        gradient = RANKING_PENALTY * (weights - 1)
        for example in useful:
            all_, right = _softmax(example.features @ weights), example.right
            share = all_[right].sum()
            value -= example.weight * float(np.log(share))
            difference = all_ - np.where(right, all_ / share, 0)
            gradient = gradient + example.weight * difference @ example.features
        return value, gradient * kept

    return np.asarray(minimize(loss, kept, jac=True, method="L-BFGS-B").x)


def rightly_ranked(examples: Sequence[RankingExample], weights: Array) -> int:
    """Return the number of questions whose best passage is right."""
    return sum(bool(e.right[np.argmax(e.features @ weights)]) for e in examples if e.right.size)


def cross_validate_ranking(examples: Sequence[RankingExample], columns: Sequence[int]) -> int:
    """Return the number of questions whose best passage is right.

    The passages of each corpus are ranked with weights that are fitted on the other corpora.
    """
    total = 0
    for corpus in {example.corpus for example in examples}:
        others = [example for example in examples if example.corpus != corpus]
        held_out = [example for example in examples if example.corpus == corpus]
        total += rightly_ranked(held_out, fit_ranking(others, columns))
    return total


def fit_logistic(examples: Sequence[Example], names: Sequence[str]) -> Logistic:
    """Return the regression of the labels over the features `names`."""
    features = _matrix(examples, names)
    labels = np.array([example.label for example in examples], dtype=float)
    importance = np.array([example.weight for example in examples])
    mean, deviation = features.mean(0), features.std(0) + 1e-9
    standardised = (features - mean) / deviation

    def loss(coefficients: Array) -> tuple[float, Array]:
        logits = coefficients[0] + standardised @ coefficients[1:]
        errors = importance * (1 / (1 + np.exp(-logits)) - labels)
        value = float(np.sum(importance * (np.logaddexp(0, logits) - labels * logits)))
        value += 0.5 * LOGISTIC_PENALTY * float(np.sum(coefficients[1:] ** 2))
        penalties = LOGISTIC_PENALTY * coefficients[1:]
        return value, np.concatenate([[errors.sum()], standardised.T @ errors + penalties])

    found = minimize(loss, np.zeros(len(names) + 1), jac=True, method="L-BFGS-B").x
    weights = found[1:] / deviation
    intercept = float(found[0] - mean @ weights)
    return Logistic(intercept, dict(zip(names, map(float, weights), strict=True)))


def cross_validate_logistic(examples: Sequence[Example], names: Sequence[str]) -> Array:
    """Return the probability of each example, estimated by a regression fitted on the other corpora."""
    corpora = np.array([example.corpus for example in examples])
    probabilities = np.zeros(len(examples))
    for corpus in set(corpora):
        others = [example for example in examples if example.corpus != corpus]
        held_out = [example for example in examples if example.corpus == corpus]
        probabilities[corpora == corpus] = fit_logistic(others, names).probabilities(held_out)
    return probabilities


def log_loss(examples: Sequence[Example], probabilities: Array) -> float:
    """Return the mean negative log-likelihood of the labels, in nats."""
    labels = np.array([example.label for example in examples])
    return float(-np.log(np.where(labels, probabilities, 1 - probabilities)).mean())


def _matrix(examples: Sequence[Example], names: Sequence[str]) -> Array:
    return np.array([[example.features[name] for name in names] for example in examples])


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())
