"""Prints evaluations of answers as text, and compares two evaluations of the same questions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.analytics.evaluation.answer_scoring import (
    SCORED_CHUNKS,
    AnswerEvaluation,
    AnswerScores,
    Grade,
    Reliability,
    ScoredAnswer,
    answer_scores,
)
from app.analytics.evaluation.dataset import Fact
from app.analytics.evaluation.report import (
    MAX_WORST_QUESTIONS,
    new_table,
    print_parts,
    repeated_line,
)
from app.analytics.report_text import count_of, differing_lines
from schemas.errors import ConfigurationError

SHARES = {
    "page": "page",
    "evidence": "evidence",
    "right": "answer",
    "correct": "correct",
    "grounded": "grounded",
    "high_and_wrong": "high and wrong",
    "refused": "refused",
    "not_covered": "not covered",
    "honest": "unanswerable: honest",
    "unanswerable_high": "unanswerable: high",
}
"""The fields of `AnswerScores` that a comparison shows, each with its label."""

MAX_LINE_CHARS = 160
"""Maximum length of a line of an answer in a comparison, in characters."""

MAX_LINES = 10
"""Maximum number of lines of an answer in a comparison."""

GRADE_VALUES: dict[Grade, float] = {"correct": 1.0, "partly": 0.5, "wrong": 0.0}
"""The value of each grade in a comparison."""


class AnswerPair(NamedTuple):
    """The results of one question in both evaluations."""

    before: ScoredAnswer
    after: ScoredAnswer


class AnswerComparison(NamedTuple):
    """The scores of two evaluations on the questions that both contain."""

    questions: int
    setups: tuple[tuple[str, str], ...]
    """The differences between the setups, as pairs such as ("14 documents", "15 documents")."""
    by_grade: bool
    """Whether answers are compared by a judge's grades, instead of by the facts that they state."""
    before: AnswerScores
    after: AnswerScores
    better: tuple[AnswerPair, ...]
    worse: tuple[AnswerPair, ...]


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
    later = {result.question: result for result in after.questions}
    pairs = [
        AnswerPair(earlier[question], result)
        for question, result in later.items()
        if question in earlier
    ]
    if not pairs:
        raise ConfigurationError("--compare: the evaluations have no question in common")
    by_grade = before.judge is not None and after.judge is not None
    value = _grade_value if by_grade else _fact_value
    return AnswerComparison(
        questions=len(pairs),
        setups=tuple(
            (old, new) for old, new in zip(_setup(before), _setup(after), strict=True) if old != new
        ),
        by_grade=by_grade,
        before=answer_scores([pair.before for pair in pairs]),
        after=answer_scores([pair.after for pair in pairs]),
        better=tuple(pair for pair in pairs if _change(pair, value) > 0),
        worse=tuple(pair for pair in pairs if _change(pair, value) < 0),
    )


def _setup(evaluation: AnswerEvaluation) -> tuple[str, ...]:
    return (
        f"answered by {evaluation.answered_by}",
        f"judged by {evaluation.judge}" if evaluation.judge else "no judge",
        count_of(evaluation.documents, "document"),
    )


def _change(pair: AnswerPair, value: Callable[[ScoredAnswer], float | None]) -> float:
    """Return how much the value has increased; 0 if the value before or after is unknown."""
    before, after = value(pair.before), value(pair.after)
    return 0.0 if before is None or after is None else after - before


def _fact_value(result: ScoredAnswer) -> float | None:
    if result.unanswerable:
        return float(result.is_honest)
    return None if result.right is None else float(result.right)


def _grade_value(result: ScoredAnswer) -> float | None:
    """Return the value of the grade; None if the judge failed."""
    if result.judge_failure is not None:
        return None
    if not result.facts:  # without facts, the judge is not asked
        return _fact_value(result)
    # An answer without a grade cites no source, and therefore counts as wrong.
    return GRADE_VALUES[result.grade] if result.grade else 0.0


def print_answers(evaluation: AnswerEvaluation) -> None:
    """Print the scores on stdout, then wrong answers, starting with those of confidence `high`."""
    parts = [
        _answers_heading(evaluation),
        _scores(evaluation.scores),
        _reliability(evaluation.scores.reliability),
        *_grades(evaluation),
        *_wrong_answers(evaluation.questions),
        *(Text(f"in LangSmith: {name}") for name in evaluation.experiments),
    ]
    print_parts(parts)


def print_comparison(comparison: AnswerComparison) -> None:
    """Print the shares of both evaluations on stdout, then the answers that became worse or better."""
    before, after = comparison.before, comparison.after
    table = new_table(
        f"{count_of(comparison.questions, 'question')} in both", "before", "after", "change"
    )
    for name, label in SHARES.items():
        old, new = getattr(before, name), getattr(after, name)
        change = "–" if old is None or new is None else f"{new - old:+.3f}"
        if old is not None or new is not None:
            table.add_row(label, share_text(old), share_text(new), change)
    measure = "the judge's grades" if comparison.by_grade else "facts"
    counts = f"by {measure}: {len(comparison.better)} better, {len(comparison.worse)} worse"
    setups = [Text(f"before: {old}\nafter:  {new}") for old, new in comparison.setups]
    parts = [
        *setups,
        table,
        Text(counts, style="bold"),
        *_changed("worse", comparison.worse),
        *_changed("better", comparison.better),
    ]
    print_parts(parts)


def _changed(label: str, answers: Sequence[AnswerPair]) -> list[Group]:
    return [_changed_answer(label, *pair) for pair in answers[:MAX_WORST_QUESTIONS]]


def _changed_answer(label: str, before: ScoredAnswer, after: ScoredAnswer) -> Group:
    """Return a question, the grades of both answers, and the lines that differ.

    If an answer has no grade, its confidence or outcome is shown (see `_label`).
    """
    old, new = differing_lines(before.steps, after.steps, MAX_LINE_CHARS)
    return Group(
        Text.assemble((f"{label}: ", "bold"), before.question),
        *_side("before", before, old),
        *_side("after", after, new),
    )


def _side(name: str, result: ScoredAnswer, lines: Sequence[str]) -> list[Padding]:
    head = f"{name}: {result.grade or _label(result)}"
    more = len(lines) - MAX_LINES
    shown = [*lines[:MAX_LINES], *([f"{count_of(more, 'more line')}"] if more > 0 else [])]
    return [_indented(Text(head, "dim"), 2), *(_indented(Text(line), 4) for line in shown)]


def _indented(text: Text, columns: int) -> Padding:
    return Padding(text, (0, 0, 0, columns), expand=False)


def share_text(share: float | None) -> str:
    """Return `share` with three decimals, or a dash if it is None."""
    return "–" if share is None else f"{share:.3f}"


def _answers_heading(evaluation: AnswerEvaluation) -> Group:
    questions = count_of(len(evaluation.questions), "question")
    counts = f"  {questions}, {count_of(evaluation.documents, 'document')}"
    lines = [
        Text.assemble((evaluation.platform, "bold"), counts),
        *repeated_line(evaluation.repeated),
        Text(f"answered by: {evaluation.answered_by}"),
    ]
    if degraded := sum(result.degraded is not None for result in evaluation.questions):
        lines.append(Text(f"degraded answers: {degraded}; see `apidesk check`", style="yellow"))
    return Group(*lines)


def _scores(scores: AnswerScores) -> Group:
    """Return tables of the shares, one share per row, with its meaning."""
    answerable: tuple[tuple[str, float | None, str], ...] = (
        ("page", scores.page, f"a gold document is among the first {SCORED_CHUNKS} chunks"),
        ("evidence", scores.evidence, f"the first {SCORED_CHUNKS} chunks state all facts"),
        ("answer", scores.right, "the answer states all facts"),
        ("high and wrong", scores.high_and_wrong, "confidence high, but facts are missing"),
        ("refused", scores.refused, "refused as off-topic"),
        ("not covered", scores.not_covered, "not refused, but no source is cited"),
        ("grounded", scores.grounded, "of all answers that cite sources: fully supported"),
        *_judged(scores),
    )
    unanswerable = (
        ("honest", scores.honest, "refused, not covered or confidence low"),
        ("high", scores.unanswerable_high, "answered with confidence high"),
    )
    parts = [_shares(f"{scores.answerable} answerable", answerable)] if scores.answerable else []
    if scores.unanswerable:
        parts.append(_shares(f"{scores.unanswerable} unanswerable", unanswerable))
    return Group(*parts)


def _judged(scores: AnswerScores) -> tuple[tuple[str, float | None, str], ...]:
    """Return the shares that depend on the judge; empty if there are no grades."""
    if scores.correct is None:
        return ()
    return (
        ("correct", scores.correct, "the judge grades the answer as correct"),
        ("agreement", scores.agreement, "of the graded answers: the judge and the facts agree"),
    )


def _shares(head: str, rows: Sequence[tuple[str, float | None, str]]) -> Table:
    table = new_table(head, "share")
    table.add_column("", style="dim")
    for name, share, meaning in rows:
        table.add_row(name, share_text(share), meaning)
    return table


def _reliability(levels: Sequence[Reliability]) -> Table:
    table = new_table("confidence", "answers", "right")
    for level in levels:
        table.add_row(level.confidence, str(level.answers), share_text(level.right))
    return table


def _grades(evaluation: AnswerEvaluation) -> list[Text]:
    if evaluation.grades is None:
        return []
    counts = ", ".join(f"{count} {grade}" for grade, count in evaluation.grades.items())
    return [Text(f"graded by {evaluation.judge}: {counts}")]


def _wrong_answers(results: Sequence[ScoredAnswer]) -> list[Group]:
    """Return up to `MAX_WORST_QUESTIONS` wrong answers, each with its text and the missing facts.

    An honest answer to an unanswerable question is not listed.
    """
    wrong = [
        result
        for result in results
        if result.right is False and not (result.unanswerable and result.is_honest)
    ]
    if not wrong:
        return []
    wrong.sort(key=lambda result: (result.confidence != "high", not result.has_evidence))
    count = min(MAX_WORST_QUESTIONS, len(wrong))
    subject = "1 answer is" if len(wrong) == 1 else f"{len(wrong)} answers are"
    shown = f"; {count} of them:" if count < len(wrong) else ":"
    head = Text(f"{subject} not right{shown}", style="bold")
    return [Group(head, *map(_wrong_answer, wrong[:count]))]


def _wrong_answer(result: ScoredAnswer) -> Group:
    answer = "\n\n".join(result.steps)  # in Markdown, a table needs a blank line before it
    lines = [Text(f"{_label(result)}:", "dim"), Text(answer)]
    if result.missing_facts:
        all_retrieved = set(result.missing_facts).isdisjoint(result.missing_evidence)
        retrieved = "although all were retrieved" if all_retrieved else "and not all were retrieved"
        missing = f"missing from the answer, {retrieved}: {_facts(result.missing_facts)}"
        lines.append(Text(missing, style="red"))
    if result.unanswerable:
        lines.append(Text("the documents do not answer this question", style="red"))
    question = Text("\n" + result.question, style="bold")
    return Group(question, *(_indented(line, 2) for line in lines))


def _label(result: ScoredAnswer) -> str:
    """Return the confidence of an answer that cites sources; for any other answer, return the outcome."""
    label = result.confidence if result.outcome == "answered" else result.outcome
    return (label or "").replace("_", " ")


def _facts(facts: Sequence[Fact]) -> str:
    return "; ".join(" | ".join(fact) for fact in facts)
