"""Formats the results as a section of docs/explanation/performance.md."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.document import prose, table
from benchmarks.performance.end_to_end import EndToEnd, Seconds
from benchmarks.performance.growth import SLOW_S, Growth
from benchmarks.performance.ingestion import NAIVE_CHUNKS, Ingestion
from benchmarks.performance.large import Large
from benchmarks.performance.load import CLIENTS, LAG_SHARE, Load
from benchmarks.performance.memory import Memory
from benchmarks.performance.rounds import p50, p95
from benchmarks.performance.rows import Row
from benchmarks.performance.start import Start
from benchmarks.performance.systems import FLOOR, title

Result = EndToEnd | Load | Ingestion | Start | Memory | Growth | Large
"""The result of a subject."""


@dataclass(frozen=True)
class Conditions:
    """The conditions of a measurement."""

    cores: int
    chunks: int
    missing: str
    """The reason why peers were not measured; empty if they were."""


def report(results: Sequence[Result], conditions: Conditions) -> str:
    """Return the section."""
    missing = conditions.missing and f"The peers were not measured: {conditions.missing}"
    introduction = f"""
        Written by `make bench` on a machine with {conditions.cores} cores, over
        {conditions.chunks:,} chunks. {missing}
    """
    rows = [row for result in results for row in result.rows()]
    return "\n\n".join(
        [
            prose(introduction),
            target_table(rows),
            *(part for each in results for part in _details(each)),
        ]
    )


def target_table(rows: Sequence[Row]) -> str:
    """Return a table with a row per target."""
    head = ["", "apidesk", "compared with", "ratio", "target", "met"]
    cells = [
        [
            row.what,
            row.ours,
            row.against,
            "" if row.value is None else f"{row.value:.3g}",
            str(row.target or ""),
            row.verdict,
        ]
        for row in rows
    ]
    return table(head, cells, words=3)


def _details(result: Result) -> Iterator[str]:
    writers: dict[type, Callable[..., Iterator[str]]] = {
        EndToEnd: _questions,
        Load: _load,
        Ingestion: _ingestion,
        Start: lambda _: iter(()),
        Memory: _memory,
        Growth: _growth,
        Large: _large,
    }
    return writers[type(result)](result)


def _questions(found: EndToEnd) -> Iterator[str]:
    rows = []
    for name, seconds in found.outside.items():
        calls = ", ".join(f"{count} {kind}" for kind, count in sorted(found.calls[name].items()))
        without_latency = found.without_latency[name]
        times = (p50(found.whole[name]), p50(seconds), p50(without_latency), p95(without_latency))
        rows.append([title(name), calls, *map(_ms, times)])
    head = [
        "one question at a time",
        "calls",
        "whole, p50 ms",
        "outside model calls, p50 ms",
        "models of 0 ms, p50 ms",
        "p95 ms",
    ]
    yield table(head, rows, words=2)
    yield from _floor(found)
    yield _figure("Time of a question outside of its model calls", "overhead")


def _floor(found: EndToEnd) -> Iterator[str]:
    """Yield a note on the overhead of the baseline, if it was measured."""
    if FLOOR not in found.outside or not found.fastest_peer(found.outside):
        return
    paced, without_latency = (
        _of_the_fastest(found, each) for each in (found.outside, found.without_latency)
    )
    yield prose(
        f"""
        "{FLOOR}" is the lower bound for a server with Litestar, uvicorn and LangChain's client for
        OpenAI. Relative to the fastest peer it is {paced:.2f} outside model calls, and
        {without_latency:.2f} with models of 0 ms.
        """
    )


def _of_the_fastest(found: EndToEnd, seconds: Seconds) -> float:
    peer = found.fastest_peer(seconds)
    assert peer is not None
    return p50(seconds[FLOOR]) / peer[1]


def _load(found: Load) -> Iterator[str]:
    rows = [
        [title(name), f"{p50(rates):.1f}", f"{p50(found.fixed[name]):.1f}", _lag(found, name)]
        for name, rates in found.without_latency.items()
    ]
    head = [
        f"{CLIENTS} clients",
        "a second, models of 0 ms",
        "a second, models at their pace",
        "event loop late by, ms",
    ]
    yield table(head, rows)
    yield prose(
        f"""
        With model latency, throughput is limited to {CLIENTS} divided by the seconds of the model's
        calls. Lateness is the {LAG_SHARE:.0%} quantile of the event loop's lag during the load, if
        `/metrics` reports it.
        """
    )
    yield _figure(f"Questions per second with {CLIENTS} clients", "throughput")


def _lag(found: Load, name: str) -> str:
    return f"at most {_ms(found.lag[name])}" if name in found.lag else ""


def _ingestion(found: Ingestion) -> Iterator[str]:
    rows = []
    for name, runs in found.runs.items():
        last, again = runs[-1], found.again(name)
        asked = str(last.requests)
        if last.requests_again is not None:
            asked += f", then {last.requests_again}"
        rate, ratio = f"{found.rate(name):,.0f}", "" if again is None else f"{again:.3f}"
        rows.append([title(name), f"{last.chunks:,}", rate, ratio, asked])
    head = ["ingestion", "chunks", "a second, first run", "second run to first", "requests"]
    yield table(head, rows)
    yield prose(
        f"""
        The naive loop embeds and inserts one chunk at a time. It indexed the first {NAIVE_CHUNKS}
        chunks because its rate does not depend on their number. The requests of both runs of a peer are
        counted together.
        """
    )
    yield _figure("Chunks indexed per second", "ingestion")


def _memory(found: Memory) -> Iterator[str]:
    rows = [
        [title(name), f"{weight.resident:.0f}", f"{weight.proportional:.0f}"]
        for name, weight in found.weights.items()
    ]
    yield table(["serving the samples", "resident MB", "proportional MB"], rows)


def _growth(found: Growth) -> Iterator[str]:
    rows = [
        [each.route, f"{each.chunks:,}", f"{each.p50 * 1000:.1f}", f"{each.p95 * 1000:.1f}"]
        for each in found.grown
    ]
    yield table(["`retrieve`", "chunks", "p50 ms", "p95 ms"], rows)
    largest = {route: found.largest(route) for route in found.routes}
    limits = "; ".join(
        f"{route}: {f'{count:,} chunks' if count else 'none'}" for route, count in largest.items()
    )
    yield prose(
        f"""
        The largest embedded store measured that answers half of all retrievals within {_ms(SLOW_S)} ms:
        {limits}. Use a Milvus server beyond that size, or with more than one machine.
        """
    )
    yield _figure("Retrieval by number of chunks", "growth")


def _large(found: Large) -> Iterator[str]:
    rows = []
    for name, outside in found.alone.outside.items():
        rates = found.load.without_latency.get(name)
        times = (p50(outside), p50(found.alone.without_latency[name]))
        rows.append([title(name), *map(_ms, times), f"{p50(rates):.1f}" if rates else ""])
    head = [
        f"{found.chunks:,} chunks",
        "outside model calls, p50 ms",
        "models of 0 ms, p50 ms",
        f"{CLIENTS} clients, a second",
    ]
    yield table(head, rows)
    yield prose(
        f"""
        {CLIENTS} clients ask apidesk and the peer that answers a single question fastest, without model
        latency.
        """
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f}" if seconds >= 0.1 else f"{seconds * 1000:.1f}"


def _figure(caption: str, name: str) -> str:
    return f"![{caption}](../images/{figure_name(name)})"


def figure_name(name: str) -> str:
    """Return the file name of a figure."""
    return f"performance-{name}.svg"
