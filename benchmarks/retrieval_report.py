"""Formats the results as a section of docs/explanation/retrieval.md."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from benchmarks.answers.report import retrieval_table
from benchmarks.answers.run import Measured as MeasuredPart
from benchmarks.document import prose, table, truncate
from benchmarks.retrieval_quality import TOLERANCE, K, Measured
from benchmarks.retrieval_speed import STARTS, Speed
from benchmarks.scripted_vectors import DIMENSION, HIT, NGrams
from runnables.retrieval.retriever import RetrievalMode

KS = (1, 5, 10)

MAX_TEXT_CHARS = 80
"""Maximum length of a question or title in the table of misses, in characters."""

MAX_MISSES = 10
"""Maximum number of missed questions to show."""

MISSES_OF = "aws_docs_qa_en"
PLOTTED_SETS = ("samples", "aws_docs_qa_en")
"""Sets with a recall plot."""

PLOTTED_EMBEDDING = "n-grams"
"""The embedding in the plots."""

MEASURES = """
    The author of the samples' questions had not seen the code; the other sets are public. hit@k is
    the share of questions with a right document among the first k documents. MRR is the mean of
    1 / rank of the first right document, counted up to rank 20. If a set has more questions than were
    asked, the questions were drawn at random with a fixed seed.
"""

DEVELOPERS = """
    Developers' questions, searched by full text ([the sets](../../benchmarks/questions/README.md)). page@5
    is the share of questions with a chunk of a right document among the first five chunks, evidence@5 the
    share whose first five chunks together state all facts of a right answer. `work` is the part for
    development; `measure` is only measured.
"""

EMBEDDINGS = f"""
    Dense retrieval is measured with three embeddings that need no model: `noise` (vectors that mean
    nothing), `n-grams` (hashed counts of character n-grams) and `oracle` (each question is placed so
    near its document that {HIT:.0%} of the questions find it among the first {K}).
"""

SPEED = f"""
    Embedded store, questions asked one after the other in a fresh process; the first and the tenth question
    after a start are medians over {STARTS} fresh processes. The times of hybrid retrieval include a request
    over loopback to the scripted embedding server (`{NGrams.name}`, {DIMENSION} dimensions).
"""


def report(
    measured: Sequence[Measured],
    developers: Sequence[MeasuredPart],
    speeds: Sequence[Speed],
    missing: Sequence[str],
    cores: int,
) -> str:
    """Return the section.

    `developers` are the results of the developers' questions by part, `missing` the names of public sets
    that were not found.
    """
    omitted = f"Sets without data are omitted: {', '.join(missing)}." if missing else ""
    parts = [
        prose(f"Written by `make bench-retrieval` on a machine with {cores} cores. {omitted}"),
        _sets(measured),
        retrieval_table(developers),
        prose(DEVELOPERS),
        prose(EMBEDDINGS),
        _fusion(measured),
        _routes(measured),
        *_figures(measured),
        *_misses(measured),
        _speeds(speeds),
    ]
    return "\n\n".join(parts)


def figure_name(name: str) -> str:
    """Return the file name of the recall plot of a set."""
    return f"retrieval-{name.replace('_', '-')}.svg"


def plotted_results(measured: Sequence[Measured]) -> Iterator[Measured]:
    """Yield the results that are plotted."""
    return (m for m in measured if m.name in PLOTTED_SETS and m.embedding == PLOTTED_EMBEDDING)


def _by_set(measured: Sequence[Measured]) -> Iterator[tuple[str, list[Measured]]]:
    return ((name, list(group)) for name, group in groupby(measured, lambda m: m.name))


def _sets(measured: Sequence[Measured]) -> str:
    """Return a table with the size of each set and the results of full text."""
    rows = []
    for name, (first, *_) in _by_set(measured):
        found, asked = first.evaluation, first.evaluation.with_gold
        chosen = f"{asked} of {first.held}" if asked < first.held else str(asked)
        sizes = [f"{found.documents:,}", f"{first.chunks:,}", chosen]
        rows.append([name, *sizes, *_cells(first, "full_text")])
    head = ["full text", "documents", "chunks", "questions", *_metric_names()]
    return f"{table(head, rows)}\n\n{prose(MEASURES)}"


def _fusion(measured: Sequence[Measured]) -> str:
    """Return a table with hit@5 of each route and the gain of fusion, by set and embedding."""
    head = [f"hit@{K}", "full text"]
    rows = []
    for name, group in _by_set(measured):
        row = [name, f"{group[0].hit('full_text'):.3f}"]
        for each in group:
            row += [f"{each.hit('dense'):.3f}", f"{each.hit('hybrid'):.3f}", _gain(each)]
        rows.append(row)
        head = head[:2] + [c for m in group for c in (m.embedding, "hybrid", "gain")]
    worst = min(measured, key=lambda m: m.gain)
    below = sum(m.loses for m in measured)
    note = f"""
        The gain is the difference between hybrid and the better of its two routes. Losses of more than
        {TOLERANCE} are bold and make the command fail; there are {below} in {len(measured)} combinations.
        The smallest gain is {worst.gain:+.3f} ({worst.name}, {worst.embedding}).
    """
    return f"{table(head, rows)}\n\n{prose(note)}"


def _gain(measured: Measured) -> str:
    text = f"{measured.gain:+.3f}"
    return f"**{text}**" if measured.loses else text


def _routes(measured: Sequence[Measured]) -> str:
    """Return a table with a row per set, embedding and route."""
    modes: tuple[RetrievalMode, ...] = ("dense", "hybrid")
    rows = [
        [each.name, each.embedding, mode, *_cells(each, mode)]
        for each in measured
        for mode in modes
    ]
    return table(["set", "embedding", "route", *_metric_names()], rows, words=3)


def _metric_names() -> list[str]:
    return [*(f"hit@{k}" for k in KS), "MRR"]


def _cells(measured: Measured, mode: RetrievalMode) -> list[str]:
    route = measured.route(mode)
    return [*(f"{route.hit[k - 1]:.3f}" for k in KS), f"{route.mrr:.3f}"]


def _figures(measured: Sequence[Measured]) -> Iterator[str]:
    for each in plotted_results(measured):
        caption = f"Recall over k on {each.name}, dense by {each.embedding}"
        yield f"{caption}:\n\n![{caption}](../images/{figure_name(each.name)})"


def _misses(measured: Sequence[Measured]) -> Iterator[str]:
    """Yield a table of the questions in the set `MISSES_OF` that full text misses."""
    for each in (m for m in measured if m.name == MISSES_OF):
        rows = [
            [truncate(text, MAX_TEXT_CHARS) for text in (miss.question, miss.marked, miss.found)]
            for miss in each.misses[:MAX_MISSES]
        ]
        head = ["question", "marked page", "first found"]
        cut = f"; the first {MAX_MISSES} are" if len(each.misses) > MAX_MISSES else ""
        counted = f"{len(each.misses)} of {each.evaluation.with_gold} questions of {each.name}"
        introduction = f"By full text, {counted} have no marked page among the first {K}{cut}:"
        yield f"{prose(introduction)}\n\n{table(head, rows, words=3)}"
        return


def _speeds(speeds: Sequence[Speed]) -> str:
    """Return a table with a row per route."""
    rows = [
        [
            speed.route,
            f"{speed.chunks:,}",
            str(speed.questions),
            *(f"{ms:.1f}" for ms in (speed.p50, speed.p95, speed.first, speed.tenth)),
            f"{speed.ratio:.2f}",
        ]
        for speed in speeds
    ]
    head = [
        "`retrieve`",
        "chunks",
        "questions",
        "p50 ms",
        "p95 ms",
        "first ms",
        "tenth ms",
        "ratio",
    ]
    return f"{table(head, rows)}\n\n{prose(SPEED)}"
