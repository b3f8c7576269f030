"""Plots a replay: the number of questions per kind of change, and the changes of confidence."""

from pathlib import Path
from typing import TYPE_CHECKING

from app.analytics.evaluation.plots import GRID, INK, MUTED, RC_PARAMS, check_plot
from app.analytics.replay.result import CHANGES, VERDICTS, Replay, ReplayChange
from schemas.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours from Okabe and Ito, Color Universal Design, 2008.
WORSE, BETTER, OTHER, SAME = "#D55E00", "#009E73", "#0072B2", "#bdbdbd"

COLOURS: dict[ReplayChange, str] = {"failed": WORSE, "lost": WORSE, "won": BETTER, "same": SAME}


def plot_replay(replay: Replay, path: Path) -> None:
    """Plot `replay` into `path`, an .svg or .png file. Raises ConfigurationError."""
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC_PARAMS):
        figure = Figure(figsize=(9.2, 4.2), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr,call-arg]
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
        _draw_changes(left, replay)
        _draw_confidence_matrix(right, replay)
        figure.suptitle(
            f"{len(replay.questions)} questions asked again",
            x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK,
        )  # fmt: skip
        figure.supxlabel(
            f"now with {replay.settings}; on average {replay.overlap:.0%} of the cited pages are the same",
            x=0.012, ha="left", fontsize=9, color=MUTED,
        )  # fmt: skip
        try:
            svg = path.suffix.lower() == ".svg"
            figure.savefig(path, dpi=200, metadata={"Date": None} if svg else None)
        except OSError as error:
            raise ConfigurationError(f"--plot {path}: {error.strerror}") from None


def _draw_changes(axes: "Axes", replay: Replay) -> None:
    """Draw one bar per kind of change, the most severe on top."""
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


def _draw_confidence_matrix(axes: "Axes", replay: Replay) -> None:
    """Draw counts by verdict before (row) and after (column); the diagonal is unchanged."""
    indices = range(len(VERDICTS))
    axes.set_xlim(-0.5, len(VERDICTS) - 0.5)
    axes.set_ylim(len(VERDICTS) - 0.5, -0.5)
    for before in indices:
        for after in indices:
            count = sum(
                (each.before.verdict, each.after.verdict) == (VERDICTS[before], VERDICTS[after])
                for each in replay.questions
            )
            _draw_cell(axes, before, after, count)
    axes.set_xticks(indices, VERDICTS)
    axes.set_yticks(indices, VERDICTS)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("confidence now", color=MUTED, fontsize=9)
    axes.set_ylabel("confidence then", color=MUTED, fontsize=9)
    axes.set_aspect("equal")
    axes.tick_params(length=0, colors=INK, labelsize=9)
    axes.spines[:].set_visible(False)


def _draw_cell(axes: "Axes", before: int, after: int, count: int) -> None:
    from matplotlib.patches import Rectangle

    colour = SAME if after == before else BETTER if after < before else WORSE
    corner = (after - 0.46, before - 0.46)
    axes.add_patch(Rectangle(corner, 0.92, 0.92, color=colour if count else "#f5f5f5"))
    if count:
        ink = INK if after == before else "white"
        axes.text(after, before, str(count), ha="center", va="center", color=ink, fontweight="bold")
