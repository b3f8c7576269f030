"""An evaluation, printed for a person."""

from collections.abc import Sequence
from statistics import fmean

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.analytics.evaluation.dataset import MadeBy
from app.analytics.evaluation.result import (
    MOST_K,
    ClassificationResult,
    Evaluation,
    QuestionResult,
    RouteResult,
)

KS = (1, 3, 5, 10, 20)
"""The k of the second table, beside the one in force."""

WORST = 10
"""Questions that are shown as the worst."""

SHOWN = 3
"""Documents that are shown of what was found instead."""

MADE: dict[MadeBy, str] = {
    "title": "page titles",
    "link": "texts of links to another page",
    "error_code": "error codes with their meaning",
    "sentence": "first sentences without the title's words",
}


def print_evaluation(evaluation: Evaluation) -> None:
    """The whole on stdout: figures, then the questions to look at."""
    console = Console(highlight=False)
    parts = [
        _heading(evaluation),
        _measures(evaluation),
        _by_k(evaluation),
        *_by_made(evaluation),
        *_matrix(evaluation.classification),
        *_worst(evaluation),
        *(Text(f"in LangSmith: {name}") for name in evaluation.experiments),
    ]
    for place, part in enumerate(parts):
        if place:
            console.print()
        console.print(part)


def _heading(evaluation: Evaluation) -> Group:
    head = Text.assemble(
        (evaluation.platform, "bold"),
        f"  {evaluation.with_gold} questions, {evaluation.documents} documents",
    )
    made = evaluation.made
    if made is None:
        return Group(head)
    told = ", ".join(f"{count} {MADE[kind]}" for kind, count in made.counts.items())
    return Group(
        head,
        Text(f"The questions were made from the documents: {told}."),
        Text(
            "Such questions flatter: they use the documents' own words. Compare settings by them, "
            "and trust figures from what your users asked.",
            style="yellow",
        ),
        Text(f"They are kept for reuse: apidesk evaluate {made.path}", style="dim"),
    )


def _measures(evaluation: Evaluation) -> Table:
    """A row a route: the measures at k."""
    k = evaluation.k
    table = _table("route", f"hit@{k}", f"recall@{k}", "95 % within", "MRR", "p50 ms", "p95 ms")
    for route in evaluation.routes:
        table.add_row(
            _name(route, evaluation),
            f"{route.hit[k - 1]:.3f}",
            f"{route.recall[k - 1]:.3f}",
            "{:.2f}–{:.2f}".format(*route.interval),
            f"{route.mrr:.3f}",
            _milliseconds(route.p50_ms),
            _milliseconds(route.p95_ms),
        )
    return table


def _by_k(evaluation: Evaluation) -> Group:
    """Recall for several k; hit, and recall where k counts chunks, where they differ from it."""
    k, ks = evaluation.k, sorted({*KS, evaluation.k})
    table = _table("", *(f"k = {k}" for k in ks))
    for route in evaluation.routes:
        _curve_row(table, f"recall, {route.label}", route.recall, ks, k)
    for route in evaluation.routes:
        if route.hit != route.recall:
            _curve_row(table, f"hit, {route.label}", route.hit, ks, k)
    route = evaluation.judged_route
    if route.chunk_recall == route.recall:
        return Group(table)
    _curve_row(table, f"recall in k chunks, {route.label}", route.chunk_recall, ks, k)
    note = "k counts documents; APIDESK_TOP_K counts chunks, and several can be of one document."
    return Group(table, Text(note, style="dim"))


def _curve_row(
    table: Table, name: str, curve: Sequence[float], ks: Sequence[int], chosen: int
) -> None:
    cells = [Text(f"{curve[k - 1]:.3f}", style="bold" if k == chosen else "") for k in ks]
    table.add_row(name, *cells)


def _by_made(evaluation: Evaluation) -> list[Table]:
    """Of made questions: recall by what they were made of, for the route that decides."""
    if evaluation.made is None:
        return []
    route, k = evaluation.judged_route, evaluation.k
    table = _table(f"made of ({route.label})", "questions", f"recall@{k}")
    for kind in evaluation.made.counts:
        recalls = [question.recall for question in route.questions if question.made == kind]
        table.add_row(MADE[kind], str(len(recalls)), f"{fmean(recalls):.3f}")
    return [table]


def _matrix(found: ClassificationResult | None) -> list[Group]:
    """Labels down, what the classifier said across."""
    if found is None:
        return []
    table = _table("label \\ said", *found.matrix)
    for label, row in found.matrix.items():
        cells = [
            Text(str(n), style="bold green" if said == label else ("yellow" if n else "dim"))
            for said, n in row.items()
        ]
        table.add_row(label, *cells)
    total = sum(sum(row.values()) for row in found.matrix.values())
    line = f"types told by {found.by}: {found.accuracy:.1%} of {total} right"
    if found.unanswered:
        line += f"; the model failed for {found.unanswered}, which stand as general"
    return [Group(Text(line), table)]


def _worst(evaluation: Evaluation) -> list[Group]:
    """The questions with the lowest recall at k, and what was found instead."""
    route, k = evaluation.judged_route, evaluation.k
    missed = [question for question in route.questions if question.recall < 1]
    if not missed:
        return [Group(Text(f"Every right document is among the first {k} ({route.label})."))]
    missed.sort(key=lambda q: (q.recall, -(q.rank or MOST_K + 1)))
    head = f"The worst {min(WORST, len(missed))} of {len(missed)} questions that miss a document"
    lines = [_missed(question) for question in missed[:WORST]]
    return [Group(Text(f"{head} among the first {k} ({route.label})", style="bold"), *lines)]


def _missed(question: QuestionResult) -> Group:
    """A question, where its right documents stand, and the best of the others."""
    right = Table.grid(padding=(0, 2))
    right.add_column(overflow="fold")
    right.add_column()
    for name, rank in zip(question.gold, question.ranks, strict=True):
        place = f"place {rank}" if rank else f"not among the first {MOST_K}"
        right.add_row(Text(name, style="cyan"), Text(place, style="" if rank else "red"))
    instead = Table.grid(padding=(0, 2))
    instead.add_column(justify="right", style="dim")
    instead.add_column(overflow="fold")
    for found in [each for each in question.found if not each.right][:SHOWN]:
        where = " > ".join(part for part in (found.title, found.section) if part)
        instead.add_row(f"{found.score:.3f}", Text(where))
    head = Text("\n" + question.question, style="bold")
    return Group(head, Padding(right, (0, 0, 0, 2)), Padding(instead, (0, 0, 0, 2)))


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _name(route: RouteResult, evaluation: Evaluation) -> Text:
    """The route; the one that decides in bold, where there are others."""
    decides = route.mode == evaluation.judged and len(evaluation.routes) > 1
    return Text(route.label + (" *" if decides else ""), style="bold" if decides else "")


def _milliseconds(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"
