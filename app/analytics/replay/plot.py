"""A replay as a figure: how many questions changed how, and where their answers moved."""

from pathlib import Path
from typing import TYPE_CHECKING

from app.analytics.evaluation.plots import GRID, INK, PALE, STYLE, check_plot
from app.analytics.replay.result import CHANGES, VERDICTS, Replay, ReplayChange
from schemas.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The colours are of Okabe and Ito, Color Universal Design, 2008.
WORSE, BETTER, OTHER, SAME = "#D55E00", "#009E73", "#0072B2", "#bdbdbd"

COLOURS: dict[ReplayChange, str] = {"failed": WORSE, "lost": WORSE, "won": BETTER, "same": SAME}


def plot_replay(replay: Replay, path: Path) -> None:
    """Draw it into `path`, .svg or .png. Raises ConfigurationError."""
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(9.2, 4.2), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr,call-arg]
        changes, moves = figure.subplots(1, 2, width_ratios=(1.15, 1))
        _changes(changes, replay)
        _moves(moves, replay)
        figure.suptitle(
            f"{len(replay.questions)} questions asked again",
            x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK,
        )  # fmt: skip
        figure.supxlabel(
            f"now with {replay.settings}; on average {replay.overlap:.0%} of the cited pages are the same",
            x=0.012, ha="left", fontsize=9, color=PALE,
        )  # fmt: skip
        try:
            svg = path.suffix.lower() == ".svg"
            figure.savefig(path, dpi=200, metadata={"Date": None} if svg else None)
        except OSError as error:
            raise ConfigurationError(f"--plot {path}: {error.strerror}") from None


def _changes(axes: "Axes", replay: Replay) -> None:
    """A bar for each change, what weighs most on top."""
    counts = [replay.changes[change] for change in CHANGES]
    bars = axes.barh(
        range(len(CHANGES)),
        counts,
        height=0.68,
        color=[COLOURS.get(change, OTHER) for change in CHANGES],
    )
    axes.bar_label(bars, [str(count) if count else "" for count in counts], padding=4, color=INK)
    axes.set_yticks(range(len(CHANGES)), CHANGES)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.set_xlim(0, max(counts) * 1.12)
    axes.axvline(0, color=GRID, linewidth=1.2, zorder=0)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, colors=INK)


def _moves(axes: "Axes", replay: Replay) -> None:
    """A row for each verdict then, a column for each now; what did not move stands on the diagonal."""
    places = range(len(VERDICTS))
    axes.set_xlim(-0.5, len(VERDICTS) - 0.5)
    axes.set_ylim(len(VERDICTS) - 0.5, -0.5)
    for then in places:
        for now in places:
            count = sum(
                (each.before.verdict, each.after.verdict) == (VERDICTS[then], VERDICTS[now])
                for each in replay.questions
            )
            _cell(axes, now, then, count)
    axes.set_xticks(places, VERDICTS)
    axes.set_yticks(places, VERDICTS)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("confidence now", color=PALE, fontsize=9)
    axes.set_ylabel("confidence then", color=PALE, fontsize=9)
    axes.set_aspect("equal")
    axes.tick_params(length=0, colors=INK, labelsize=9)
    axes.spines[:].set_visible(False)


def _cell(axes: "Axes", now: int, then: int, count: int) -> None:
    from matplotlib.patches import Rectangle

    colour = SAME if now == then else BETTER if now < then else WORSE
    cell = Rectangle((now - 0.46, then - 0.46), 0.92, 0.92, color=colour if count else "#f5f5f5")
    axes.add_patch(cell)
    if count:
        ink = INK if now == then else "white"
        axes.text(now, then, str(count), ha="center", va="center", color=ink, fontweight="bold")
