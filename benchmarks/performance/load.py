"""Many clients at once: questions a second, with the model at its pace and at once."""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import httpx

from benchmarks.performance.calls import AT_ONCE, FIXED
from benchmarks.performance.model_process import Model
from benchmarks.performance.questions import on_topic
from benchmarks.performance.rounds import in_turns, p50
from benchmarks.performance.rows import Reach, Row
from benchmarks.performance.systems import OURS, PATIENCE, Apidesk, System, ask, is_peer, title

CLIENTS = 64

THROUGHPUT = Reach(1.5, at_least=True)

LAG = "apidesk_event_loop_lag_seconds"
LAG_SHARE = 0.99

_BUCKET = re.compile(rf'^{LAG}_bucket{{.*?le="([^"]+)".*}} (\S+)$', re.MULTILINE)

Rates = defaultdict[str, list[float]]
"""Questions a second in each round, by system."""


@dataclass
class Load:
    """What each system could take from so many clients in one process."""

    at_once: Rates = field(default_factory=lambda: defaultdict(list))
    fixed: Rates = field(default_factory=lambda: defaultdict(list))
    lag: dict[str, float] = field(default_factory=dict)
    """Seconds by which our event loop was late at most in 99 of 100 looks, where it says so."""

    def rows(self) -> Iterator[Row]:
        """What was promised of many clients."""
        for name in OURS.values():
            yield self._row(name, "models of 0 ms", self.at_once)
        for name in OURS.values():
            yield self._row(name, "models at their pace", self.fixed, None)

    def _row(self, name: str, what: str, rates: Rates, reach: Reach | None = THROUGHPUT) -> Row:
        said = f"{CLIENTS} clients, {what}, {name.removeprefix('apidesk, ')}"
        mine = p50(rates[name])
        others = [(p50(rates[each]), each) for each in rates if is_peer(each)]
        if not others:
            return Row(said, f"{mine:.1f} a second", "no peer measured", None, reach)
        theirs, best = max(others)
        return Row(
            said, f"{mine:.1f} a second", f"{title(best)} {theirs:.1f}", mine / theirs, reach
        )


def measure(systems: Sequence[System], model: Model, rounds: int, questions: int) -> Load:
    """Let `CLIENTS` ask each of `systems` so many questions, in turns, and once at the model's pace."""
    return asyncio.run(_measure(systems, model, rounds, questions))


async def _measure(systems: Sequence[System], model: Model, rounds: int, questions: int) -> Load:
    found, asked = Load(), on_topic()
    limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE, limits=limits) as http:
        model.set_pace(AT_ONCE)
        for _, system in in_turns(systems, rounds):
            before = await _lags(http, system)
            found.at_once[system.name].append(await _rate(http, system, asked, questions))
            if lag := late(before, await _lags(http, system)):
                found.lag[system.name] = lag
            model.seen()  # else it remembers them all
        model.set_pace(FIXED)
        for system in systems:
            found.fixed[system.name].append(await _rate(http, system, asked, questions))
    return found


async def _rate(
    http: httpx.AsyncClient, system: System, asked: Iterator[str], questions: int
) -> float:
    """Questions a second, from the first one asked to the last one answered."""
    mine = iter([next(asked) for _ in range(questions)])

    async def client() -> None:
        for question in mine:
            await ask(http, system, question)

    began = time.monotonic()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return questions / (time.monotonic() - began)


Buckets = dict[float, float]
"""How many looks found the event loop at most so late, by seconds."""


async def _lags(http: httpx.AsyncClient, system: System) -> Buckets:
    if not isinstance(system, Apidesk):
        return {}
    return buckets((await http.get(f"{system.server}/metrics")).text)


def buckets(metrics: str) -> Buckets:
    """The buckets of the event loop's lag in what `/metrics` says; none where it does not."""
    return {float(bound): float(count) for bound, count in _BUCKET.findall(metrics)}


def late(before: Buckets, after: Buckets, share: float = LAG_SHARE) -> float | None:
    """The bound that so many looks between the two did not exceed; None where none was taken."""
    counts = {bound: after[bound] - before.get(bound, 0.0) for bound in sorted(after)}
    looks = max(counts.values(), default=0.0)
    return next((b for b, count in counts.items() if looks and count >= share * looks), None)
