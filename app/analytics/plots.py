"""Plots evaluations and replays with matplotlib.

An evaluation is plotted as recall over k, with one line per retrieval route. The lines differ in colour,
marker and dashes, so that they can be distinguished in print and by readers with colour blindness. A replay
is plotted as the number of questions per kind of change, and as a matrix: the number of questions by
verdict (confidence, off-topic or failed) before and after.
"""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from app.analytics.evaluation.scoring import MAX_K, Evaluation, RouteResult
from app.analytics.replay import CHANGE_LABELS, CHANGES, VERDICTS, Replay, ReplayChange
from runnables.retrieval.retriever import RetrievalMode
from schemas.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType


class LineStyle(NamedTuple):
    """Style of one line. Colour, marker and dashes each identify the line on their own."""

    colour: str
    marker: str
    dashes: str | tuple[int, tuple[int, ...]]


# Colours from Okabe and Ito, Color Universal Design, 2008.
LINE_STYLES: dict[RetrievalMode, LineStyle] = {
    "hybrid": LineStyle("#0072B2", "o", "-"),
    "full_text": LineStyle("#D55E00", "s", (0, (5, 2))),
    "dense": LineStyle("#009E73", "^", "-."),
}
INK, MUTED, GRID = "#222222", "#6b6b6b", "#e4e4e4"
WORSE, BETTER, OTHER, SAME = "#D55E00", "#009E73", "#0072B2", "#bdbdbd"

CHANGE_COLOURS: dict[ReplayChange, str] = {
    "failed": WORSE,
    "lost": WORSE,
    "won": BETTER,
    "same": SAME,
}
"""The bar colours of some kinds of change. All other kinds have the colour `OTHER`."""

RC_PARAMS: "dict[RcKeyType, Any]" = {
    "svg.fonttype": "none",
    "svg.hashsalt": "apidesk",  # gives elements the same ids in every run
    "font.family": "sans-serif",
    "font.size": 10,
}


def check_plot(path: Path) -> None:
    """Check, before any long computation, that a plot can be written to `path`.

    Raises ConfigurationError if the suffix is not .svg or .png, if the folder does not exist, or if
    matplotlib is not installed.
    """
    if path.suffix.lower() not in (".svg", ".png"):
        raise ConfigurationError(f"--plot {path}: the name must end in .svg or .png")
    if not path.resolve().parent.is_dir():
        raise ConfigurationError(f"--plot {path}: the folder {path.parent} does not exist")
    if find_spec("matplotlib") is None:
        raise ConfigurationError("--plot needs matplotlib: pip install 'apidesk[evaluate]'")


@contextmanager
def _open_figure(path: Path, width: float, height: float) -> "Iterator[Figure]":
    """Yield a figure of this size in inches, which is written to `path` at the end of the block.

    Raises ConfigurationError if the file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC_PARAMS):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        try:
            figure.savefig(path, dpi=200, metadata=metadata)
        except OSError as error:
            raise ConfigurationError(f"--plot {path}: {error.strerror}") from None


def plot_recall(evaluation: Evaluation, path: Path) -> None:
    """Plot recall over k, one line per route, and save the plot to `path`. Raises ConfigurationError."""
    with _open_figure(path, 7.2, 4.5) as figure:
        axes = figure.add_subplot()
        _draw_axes(axes, evaluation)
        for route in evaluation.routes:
            _draw_route(axes, route)
        _draw_chunk_recall(axes, evaluation.primary_route)
        _draw_current_k(axes, evaluation)
        figure.legend(loc="outside lower center", ncols=4, frameon=False, handlelength=3.4)


def _draw_axes(axes: "Axes", evaluation: Evaluation) -> None:
    """Draw the title, the axes and the grid. The y axis starts a little below the lowest recall."""
    # Recall never decreases with k, and recall within 1 chunk equals recall within 1 document.
    lowest = min(route.recall[0] for route in evaluation.routes)
    floor = max(0.0, math.floor(lowest * 10 - 0.5) / 10)
    axes.set_xlim(0.5, MAX_K + 0.5)
    axes.set_ylim(floor, 1.0 + 0.02 * (1 - floor))
    axes.set_xticks(sorted({1, evaluation.k, *range(2, MAX_K + 1, 2)}))
    axes.set_xlabel("k, number of documents")
    axes.set_ylabel("recall@k, share of the gold names found")
    axes.set_title("Recall over k", loc="left", fontsize=13, fontweight="bold", color=INK, pad=22)
    subtitle = f"{evaluation.with_gold} questions, {evaluation.documents} documents"
    if evaluation.generated:
        subtitle += "; questions generated from the documents, so recall is too high"
    axes.text(0, 1.02, subtitle, transform=axes.transAxes, color=MUTED, fontsize=9, va="bottom")
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)


def _draw_route(axes: "Axes", route: RouteResult) -> None:
    style = LINE_STYLES[route.mode]
    axes.plot(
        range(1, MAX_K + 1),
        route.recall,
        label=route.label,
        color=style.colour,
        linestyle=style.dashes,
        linewidth=1.9,
        marker=style.marker,
        markersize=5,
        markerfacecolor="white",
        markeredgewidth=1.4,
        clip_on=False,
    )


def _draw_chunk_recall(axes: "Axes", route: RouteResult) -> None:
    """Draw recall within k chunks, if it differs from recall within k documents."""
    if route.chunk_recall != route.recall:
        ks = range(1, MAX_K + 1)
        label = f"{route.label}, k = number of chunks"
        axes.plot(ks, route.chunk_recall, color=MUTED, linestyle=":", linewidth=1.4, label=label)


def _draw_current_k(axes: "Axes", evaluation: Evaluation) -> None:
    """Mark the evaluation's k, and the recall of the primary route at this k.

    `Evaluation.primary_mode` says which route is primary.
    """
    k, route = evaluation.k, evaluation.primary_route
    axes.axvline(k, color=MUTED, linewidth=0.9, zorder=0)
    axes.annotate(
        f"k = {k}: {route.label} {evaluation.recall:.3f}",
        (k, evaluation.recall),
        xytext=(9, -24),
        textcoords="offset points",
        color=LINE_STYLES[route.mode].colour,
        fontweight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )


def plot_replay(replay: Replay, path: Path) -> None:
    """Plot `replay`, and save the plot to `path`, an .svg or .png file. Raises ConfigurationError."""
    with _open_figure(path, 9.2, 4.2) as figure:
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr,call-arg]
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
        _draw_changes(left, replay)
        _draw_verdict_matrix(right, replay)
        figure.suptitle(
            f"{len(replay.questions)} questions asked again",
            x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK,
        )  # fmt: skip
        figure.supxlabel(
            f"now with {replay.settings}; on average {replay.overlap:.0%} of the cited pages are the same",
            x=0.012, ha="left", fontsize=9, color=MUTED,
        )  # fmt: skip


def _draw_changes(axes: "Axes", replay: Replay) -> None:
    """Draw one bar per kind of change, the most severe on top."""
    counts = [replay.changes[change] for change in CHANGES]
    bars = axes.barh(
        range(len(CHANGES)),
        counts,
        height=0.68,
        color=[CHANGE_COLOURS.get(change, OTHER) for change in CHANGES],
    )
    axes.bar_label(bars, [str(count) if count else "" for count in counts], padding=4, color=INK)
    axes.set_yticks(range(len(CHANGES)), [CHANGE_LABELS[change] for change in CHANGES])
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.set_xlim(0, max(counts) * 1.12)
    axes.axvline(0, color=GRID, linewidth=1.2, zorder=0)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, colors=INK)


def _draw_verdict_matrix(axes: "Axes", replay: Replay) -> None:
    """Draw the number of questions by `ReplayVerdict` before (row) and after (column)."""
    indices = range(len(VERDICTS))
    axes.set_xlim(-0.5, len(VERDICTS) - 0.5)
    axes.set_ylim(len(VERDICTS) - 0.5, -0.5)
    counts = Counter((q.before.verdict, q.after.verdict) for q in replay.questions)
    for row, before in enumerate(VERDICTS):
        for column, after in enumerate(VERDICTS):
            _draw_cell(axes, row, column, counts[before, after])
    axes.set_xticks(indices, VERDICTS)
    axes.set_yticks(indices, VERDICTS)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("verdict now", color=MUTED, fontsize=9)
    axes.set_ylabel("verdict then", color=MUTED, fontsize=9)
    axes.set_aspect("equal")
    axes.tick_params(length=0, colors=INK, labelsize=9)
    axes.spines[:].set_visible(False)


def _draw_cell(axes: "Axes", row: int, column: int, count: int) -> None:
    from matplotlib.patches import Rectangle

    # The verdicts are ordered from best to worst.
    colour = SAME if column == row else BETTER if column < row else WORSE
    corner = (column - 0.46, row - 0.46)
    axes.add_patch(Rectangle(corner, 0.92, 0.92, color=colour if count else "#f5f5f5"))
    if count:
        ink = INK if column == row else "white"
        axes.text(column, row, str(count), ha="center", va="center", color=ink, fontweight="bold")
