"""Measures throughput with many clients, with and without model latency."""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import httpx

from benchmarks.performance.calls import FIXED, NO_LATENCY
from benchmarks.performance.model_process import Model
from benchmarks.performance.questions import on_topic
from benchmarks.performance.rounds import in_turns, p50
from benchmarks.performance.rows import Row, Target
from benchmarks.performance.systems import OURS, TIMEOUT_S, Apidesk, System, ask, is_peer, title

CLIENTS = 64

THROUGHPUT = {
    OURS[True]: Target(1.0, at_least=True),
    OURS[False]: Target(1.3, at_least=True),
}

LAG = "apidesk_event_loop_lag_seconds"
LAG_SHARE = 0.99
"""The quantile of the lag that is reported."""

_BUCKET = re.compile(rf'^{LAG}_bucket{{.*?le="([^"]+)".*}} (\S+)$', re.MULTILINE)

Rates = defaultdict[str, list[float]]
"""Questions per second of each round, by system."""


@dataclass
class Load:
    """Throughput of each system in one process."""

    without_latency: Rates = field(default_factory=lambda: defaultdict(list))
    """Without model latency."""
    fixed: Rates = field(default_factory=lambda: defaultdict(list))
    """With model latency."""
    lag: dict[str, float] = field(default_factory=dict)
    """99th percentile of the event loop's lag in seconds, by system, if the system reports it."""

    def rows(self) -> Iterator[Row]:
        """Return the rows of the speed targets for many clients."""
        for name, target in THROUGHPUT.items():
            yield self.row(name, "models of 0 ms", self.without_latency, target)
        for name in OURS.values():
            yield self.row(name, "models at their pace", self.fixed)

    def row(self, name: str, what: str, rates: Rates, target: Target | None = None) -> Row:
        """Return the row that compares the rate of `name`, one of `OURS`, with the best peer's."""
        label = f"{CLIENTS} clients, {what}, {name.removeprefix('apidesk, ')}"
        mine = p50(rates[name])
        others = [(p50(rates[each]), each) for each in rates if is_peer(each)]
        if not others:
            return Row(label, f"{mine:.1f} a second", "no peer measured", None, target)
        theirs, best = max(others)
        return Row(
            label, f"{mine:.1f} a second", f"{title(best)} {theirs:.1f}", mine / theirs, target
        )


def measure(systems: Sequence[System], model: Model, rounds: int, questions: int) -> Load:
    """Let `CLIENTS` clients ask each system `questions` questions per round.

    There are `rounds` rounds without model latency, with the systems in turns, and one with it.
    """
    return asyncio.run(_measure(systems, model, rounds, questions))


async def _measure(systems: Sequence[System], model: Model, rounds: int, questions: int) -> Load:
    found, asked = Load(), on_topic()
    limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
    async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S, limits=limits) as http:
        model.set_pace(NO_LATENCY)
        for _, system in in_turns(systems, rounds):
            before = await _lags(http, system)
            found.without_latency[system.name].append(await _rate(http, system, asked, questions))
            if lag := late(before, await _lags(http, system)):
                found.lag[system.name] = lag
            model.seen()  # otherwise the model server keeps the log of all calls
        model.set_pace(FIXED)
        for system in systems:
            found.fixed[system.name].append(await _rate(http, system, asked, questions))
    return found


async def _rate(
    http: httpx.AsyncClient, system: System, asked: Iterator[str], questions: int
) -> float:
    """Return the questions per second, from the first question to the last answer."""
    mine = iter([next(asked) for _ in range(questions)])

    async def client() -> None:
        for question in mine:
            await ask(http, system, question)

    began = time.monotonic()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return questions / (time.monotonic() - began)


Buckets = dict[float, float]
"""Number of samples by the upper bound of their lag, in seconds; each bucket includes all smaller ones."""


async def _lags(http: httpx.AsyncClient, system: System) -> Buckets:
    if not isinstance(system, Apidesk):
        return {}
    return buckets((await http.get(f"{system.server}/metrics")).text)


def buckets(metrics: str) -> Buckets:
    """Return the buckets of the event loop's lag in the text of `/metrics`; empty if there are none."""
    return {float(bound): float(count) for bound, count in _BUCKET.findall(metrics)}


def late(before: Buckets, after: Buckets, share: float = LAG_SHARE) -> float | None:
    """Return the smallest bound that at least `share` of the lags between two states do not exceed.

    None if no lag was measured between `before` and `after`.
    """
    counts = {bound: after[bound] - before.get(bound, 0.0) for bound in sorted(after)}
    total = max(counts.values(), default=0.0)
    return next((b for b, count in counts.items() if total and count >= share * total), None)
