"""Draws the figures of docs/explanation/performance.md."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.analytics.plots import GRID, INK, MUTED, RC_PARAMS
from benchmarks.performance.end_to_end import FULL_TEXT, OVERHEAD, EndToEnd
from benchmarks.performance.growth import Growth
from benchmarks.performance.ingestion import OURS as OUR_JOB
from benchmarks.performance.ingestion import Ingestion
from benchmarks.performance.load import THROUGHPUT, Load
from benchmarks.performance.report import Result, figure_name
from benchmarks.performance.rounds import p50
from benchmarks.performance.systems import FLOOR, OURS, is_peer, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUR_COLOUR, THEIR_COLOUR, FLOOR_COLOUR = "#0072B2", "#b9b9b9", "#e3e3e3"
"""Colours that can be told apart in greyscale."""

LINES = {"full text": ("#D55E00", "s", "--"), "hybrid": ("#0072B2", "o", "-")}

BAR = 0.42
"""Height of a bar in inches."""


def draw(result: Result, images: Path) -> None:
    """Draw the figures of `result` into the folder `images`."""
    images.mkdir(exist_ok=True)
    if isinstance(result, EndToEnd):
        _overhead(result, images / figure_name("overhead"))
    elif isinstance(result, Load):
        _throughput(result, images / figure_name("throughput"))
    elif isinstance(result, Ingestion):
        _ingestion(result, images / figure_name("ingestion"))
    elif isinstance(result, Growth):
        _growth(result, images / figure_name("growth"))


def _overhead(found: EndToEnd, path: Path) -> None:
    shown = [
        (found.outside, "outside model calls, ms"),
        (found.without_latency, "models of 0 ms, from question to answer, ms"),
    ]
    with _panels(path, 2, len(found.outside)) as panels:
        for axes, (seconds, label) in zip(panels, shown, strict=True):
            _bars(axes, {name: p50(each) * 1000 for name, each in seconds.items()}, label)
            if peer := found.fastest_peer(seconds):
                limit = OVERHEAD[FULL_TEXT].limit
                _goal(axes, peer[1] * 1000 * limit, f"{limit:g} of the fastest")


def _throughput(found: Load, path: Path) -> None:
    rates = {name: p50(each) for name, each in found.without_latency.items()}
    with _panels(path, 1, len(rates)) as (axes,):
        _bars(axes, rates, "questions a second, models of 0 ms")
        if others := [rate for name, rate in rates.items() if is_peer(name)]:
            limit = THROUGHPUT[FULL_TEXT].limit
            _goal(axes, max(others) * limit, f"{limit:g} times the best")


def _ingestion(found: Ingestion, path: Path) -> None:
    rates = {name: found.rate(name) for name in found.runs}
    with _panels(path, 1, len(rates)) as (axes,):
        _bars(axes, rates, "chunks a second, 30 ms an embedding request")


def _growth(found: Growth, path: Path) -> None:
    with _panels(path, 1, 8) as (axes,):
        for route in found.routes:
            colour, marker, dashes = LINES[route]
            mine = [each for each in found.grown if each.route == route]
            chunks = [each.chunks for each in mine]
            for share, width, times in (
                ("p50", 1.9, [each.p50 * 1000 for each in mine]),
                ("p95", 0.9, [each.p95 * 1000 for each in mine]),
            ):
                axes.plot(
                    chunks, times, label=f"{route}, {share}", color=colour, linestyle=dashes,
                    linewidth=width, marker=marker, markerfacecolor="white",
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xticks(chunks, [f"{count:,}" for count in chunks])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel("chunks in an embedded store", color=INK)
        axes.set_ylabel("retrieval, ms", color=INK)
        axes.legend(frameon=False)
        axes.grid(axis="y", color=GRID)


@contextmanager
def _panels(path: Path, count: int, bars: int) -> "Iterator[list[Axes]]":
    """Yield `count` panels, one below the other, with room for `bars` bars each; then save the figure."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC_PARAMS):
        height = count * (0.9 + BAR * bars)
        figure = Figure(figsize=(7.2, height), layout="constrained")
        panels = [figure.add_subplot(count, 1, number + 1) for number in range(count)]
        yield panels
        for axes in panels:
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_axisbelow(True)
            axes.tick_params(colors=MUTED, labelcolor=INK)
        figure.savefig(path, metadata={"Date": None})


def _bars(axes: "Axes", values: Mapping[str, float], label: str) -> None:
    """Draw a labelled bar per system, the first system on top and apidesk in colour."""
    special = dict.fromkeys((*OURS.values(), OUR_JOB), OUR_COLOUR) | {FLOOR: FLOOR_COLOUR}
    names = list(values)[::-1]
    colours = [special.get(name, THEIR_COLOUR) for name in names]
    lengths = [values[name] for name in names]
    bars = axes.barh([title(name) for name in names], lengths, color=colours, height=0.62)
    form: Callable[[float], str] = "{:,.0f}".format if max(lengths) >= 50 else "{:.1f}".format
    axes.bar_label(bars, fmt=form, padding=4, color=INK)
    axes.margins(x=0.12)
    axes.set_xlabel(label, color=INK)
    axes.grid(axis="x", color=GRID)


def _goal(axes: "Axes", value: float, label: str) -> None:
    axes.axvline(value, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        label, (value, 1), xycoords=("data", "axes fraction"), xytext=(3, 2),
        textcoords="offset points", color=INK, fontsize=8.5,
    )  # fmt: skip
