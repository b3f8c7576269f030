"""Measures questions one at a time: their time outside model calls, and the time to the first step."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import httpx

from benchmarks.performance.calls import FIXED, NO_LATENCY, seconds_outside_calls
from benchmarks.performance.model_process import Model, Seen
from benchmarks.performance.questions import off_topic, on_topic
from benchmarks.performance.rounds import in_turns, p50
from benchmarks.performance.rows import Row, Target, milliseconds
from benchmarks.performance.systems import OURS, TIMEOUT_S, System, ask, is_peer, title

WARM_UP = 3
"""Number of unmeasured questions per system."""

HYBRID, FULL_TEXT = OURS[True], OURS[False]

OVERHEAD = {HYBRID: Target(0.9), FULL_TEXT: Target(0.8)}
WHOLE = Target(1.05)
FIRST_STEP = Target(0.5)
CACHED = Target(0.02)

Seconds = defaultdict[str, list[float]]
"""Seconds per question, by system."""


@dataclass
class EndToEnd:
    """Seconds per question, with model latency except in `without_latency`."""

    outside: Seconds = field(default_factory=lambda: defaultdict(list))
    """Seconds of a question outside model calls."""
    whole: Seconds = field(default_factory=lambda: defaultdict(list))
    """Seconds from question to answer."""
    calls: dict[str, Counter[str]] = field(default_factory=dict)
    """Number of model calls per question about the platform, by kind."""
    without_latency: Seconds = field(default_factory=lambda: defaultdict(list))
    """Seconds from question to answer without model latency."""
    calls_alone: list[float] = field(default_factory=list)
    """Seconds of the two model calls of apidesk's answer, repeated one after the other."""
    refused: list[float] = field(default_factory=list)
    """Seconds from an off-topic question to its answer."""
    first_call_alone: list[float] = field(default_factory=list)
    """Seconds of the classification of an off-topic question, repeated alone."""
    first_step: list[float] = field(default_factory=list)
    """Seconds from a question to the first step of the streamed answer."""
    again: list[float] = field(default_factory=list)
    """Seconds of a repeated question."""

    def fastest_peer(self, seconds: Seconds) -> tuple[str, float] | None:
        """Return the name and the median of the fastest peer; None if no peer was measured."""
        medians = [(p50(seconds[name]), name) for name in seconds if is_peer(name)]
        return (min(medians)[1], min(medians)[0]) if medians else None

    def rows(self) -> Iterator[Row]:
        """Return the rows of the speed targets for single questions."""
        for name, target in OVERHEAD.items():
            yield self.overhead(name, "outside model calls", self.outside, target)
        for name, target in OVERHEAD.items():
            yield self.overhead(name, "with models of 0 ms", self.without_latency, target)
        whole, both, first = self.whole[HYBRID], "its two model calls alone", "its first call alone"
        yield _compared("end to end, on-topic", whole, both, self.calls_alone, WHOLE)
        yield _compared("end to end, off-topic", self.refused, first, self.first_call_alone, WHOLE)
        yield _compared("first grounded step", self.first_step, "whole answer", whole, FIRST_STEP)
        yield _compared("the same question again", self.again, "first time", whole, CACHED)

    def overhead(self, name: str, what: str, seconds: Seconds, target: Target) -> Row:
        """Return the row that compares the median of `name`, one of `OURS`, with the fastest peer's."""
        ours, peer = p50(seconds[name]), self.fastest_peer(seconds)
        label = f"{what}, {name.removeprefix('apidesk, ')}"
        if peer is None:
            return Row(label, milliseconds(ours), "no peer measured", None, target)
        against = f"{title(peer[0])} {milliseconds(peer[1])}"
        return Row(label, milliseconds(ours), against, ours / peer[1], target)


def _compared(
    what: str, ours: Sequence[float], name: str, other: Sequence[float], target: Target
) -> Row:
    mine, theirs = p50(ours), p50(other)
    against = f"{name} {milliseconds(theirs)}"
    return Row(what, milliseconds(mine), against, mine / theirs, target)


def measure(systems: Sequence[System], model: Model, rounds: int, rounds_at_once: int) -> EndToEnd:
    """Measure `systems` in turns; the first one must be apidesk with hybrid retrieval."""
    return asyncio.run(_measure(systems, model, rounds, rounds_at_once))


async def _measure(
    systems: Sequence[System], model: Model, rounds: int, rounds_at_once: int
) -> EndToEnd:
    found = EndToEnd()
    async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S) as http:
        asker = _Asker(http, model, found)
        model.set_pace(NO_LATENCY)
        for _, system in in_turns(systems, WARM_UP):
            await ask(http, system, next(asker.questions))
        model.set_pace(FIXED)
        for _, system in in_turns(systems, rounds):
            asked = await asker.ask_once(system)
            if system is systems[0]:
                await asker.ask_ours(system, asked)
        model.set_pace(NO_LATENCY)
        for _, system in in_turns(systems, rounds_at_once):
            found.without_latency[system.name].append(
                await asker.timed(system, next(asker.questions))
            )
    return found


class _AskedQuestion(NamedTuple):
    """A question and its model calls."""

    question: str
    seen: Seen


class _Asker:
    """Asks questions and records the times."""

    def __init__(self, http: httpx.AsyncClient, model: Model, found: EndToEnd) -> None:
        self._http = http
        self._model = model
        self._found = found
        self.questions = on_topic()
        self._off_topic = off_topic()

    async def timed(self, system: System, question: str) -> float:
        """Return the seconds until the answer to a question."""
        began = time.monotonic()
        await ask(self._http, system, question)
        return time.monotonic() - began

    async def ask_once(self, system: System) -> _AskedQuestion:
        """Ask a system a question about the platform."""
        self._model.seen()
        question, began = next(self.questions), time.monotonic()
        seconds = await self.timed(system, question)
        seen = self._model.seen()
        self._found.whole[system.name].append(seconds)
        self._found.outside[system.name].append(
            seconds_outside_calls(began, began + seconds, seen.calls)
        )
        self._found.calls[system.name] = Counter(call.kind for call in seen.calls)
        return _AskedQuestion(question, seen)

    async def ask_ours(self, system: System, asked: _AskedQuestion) -> None:
        """Measure the targets that only apply to apidesk, and what they are compared with."""
        calls = [await self._alone(asked.seen, kind) for kind in ("classification", "answer")]
        self._found.calls_alone.append(sum(calls))
        self._found.again.append(await self.timed(system, asked.question))
        self._found.refused.append(await self.timed(system, next(self._off_topic)))
        alone = await self._alone(self._model.seen(), "classification")
        self._found.first_call_alone.append(alone)
        self._found.first_step.append(await self._first_step(system, next(self.questions)))

    async def _alone(self, seen: Seen, kind: str) -> float:
        """Repeat the last model call of a kind, and return its seconds."""
        began = time.monotonic()
        url, body = f"{self._model.base_url}/chat/completions", seen.bodies[kind]
        headers = {"Content-Type": "application/json"}
        (await self._http.post(url, content=body, headers=headers)).raise_for_status()
        return time.monotonic() - began

    async def _first_step(self, system: System, question: str) -> float:
        """Read a streamed answer to its end, and return the seconds until its first step."""
        began, first = time.monotonic(), None
        async with self._http.stream(
            "POST",
            system.url,
            json=system.payload(question),
            headers={"Accept": "text/event-stream"},
        ) as response:
            async for line in response.aiter_lines():
                if first is None and line.strip() == "event: step":
                    first = time.monotonic() - began
        if first is None:
            raise ValueError(f"{system.name}: an answer without a step")
        return first
