"""A replay as a figure: where answers moved, and how many of the cited pages are the same."""

from pathlib import Path
from typing import TYPE_CHECKING

from app.evaluation.plots import GRID, INK, PALE, STYLE, check_plot
from app.replay.result import VERDICTS, Replay
from schemas.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE = "#0072B2"
BINS = 10


def plot_replay(replay: Replay, path: Path) -> None:
    """Draw it into `path`, .svg or .png. Raises ConfigurationError."""
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(9.6, 4.4), layout="constrained")
        moves, overlap = figure.subplots(1, 2, width_ratios=(1.1, 1))
        _moves(moves, replay)
        _overlap(overlap, replay)
        figure.suptitle(
            f"Replay of {len(replay.questions)} questions, now with {replay.settings}",
            x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK,
        )  # fmt: skip
        try:
            svg = path.suffix.lower() == ".svg"
            figure.savefig(path, dpi=200, metadata={"Date": None} if svg else None)
        except OSError as error:
            raise ConfigurationError(f"--plot {path}: {error.strerror}") from None


def _moves(axes: "Axes", replay: Replay) -> None:
    """A row for each verdict then, a column for each now; who did not move stands on the diagonal."""
    counts = [
        [
            sum(q.before.verdict == before and q.after.verdict == after for q in replay.questions)
            for after in VERDICTS
        ]
        for before in VERDICTS
    ]
    most = max(max(row) for row in counts) or 1
    axes.imshow([[count / most for count in row] for row in counts], cmap="Blues", vmin=0, vmax=1.4)
    for row, of_row in enumerate(counts):
        for column, count in enumerate(of_row):
            if count:
                weight = "normal" if row == column else "bold"
                axes.text(
                    column, row, str(count), ha="center", va="center", color=INK, fontweight=weight
                )
    axes.set_xticks(range(len(VERDICTS)), VERDICTS)
    axes.set_yticks(range(len(VERDICTS)), VERDICTS)
    axes.set_xlabel("confidence now")
    axes.set_ylabel("confidence then")
    axes.set_title("questions, then and now", loc="left", fontsize=10, color=PALE)
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_visible(False)


def _overlap(axes: "Axes", replay: Replay) -> None:
    axes.hist(
        [each.overlap for each in replay.questions], bins=BINS, range=(0, 1), color=BLUE, rwidth=0.9
    )
    axes.set_xlabel("share of the cited pages that are the same")
    axes.set_ylabel("questions")
    axes.set_title("cited pages", loc="left", fontsize=10, color=PALE)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
