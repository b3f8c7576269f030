"""Formats the results as the section "Large platforms" of docs/explanation/performance.md."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from benchmarks.document import prose, table
from benchmarks.performance.report import target_table
from benchmarks.performance.rounds import p50, p95
from benchmarks.performance.rows import Row, Target, milliseconds
from benchmarks.scale.peers import SystemRetrieval
from benchmarks.scale.servers import CLIENTS, Serving

ASK = Target(2.0)
RETRIEVE = Target(1.0)
THROUGHPUT = Target(0.6, at_least=True)
CHANGED = Target(0.03)
READY_SMALL, READY_LARGE = Target(3.0, unit=" s"), Target(10.0, unit=" s")
RESIDENT = Target(900.0, unit=" MB")


@dataclass(frozen=True)
class Results:
    """All results of one run."""

    command: str
    day: date
    cores: int
    servings: Sequence[Serving]
    """One server per size, smallest first, and one with two workers for the largest store."""
    systems: Sequence[SystemRetrieval]
    """apidesk with the largest store, then its peers; empty if peers were not measured."""
    missing: str
    """The reason why peers were not measured; empty if they were."""

    @property
    def alone(self) -> list[Serving]:
        """The servers with one process, smallest store first."""
        return [serving for serving in self.servings if serving.workers == 1]


def report(results: Results) -> str:
    """Return the section."""
    missing = results.missing and f"The other frameworks were not measured: {results.missing}"
    introduction = f"""
        Written by `{results.command}` on {results.day:%Y-%m-%d}, on a machine with {results.cores}
        cores. {missing}
    """
    parts = [prose(introduction), target_table(list(rows(results))), _sizes(results)]
    if results.systems:
        parts.append(_systems(results))
    return "\n\n".join(parts)


def rows(results: Results) -> Iterator[Row]:
    """Yield the rows of the targets. Most compare the largest store with the smallest."""
    small, large = results.alone[0], results.alone[-1]
    sizes = f"{large.store.chunks:,} chunks"
    against = f"{small.store.chunks:,} chunks"
    mine, theirs = p50(large.ask_cpu), p50(small.ask_cpu)
    yield Row(
        f"`/ask` without a model, CPU per question, {sizes}", milliseconds(mine),
        f"{against} {milliseconds(theirs)}", mine / theirs, ASK,
    )  # fmt: skip
    yield _retrieval(results, large, sizes)
    mine, theirs = p50(large.rates), p50(small.rates)
    yield Row(
        f"questions per second, {CLIENTS} clients, {sizes}", f"{mine:.1f}",
        f"{against} {theirs:.1f}", mine / theirs, THROUGHPUT,
    )  # fmt: skip
    first, changed = large.store.first.cpu_s, large.store.changed.cpu_s
    yield Row(
        f"`apidesk ingest` after a changed page, CPU, {sizes}", f"{changed:.1f} s",
        f"first run {first:.0f} s", changed / first, CHANGED,
    )  # fmt: skip
    for serving, target in ((small, READY_SMALL), (large, READY_LARGE)):
        ready = p50(serving.ready_cpu)
        yield Row(
            f"start to ready, CPU, {serving.store.chunks:,} chunks", f"{ready:.1f} s", "",
            ready, target,
        )  # fmt: skip
    resident = large.resident_mb
    yield Row(f"resident memory, {sizes}", f"{resident:.0f} MB", "", resident, RESIDENT)
    yield _workers(results, large, sizes)


def _retrieval(results: Results, large: Serving, sizes: str) -> Row:
    what = f"`/retrieve`, full text, p50, {sizes}"
    if not results.systems:
        return Row(what, milliseconds(p50(large.retrieve)), "no peer measured", None, RETRIEVE)
    apidesk, *peers = results.systems
    best = min(peers, key=lambda peer: p50(peer.retrieve))
    mine, theirs = p50(apidesk.retrieve), p50(best.retrieve)
    against = f"{best.title} {milliseconds(theirs)}"
    return Row(what, milliseconds(mine), against, mine / theirs, RETRIEVE)


def _workers(results: Results, large: Serving, sizes: str) -> Row:
    several = next(serving for serving in results.servings if serving.workers > 1)
    mine, theirs = p50(several.rates), p50(large.rates)
    what = f"questions per second, {CLIENTS} clients, `--workers {several.workers}`, {sizes}"
    return Row(what, f"{mine:.1f}", f"one process {theirs:.1f}", mine / theirs)


def _sizes(results: Results) -> str:
    """Return a table with a column per server."""
    servings = results.servings
    head = ["full text", *map(_title, servings)]
    stores = [serving.store for serving in servings]
    cells = [
        ["distinct terms", *(f"{store.terms:,}" for store in stores)],
        ["snapshot, MB", *(f"{store.snapshot_mb:.0f}" for store in stores)],
        ["Milvus Lite, MB", *(f"{store.record_mb:.0f}" for store in stores)],
        ["first run, CPU s", *(f"{store.first.cpu_s:.1f}" for store in stores)],
        ["first run, CPU ms per chunk", *(_per_chunk(serving) for serving in servings)],
        ["first run, peak MB", *(f"{store.first.peak_mb:.0f}" for store in stores)],
        ["run after one changed page, CPU s", *(f"{store.changed.cpu_s:.1f}" for store in stores)],
        ["run without a change, CPU s", *(f"{store.unchanged.cpu_s:.1f}" for store in stores)],
        ["start to ready, CPU s", *(f"{p50(each.ready_cpu):.1f}" for each in servings)],
        ["`/ask`, CPU ms per question", *(_milliseconds(each.ask_cpu) for each in servings)],
        ["`/retrieve`, p50 ms", *(_milliseconds(each.retrieve) for each in servings)],
        ["`/retrieve`, p95 ms", *(_milliseconds(each.retrieve, p95) for each in servings)],
        [f"{CLIENTS} clients, `/ask` per second", *(f"{p50(each.rates):.1f}" for each in servings)],
        ["resident MB", *(f"{each.resident_mb:.0f}" for each in servings)],
        ["proportional MB", *(f"{each.proportional_mb:.0f}" for each in servings)],
    ]
    return table(head, cells)


def _systems(results: Results) -> str:
    """Return a table with a row per system."""
    cells = [
        [
            system.title,
            f"{system.ready_cpu:.1f}",
            _milliseconds(system.retrieve),
            _milliseconds(system.retrieve, p95),
            f"{system.resident_mb:.0f}",
        ]
        for system in results.systems
    ]
    chunks = f"`/retrieve` over {results.alone[-1].store.chunks:,} chunks"
    return table([chunks, "start, CPU s", "p50 ms", "p95 ms", "resident MB"], cells)


def _title(serving: Serving) -> str:
    workers = f", {serving.workers} workers" if serving.workers > 1 else ""
    return f"{serving.store.chunks:,} chunks{workers}"


def _per_chunk(serving: Serving) -> str:
    return f"{serving.store.first.cpu_s / serving.store.chunks * 1000:.2f}"


def _milliseconds(
    seconds: Sequence[float], measure: Callable[[Sequence[float]], float] = p50
) -> str:
    return f"{measure(seconds) * 1000:.1f}" if seconds else ""
