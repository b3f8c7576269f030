"""Recall over k as a figure: for choosing k, on paper, and by readers who see few colours."""

import math
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from app.analytics.evaluation.result import MOST_K, Evaluation, RouteResult
from runnables.retrieval.retriever import RetrievalMode
from schemas.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import RcKeyType


class LineStyle(NamedTuple):
    """A line that is told from the others by colour, marker and dashes, each alone sufficient."""

    colour: str
    marker: str
    dashes: str | tuple[int, tuple[int, ...]]


# The colours are of Okabe and Ito, Color Universal Design, 2008.
LOOKS: dict[RetrievalMode, LineStyle] = {
    "hybrid": LineStyle("#0072B2", "o", "-"),
    "full_text": LineStyle("#D55E00", "s", (0, (5, 2))),
    "dense": LineStyle("#009E73", "^", "-."),
}
INK, PALE, GRID = "#222222", "#6b6b6b", "#e4e4e4"

STYLE: "dict[RcKeyType, Any]" = {
    "svg.fonttype": "none",
    "svg.hashsalt": "apidesk",
    "font.family": "sans-serif",
    "font.size": 10,
}


def check_plot(path: Path) -> None:
    """Raises ConfigurationError for a file that no plot can be drawn into, before hours of work."""
    if path.suffix.lower() not in (".svg", ".png"):
        raise ConfigurationError(f"--plot {path}: the name must end in .svg or .png")
    if not path.resolve().parent.is_dir():
        raise ConfigurationError(f"--plot {path}: no such folder")
    if find_spec("matplotlib") is None:
        raise ConfigurationError("--plot needs matplotlib: pip install 'apidesk[evaluate]'")


def plot_recall(evaluation: Evaluation, path: Path) -> None:
    """Draw recall over k, a line a route, into `path`. Raises ConfigurationError."""
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.5), layout="constrained")
        axes = figure.add_subplot()
        _frame(axes, evaluation)
        for route in evaluation.routes:
            _route(axes, route)
        _chosen(axes, evaluation)
        figure.legend(loc="outside lower center", ncols=4, frameon=False, handlelength=3.4)
        try:
            svg = path.suffix.lower() == ".svg"
            figure.savefig(path, dpi=200, metadata={"Date": None} if svg else None)
        except OSError as error:
            raise ConfigurationError(f"--plot {path}: {error.strerror}") from None


def _frame(axes: "Axes", evaluation: Evaluation) -> None:
    """Title, axes and grid; recall from the tenth below the lowest point up to 1."""
    lowest = min(min(route.recall[0], *route.chunk_recall) for route in evaluation.routes)
    floor = max(0.0, math.floor(lowest * 10 - 0.5) / 10)
    axes.set_xlim(0.5, MOST_K + 0.5)
    axes.set_ylim(floor, 1.0 + 0.02 * (1 - floor))
    axes.set_xticks([1, *range(2, MOST_K + 1, 2), *{evaluation.k} - {1}])
    axes.set_xlabel("k, documents looked at")
    axes.set_ylabel("recall@k, share of the right documents")
    axes.set_title("Recall over k", loc="left", fontsize=13, fontweight="bold", color=INK, pad=22)
    under = f"{evaluation.with_gold} questions, {evaluation.documents} documents"
    if evaluation.made:
        under += "; the questions were made from the documents, which flatters"
    axes.text(0, 1.02, under, transform=axes.transAxes, color=PALE, fontsize=9, va="bottom")
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)


def _route(axes: "Axes", route: RouteResult) -> None:
    look = LOOKS[route.mode]
    axes.plot(
        range(1, MOST_K + 1),
        route.recall,
        label=route.label,
        color=look.colour,
        linestyle=look.dashes,
        linewidth=1.9,
        marker=look.marker,
        markersize=5,
        markerfacecolor="white",
        markeredgewidth=1.4,
        clip_on=False,
    )


def _chosen(axes: "Axes", evaluation: Evaluation) -> None:
    """The k in force, with the recall that it gives; and recall where k counts chunks."""
    k, route = evaluation.k, evaluation.judged_route
    ks = range(1, MOST_K + 1)
    if route.chunk_recall != route.recall:
        label = f"{route.label}, k counting chunks"
        axes.plot(ks, route.chunk_recall, color=PALE, linestyle=":", linewidth=1.4, label=label)
    axes.axvline(k, color=PALE, linewidth=0.9, zorder=0)
    axes.annotate(
        f"k = {k}: {route.label} {evaluation.recall:.3f}",
        (k, evaluation.recall),
        xytext=(9, -24),
        textcoords="offset points",
        color=LOOKS[route.mode].colour,
        fontweight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )
