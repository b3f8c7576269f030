"""Compares two evaluations of the answers to the same questions."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from app.analytics.evaluation.answer_judge import Grade
from app.analytics.evaluation.answer_scoring import (
    AnswerEvaluation,
    AnswerScores,
    ScoredAnswer,
    answer_scores,
)
from schemas.errors import ConfigurationError

GRADE_VALUES: dict[Grade, float] = {"correct": 1.0, "partly": 0.5, "wrong": 0.0}
"""The values of grades in a comparison. An answer that cites no source counts as wrong."""


class ChangedAnswer(NamedTuple):
    """The results of one question in both evaluations."""

    before: ScoredAnswer
    after: ScoredAnswer


class AnswerComparison(NamedTuple):
    """The scores of two evaluations on the questions that both contain."""

    questions: int
    by_grade: bool
    """Whether answers are compared by the grades of a judge, and not by the facts that they state."""
    before: AnswerScores
    after: AnswerScores
    better: tuple[ChangedAnswer, ...]
    worse: tuple[ChangedAnswer, ...]


def read_evaluation(path: Path) -> AnswerEvaluation:
    """Read the output of `apidesk evaluate --answers --json` from the file at `path`.

    Raises ConfigurationError if the file cannot be read or contains something else.
    """
    try:
        return AnswerEvaluation.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except ValidationError:
        raise ConfigurationError(
            f"{path}: not the output of `apidesk evaluate --answers --json`"
        ) from None


def compare_evaluations(before: AnswerEvaluation, after: AnswerEvaluation) -> AnswerComparison:
    """Compare the answers to the questions that both evaluations contain.

    Raises ConfigurationError if there is no such question.
    """
    earlier = {result.question: result for result in before.questions}
    pairs = [
        ChangedAnswer(earlier[result.question], result)
        for result in after.questions
        if result.question in earlier
    ]
    if not pairs:
        raise ConfigurationError("--compare: the evaluations have no question in common")
    by_grade = before.judge is not None and after.judge is not None
    value = _grade_value if by_grade else _fact_value
    return AnswerComparison(
        questions=len(pairs),
        by_grade=by_grade,
        before=answer_scores([pair.before for pair in pairs]),
        after=answer_scores([pair.after for pair in pairs]),
        better=tuple(pair for pair in pairs if _change(pair, value) > 0),
        worse=tuple(pair for pair in pairs if _change(pair, value) < 0),
    )


def _change(pair: ChangedAnswer, value: Callable[[ScoredAnswer], float | None]) -> float:
    """Return how much the value has increased; 0 if the value before or after is unknown."""
    before, after = value(pair.before), value(pair.after)
    return 0.0 if before is None or after is None else after - before


def _fact_value(result: ScoredAnswer) -> float | None:
    return None if result.right is None else float(result.right)


def _grade_value(result: ScoredAnswer) -> float | None:
    """Return the value of the grade. A question without facts has no grade; its `right` counts instead."""
    if result.judge_failure is not None:
        return None
    if not result.facts:
        return _fact_value(result)
    return GRADE_VALUES[result.grade] if result.grade else 0.0
