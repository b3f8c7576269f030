"""Formats the coefficients as a module, and the figures as Markdown."""

import itertools
from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np

from benchmarks.document import prose, table
from benchmarks.fit_answers.examples import Array, Example, RankingExample
from benchmarks.fit_answers.regression import (
    Logistic,
    cross_validate_logistic,
    cross_validate_ranking,
    log_loss,
)
from runnables.answer.confidence import HIGH, MEDIUM

BOUNDS = (0.0, 0.2, 0.4, MEDIUM, 0.6, HIGH, 1.0)
"""Bounds of the rows of the reliability table."""

COEFFICIENTS = '''"""Coefficients of the ranking of passages, of the confidence and of the topic gate.

Fitted by `make fit-answers` on {date}. Do not edit this module: the command
rewrites it. docs/explanation/answers.md has the figures.
A right passage is ranked first for {ranked} of {questions} questions, cross-validated over the corpora.
"""

PASSAGE_WEIGHTS = {passage}
"""Weights of the features by which passages are ranked.

`RankedChunk.features` in retrieval/relevance.py computes the features.
"""

ANSWER_INTERCEPT = {answer_intercept}
"""Log-odds that an answer is right, if all features are 0."""

ANSWER_WEIGHTS = {answer}
"""Weights of the features by which the probability of a right answer is estimated.

`answer_features` in answer/confidence.py computes the features.
"""

TOPIC_INTERCEPT = {topic_intercept}
"""Log-odds that a question is about the platform, if all features are 0."""

TOPIC_WEIGHTS = {topic}
"""Weights of the features by which the probability that a question is about the platform is estimated.

`topic_features` in classification/topic_gate.py computes the features.
"""
'''

INTRODUCTION = """
    Written by `make fit-answers`. All figures are cross-validated: the coefficients for a platform are
    fitted on the others. The ranking is fitted on the working part and on generated questions, the
    confidence also on off-topic questions, questions about other platforms and questions whose documents
    are left out. The tables of the confidence count only the questions of the working part.
"""


def coefficients_text(
    passage: Mapping[str, float], answer: Logistic, topic: Logistic, questions: int, ranked: int
) -> str:
    """Return the module runnables/coefficients.py."""
    return COEFFICIENTS.format(
        date=date.today().isoformat(),
        questions=questions,
        ranked=ranked,
        passage=_dictionary(passage),
        answer_intercept=f"{answer.intercept:.2f}",
        answer=_dictionary(answer.weights),
        topic_intercept=f"{topic.intercept:.2f}",
        topic=_dictionary(topic.weights),
    )


def document_text(
    names: Sequence[str], passages: Sequence[RankingExample], answers: Sequence[Example]
) -> str:
    """Return the section of docs/explanation/answers.md."""
    features = list(answers[0].features)
    asked = [example.kind in ("answerable", "unanswerable") for example in answers]
    probabilities = cross_validate_logistic(answers, features)[asked]
    counted = [example for example, is_asked in zip(answers, asked, strict=True) if is_asked]
    return "\n\n".join(
        [
            prose(INTRODUCTION),
            ranking_table(names, passages),
            answer_table(answers, asked),
            reliability_table(counted, probabilities),
        ]
    )


def ranking_table(names: Sequence[str], examples: Sequence[RankingExample]) -> str:
    """Return the table of the ranking with all features and without each of them."""
    columns = range(len(names))
    rows = [["all", str(cross_validate_ranking(examples, columns))]]
    for i, name in enumerate(names):
        others = [column for column in columns if column != i]
        rows.append([f"without `{name}`", str(cross_validate_ranking(examples, others))])
    return table([f"ranking of {len(examples)} questions' passages", "right one first"], rows)


def answer_table(examples: Sequence[Example], counted: Sequence[bool]) -> str:
    """Return the table of the confidence with all features and without each of them."""
    names = list(examples[0].features)
    kept = [example for example, is_counted in zip(examples, counted, strict=True) if is_counted]

    def figure(features: Sequence[str]) -> str:
        return f"{log_loss(kept, cross_validate_logistic(examples, features)[list(counted)]):.3f}"

    rows = [["all", figure(names)]]
    rows += [[f"without `{n}`", figure([m for m in names if m != n])] for n in names]
    return table(["confidence", "log loss"], rows)


def reliability_table(examples: Sequence[Example], probabilities: Array) -> str:
    """Return the table of right answers by estimated probability."""
    labels = np.array([example.label for example in examples])
    rows = []
    for low, high in itertools.pairwise(BOUNDS):
        inside = (probabilities >= low) & (probabilities < high)
        share = f"{labels[inside].mean():.2f}" if inside.any() else "–"
        rows.append([f"{low:.2f} to {high:.2f}", str(int(inside.sum())), share])
    return table(["estimated probability", "questions", "right"], rows)


def _dictionary(weights: Mapping[str, float]) -> str:
    lines = (f'    "{name}": {weight:.2f},\n' for name, weight in weights.items())
    return "{\n" + "".join(lines) + "}"
