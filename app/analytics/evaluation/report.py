"""Prints evaluations of retrieval as text.

A route is a retrieval mode: full text, dense or hybrid. Some tables show only the primary route (see
`Evaluation.primary_mode`), which is usually the one that APIDESK_RETRIEVAL selects.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.analytics.evaluation.dataset import GeneratedFrom
from app.analytics.evaluation.scoring import (
    MAX_K,
    ClassificationResult,
    Evaluation,
    QuestionResult,
    RouteResult,
)
from app.analytics.report_text import count_of

REPORTED_KS = (1, 3, 5, 10, 20)
"""Values of k for which recall is printed, in addition to the evaluation's k."""

MAX_WORST_QUESTIONS = 10
"""Maximum length of a list of questions, such as those with the lowest recall."""

MAX_WRONG_DOCUMENTS = 3
"""Maximum number of irrelevant documents that are listed for each question."""

KIND_LABELS: dict[GeneratedFrom, str] = {
    "title": "page titles",
    "link": "texts of links to another page",
    "error_code": "error codes with their meaning",
    "sentence": "first sentences, minus the words of the title",
}


def print_evaluation(evaluation: Evaluation) -> None:
    """Print the metrics on stdout, then the questions with the lowest recall."""
    parts = [
        _heading(evaluation),
        _metrics_table(evaluation),
        _recall_by_k(evaluation),
        *_recall_by_kind(evaluation),
        *_confusion_matrix(evaluation.classification),
        *_worst_questions(evaluation),
        *(Text(f"in LangSmith: {name}") for name in evaluation.experiments),
    ]
    print_parts(parts)


def _heading(evaluation: Evaluation) -> Group:
    head = Text.assemble(
        (evaluation.platform, "bold"),
        f"  {count_of(evaluation.with_gold, 'question')}, "
        f"{count_of(evaluation.documents, 'document')}",
    )
    generated = evaluation.generated
    if generated is None:
        return Group(head, *repeated_line(evaluation.repeated))
    kinds = ", ".join(f"{count} {KIND_LABELS[kind]}" for kind, count in generated.counts.items())
    return Group(
        head,
        Text(f"The questions were generated from the documents: {kinds}."),
        Text(
            "Scores on generated questions are optimistic, because these questions reuse the documents' "
            "words. Use them to compare settings; measure quality with your users' questions.",
            style="yellow",
        ),
        Text(f"The questions are saved for reuse: apidesk evaluate {generated.path}", style="dim"),
    )


def repeated_line(repeated: int) -> list[Text]:
    """Return a line on the questions that the file contains more than once, if there are any."""
    return [Text(f"left out: {count_of(repeated, 'repeated question')}")] if repeated else []


def _metrics_table(evaluation: Evaluation) -> Group:
    """Return a table of metrics and latencies, with one row per route.

    If there are several routes, a `*` marks the primary route, and a note explains the mark.
    """
    k = evaluation.k
    table = new_table("route", f"hit@{k}", f"recall@{k}", "95% CI", "MRR", "p50 ms", "p95 ms")
    for route in evaluation.routes:
        table.add_row(
            _route_name(route, evaluation),
            f"{route.hit[k - 1]:.3f}",
            f"{route.recall[k - 1]:.3f}",
            "{:.2f}–{:.2f}".format(*route.interval),
            f"{route.mrr:.3f}",
            _milliseconds(route.p50_ms),
            _milliseconds(route.p95_ms),
        )
    if len(evaluation.routes) == 1:
        return Group(table)
    return Group(table, Text("* the route that APIDESK_RETRIEVAL selects", style="dim"))


def _recall_by_k(evaluation: Evaluation) -> Group:
    """Return a table of recall by k. Hit@k and recall in k chunks are added if they differ from recall."""
    k, ks = evaluation.k, sorted({*REPORTED_KS, evaluation.k})
    table = new_table("", *(f"k = {k}" for k in ks))
    for route in evaluation.routes:
        _curve_row(table, f"recall, {route.label}", route.recall, ks, k)
    for route in evaluation.routes:
        if route.hit != route.recall:
            _curve_row(table, f"hit, {route.label}", route.hit, ks, k)
    route = evaluation.primary_route
    if route.chunk_recall == route.recall:
        return Group(table)
    _curve_row(table, f"recall in k chunks, {route.label}", route.chunk_recall, ks, k)
    note = "k is a number of documents; in the last row, a number of chunks, like APIDESK_TOP_K."
    return Group(table, Text(note, style="dim"))


def _curve_row(
    table: Table, name: str, curve: Sequence[float], ks: Sequence[int], current_k: int
) -> None:
    cells = [Text(f"{curve[k - 1]:.3f}", style="bold" if k == current_k else "") for k in ks]
    table.add_row(name, *cells)


def _recall_by_kind(evaluation: Evaluation) -> list[Table]:
    """Return a table of recall by the part of a document that the questions were generated from.

    The recall is that of the primary route. Returns no table if the questions were not generated.
    """
    if evaluation.generated is None:
        return []
    route, k = evaluation.primary_route, evaluation.k
    table = new_table("generated from", "questions", f"recall@{k}, {route.label}")
    for kind in evaluation.generated.counts:
        recalls = [
            question.recall for question in route.questions if question.generated_from == kind
        ]
        table.add_row(KIND_LABELS[kind], str(len(recalls)), f"{fmean(recalls):.3f}")
    return [table]


def _confusion_matrix(result: ClassificationResult | None) -> list[Group]:
    """Return the confusion matrix: one row per label (expected type), one column per predicted type."""
    if result is None:
        return []
    table = new_table("label \\ predicted", *result.matrix)
    for label, row in result.matrix.items():
        cells = [
            Text(str(count), style="bold green" if type_ == label else "yellow" if count else "dim")
            for type_, count in row.items()
        ]
        table.add_row(label, *cells)
    total = sum(sum(row.values()) for row in result.matrix.values())
    line = f"question types ({result.by}): {result.accuracy:.1%} of {total} correct"
    if result.unclassified:
        line += f"; the model failed on {result.unclassified}, which count as general"
    return [Group(Text(line), table)]


def _worst_questions(evaluation: Evaluation) -> list[Group]:
    """Return the questions with the lowest recall at k, and the irrelevant documents in their results."""
    route, k = evaluation.primary_route, evaluation.k
    missed = [question for question in route.questions if question.recall < 1]
    if not missed:
        line = f"Every gold name has a document among the first {k} (route: {route.label})."
        return [Group(Text(line))]
    missed.sort(key=lambda question: (question.recall, -(question.rank or MAX_K + 1)))
    lines = [_missed_question(question) for question in missed[:MAX_WORST_QUESTIONS]]
    subject = "1 question has" if len(missed) == 1 else f"{len(missed)} questions have"
    head = f"{subject} gold documents missing from the first {k} documents (route: {route.label})"
    shown = f"; the worst {len(lines)}:" if len(lines) < len(missed) else ":"
    return [Group(Text(f"{head}{shown}", style="bold"), *lines)]


def _missed_question(question: QuestionResult) -> Group:
    """Return a question, the ranks of its gold documents, and the best-ranked irrelevant documents."""
    gold = Table.grid(padding=(0, 2))
    gold.add_column(overflow="fold")
    gold.add_column()
    for name, rank in zip(question.gold, question.ranks, strict=True):
        rank_text = f"rank {rank}" if rank else f"not among the first {MAX_K}"
        gold.add_row(Text(name, style="cyan"), Text(rank_text, style="" if rank else "red"))
    instead = Table.grid(padding=(0, 2))
    instead.add_column(justify="right", style="dim")
    instead.add_column(overflow="fold")
    irrelevant = [document for document in question.retrieved if not document.relevant]
    for document in irrelevant[:MAX_WRONG_DOCUMENTS]:
        heading = " > ".join(part for part in (document.title, document.section) if part)
        instead.add_row(f"{document.score:.3f}", Text(heading))
    head = Text("\n" + question.question, style="bold")
    return Group(head, Padding(gold, (0, 0, 0, 2)), Padding(instead, (0, 0, 0, 2)))


def _route_name(route: RouteResult, evaluation: Evaluation) -> Text:
    """Return the route's label. If there are several routes, the primary route is marked."""
    is_marked = route.mode == evaluation.primary_mode and len(evaluation.routes) > 1
    return Text(route.label + (" *" if is_marked else ""), style="bold" if is_marked else "")


def _milliseconds(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def print_parts(parts: Iterable[object]) -> None:
    """Print `parts` on stdout, separated by blank lines."""
    console = Console(highlight=False)
    for index, part in enumerate(parts):
        if index:
            console.print()
        console.print(part)


def new_table(first: str, *others: str) -> Table:
    """Return a table without borders; all columns but the first are right-aligned."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
