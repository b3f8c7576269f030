"""Formats the results as a section of docs/explanation/reliability.md, and draws a figure."""

from collections import Counter
from pathlib import Path

from app.analytics.plots import GRID, INK, MUTED, RC_PARAMS
from benchmarks.document import prose, table
from benchmarks.soak.processes import DOWNTIME_S, WORKERS
from benchmarks.soak.result import Result

FIGURE = "soak.svg"
POINT_INTERVAL_S = 10
"""Seconds between two points of the figure."""


def report(result: Result, cores: int) -> str:
    """Return the section."""
    introduction = f"""
        Written by `make soak` on a machine with {cores} cores: {result.minutes:g} minutes,
        {result.clients} clients and {WORKERS} processes of the API. During this time, there were
        {len(result.runs)} ingestion runs, and the Milvus Lite server was stopped {result.restarts} times
        for {DOWNTIME_S:g} s.
    """
    verdict = "; ".join(result.failures) or "Every condition holds"
    caption = "Memory and answers over time"
    return "\n\n".join(
        [
            prose(introduction),
            _questions(result),
            _conditions(result),
            prose(f"{verdict}."),
            prose(_models(result)),
            f"![{caption}](../images/{FIGURE})",
        ]
    )


def _questions(result: Result) -> str:
    head = [
        "questions",
        "asked",
        "answered",
        "degraded",
        "busy",
        "store unavailable",
        "disconnected",
        "p50 s",
        "p95 s",
    ]
    rows = []
    for kind in result.kinds:
        found = Counter(each.outcome for each in result.asked if each.kind == kind)
        counts = [
            found[name]
            for name in ("answered", "degraded", "busy", "store unavailable", "disconnected")
        ]
        times = [f"{seconds:.2f}" for seconds in result.seconds(kind)]
        rows.append([kind, *(f"{count:,}" for count in (found.total(), *counts)), *times])
    return table(head, rows)


def _conditions(result: Result) -> str:
    found = result.outcomes
    grown = "too short to tell" if result.growth is None else f"{result.growth:+.1%}"
    rows = [
        ["wrong answers", f"{found['wrong']}", "0"],
        ["unexpected statuses, broken connections", f"{found['failed']}", "0"],
        ["503 while the store was available", f"{result.untimely}", "0"],
        [f"answers of sessions lost, of {result.remembered:,}", f"{result.lost}", "0"],
        [f"records of questions lost, of {result.kept:,}", f"{result.unkept}", "0"],
        ["stack traces in the log", f"{result.stacks}", "0"],
        ["failed ingestions while Milvus was available", f"{_failed_runs(result)}", "0"],
        ["memory of the API, last minute to second", grown, "at most +10%"],
    ]
    return table(["condition", "found", "allowed"], rows)


def _failed_runs(result: Result) -> int:
    return sum(run.startswith("failed") for run in result.runs)


def _models(result: Result) -> str:
    asked = result.model.get("asked", 0)
    failed = {name: count for name, count in result.model.items() if name != "asked"}
    kinds = ", ".join(f"{name}: {count}" for name, count in sorted(failed.items()))
    share = sum(failed.values()) / max(1, asked)
    soon, late = result.refusal_seconds
    megabytes = ", ".join(f"{mb:,.0f}" for mb in result.by_minute)
    return f"""
        The scripted model was asked {asked:,} times and failed {share:.1%} of them ({kinds}).
        A question during a downtime of Milvus failed within {soon:.2f} s (median; 95% within {late:.2f} s).
        Median resident memory of the API's processes by minute, in MB: {megabytes or "too short"}.
    """


def draw(result: Result, path: Path) -> None:
    """Draw memory and answers per second over time into `path`."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC_PARAMS):
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        memory = figure.add_subplot()
        points = result.weights[::POINT_INTERVAL_S]
        minutes = [(weight.at - result.began) / 60 for weight in points]
        memory.plot(minutes, [weight.server for weight in points], color="#0072B2")
        memory.set_ylim(bottom=0)
        memory.set_xlabel("minutes", color=INK)
        memory.set_ylabel("MB, processes of the API", color="#0072B2")
        memory.grid(color=GRID)
        answers = memory.twinx()
        rates = Counter(
            int((each.at + each.seconds - result.began) // POINT_INTERVAL_S)
            for each in result.asked
            if each.outcome == "answered"
        )
        places = range(max(rates, default=0) + 1)
        answers.plot(
            [(place + 0.5) * POINT_INTERVAL_S / 60 for place in places],
            [rates[place] / POINT_INTERVAL_S for place in places],
            color="#D55E00",
            linestyle="--",
        )
        answers.set_ylim(bottom=0)
        answers.set_ylabel("answers a second", color="#D55E00")
        for axes in (memory, answers):
            axes.tick_params(colors=MUTED)
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
