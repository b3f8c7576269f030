"""Prints an evaluation of answers as text."""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.analytics.evaluation.answer_result import (
    AnswerEvaluation,
    AnswerScores,
    K,
    Reliability,
    ScoredAnswer,
)
from app.analytics.evaluation.dataset import Fact

MAX_WORST_QUESTIONS = 10
"""Maximum number of wrong answers that are listed."""


def print_answers(evaluation: AnswerEvaluation) -> None:
    """Print the scores on stdout, then the wrong answers, the most confident first."""
    console = Console(highlight=False)
    parts = [
        _heading(evaluation),
        _scores(evaluation.scores),
        _reliability(evaluation.scores.reliability),
        *_grades(evaluation),
        *_worst(evaluation.questions),
    ]
    for index, part in enumerate(parts):
        if index:
            console.print()
        console.print(part)


def share_text(share: float | None) -> str:
    """Return `share` with three decimals, or a dash if it is None."""
    return "–" if share is None else f"{share:.3f}"


def _heading(evaluation: AnswerEvaluation) -> Group:
    counts = f"  {len(evaluation.questions)} questions, {evaluation.documents} documents"
    lines = [
        Text.assemble((evaluation.platform, "bold"), counts),
        Text(f"answered by {evaluation.answered_by}"),
    ]
    if degraded := sum(result.degraded is not None for result in evaluation.questions):
        lines.append(Text(f"{degraded} answers are degraded: see `apidesk check`", style="yellow"))
    return Group(*lines)


def _scores(scores: AnswerScores) -> Group:
    """Return the shares, one per line with its meaning."""
    answerable: tuple[tuple[str, float | None, str], ...] = (
        ("page", scores.page, f"a gold document is among the first {K} chunks"),
        ("evidence", scores.evidence, f"the first {K} chunks state all facts"),
        ("answer", scores.right, "the answer states all facts"),
        ("high and wrong", scores.high_and_wrong, "confidence high, but facts are missing"),
        ("refused", scores.refused, "refused as off-topic"),
        ("not covered", scores.not_covered, "the answer cites no source"),
    )
    unanswerable = (
        ("honest", scores.honest, "refused, not covered or confidence low"),
        ("high", scores.unanswerable_high, "answered with confidence high"),
    )
    parts = [_shares(f"{scores.answerable} answerable", answerable)] if scores.answerable else []
    if scores.unanswerable:
        parts.append(_shares(f"{scores.unanswerable} unanswerable", unanswerable))
    return Group(*parts)


def _shares(head: str, rows: Sequence[tuple[str, float | None, str]]) -> Table:
    table = _table(head, "share")
    table.add_column("", style="dim")
    for name, share, meaning in rows:
        table.add_row(name, share_text(share), meaning)
    return table


def _reliability(levels: Sequence[Reliability]) -> Table:
    table = _table("confidence", "answers", "right")
    for level in levels:
        table.add_row(level.confidence, str(level.answers), share_text(level.right))
    return table


def _grades(evaluation: AnswerEvaluation) -> list[Text]:
    if evaluation.grades is None:
        return []
    counts = ", ".join(f"{count} {grade}" for grade, count in evaluation.grades.items())
    return [Text(f"graded by {evaluation.judge}: {counts}")]


def _worst(results: Sequence[ScoredAnswer]) -> list[Group]:
    """Return the wrong answers with what they say and what they miss."""
    wrong = [result for result in results if result.right is False]
    if not wrong:
        return []
    wrong.sort(key=lambda result: (result.confidence != "high", result.evidence is not True))
    count = min(MAX_WORST_QUESTIONS, len(wrong))
    head = Text(f"{count} of {len(wrong)} answers that are not right", style="bold")
    return [Group(head, *map(_wrong_answer, wrong[:count]))]


def _wrong_answer(result: ScoredAnswer) -> Group:
    label = result.confidence if result.outcome == "answered" else result.outcome
    lines = [Text(f"{(label or '').replace('_', ' ')}: {' '.join(result.steps)}")]
    if result.missing_facts:
        found = "found" if result.evidence else "not found"
        lines.append(Text(f"missing ({found}): {_facts(result.missing_facts)}", style="red"))
    if result.unanswerable:
        lines.append(Text("the documents do not answer this question", style="red"))
    question = Text("\n" + result.question, style="bold")
    return Group(question, *(Padding(line, (0, 0, 0, 2)) for line in lines))


def _facts(facts: Sequence[Fact]) -> str:
    return "; ".join(" | ".join(fact) for fact in facts)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
