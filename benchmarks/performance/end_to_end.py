"""One question at a time: what of its time is not the model's, and how soon something is said."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import httpx

from benchmarks.performance.calls import AT_ONCE, FIXED, outside
from benchmarks.performance.model_process import Model, Seen
from benchmarks.performance.questions import off_topic, on_topic
from benchmarks.performance.rounds import in_turns, p50
from benchmarks.performance.rows import Reach, Row, milliseconds
from benchmarks.performance.systems import OURS, PATIENCE, System, ask, is_peer, title

WARM_UP = 3
"""Questions that a system is asked before any counts."""

HYBRID, FULL_TEXT = OURS[True], OURS[False]

OVERHEAD = Reach(0.8)
WHOLE = Reach(1.05)
FIRST_STEP = Reach(0.5)
CACHED = Reach(0.02)

Seconds = defaultdict[str, list[float]]
"""What each question took, by system."""


@dataclass
class EndToEnd:
    """Seconds, question by question; with the model at its pace, but for `at_once`."""

    outside: Seconds = field(default_factory=lambda: defaultdict(list))
    """During which no call of a model was under way."""
    whole: Seconds = field(default_factory=lambda: defaultdict(list))
    """From question to answer."""
    calls: dict[str, Counter[str]] = field(default_factory=dict)
    """What a question about the platform asks of models, by kind."""
    at_once: Seconds = field(default_factory=lambda: defaultdict(list))
    """From question to answer, the model taking no time."""
    calls_alone: list[float] = field(default_factory=list)
    """The two calls that an answer of ours takes, one after the other."""
    refused: list[float] = field(default_factory=list)
    """From a question that is off-topic to its answer."""
    first_call_alone: list[float] = field(default_factory=list)
    first_step: list[float] = field(default_factory=list)
    """Until the first step of an answer in events."""
    again: list[float] = field(default_factory=list)
    """The same question a second time."""

    def fastest_peer(self, seconds: Seconds) -> tuple[str, float] | None:
        """The name and the median of the peer that takes least; None without a peer."""
        medians = [(p50(seconds[name]), name) for name in seconds if is_peer(name)]
        return (min(medians)[1], min(medians)[0]) if medians else None

    def rows(self) -> Iterator[Row]:
        """What was promised of single questions."""
        for name in (HYBRID, FULL_TEXT):
            yield self._overhead(name, "outside model calls", self.outside)
        for name in (HYBRID, FULL_TEXT):
            yield self._overhead(name, "with models of 0 ms", self.at_once)
        whole, both, first = self.whole[HYBRID], "its two model calls alone", "its first one alone"
        yield _compared("end to end, on-topic", whole, both, self.calls_alone, WHOLE)
        yield _compared("end to end, off-topic", self.refused, first, self.first_call_alone, WHOLE)
        yield _compared("first grounded step", self.first_step, "all at once", whole, FIRST_STEP)
        yield _compared("the same question again", self.again, "first time", whole, CACHED)

    def _overhead(self, name: str, what: str, seconds: Seconds) -> Row:
        ours, peer = p50(seconds[name]), self.fastest_peer(seconds)
        said = f"{what}, {name.removeprefix('apidesk, ')}"
        if peer is None:
            return Row(said, milliseconds(ours), "no peer measured", None, OVERHEAD)
        against = f"{title(peer[0])} {milliseconds(peer[1])}"
        return Row(said, milliseconds(ours), against, ours / peer[1], OVERHEAD)


def _compared(
    what: str, ours: Sequence[float], name: str, other: Sequence[float], reach: Reach
) -> Row:
    mine, theirs = p50(ours), p50(other)
    against = f"{name} {milliseconds(theirs)}"
    return Row(what, milliseconds(mine), against, mine / theirs, reach)


def measure(systems: Sequence[System], model: Model, rounds: int, rounds_at_once: int) -> EndToEnd:
    """Ask each of `systems` in turns; the first one is ours, hybrid."""
    return asyncio.run(_measure(systems, model, rounds, rounds_at_once))


async def _measure(
    systems: Sequence[System], model: Model, rounds: int, rounds_at_once: int
) -> EndToEnd:
    found = EndToEnd()
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as http:
        asker = _Asker(http, model, found)
        model.set_pace(AT_ONCE)
        for _, system in in_turns(systems, WARM_UP):
            await ask(http, system, next(asker.questions))
        model.set_pace(FIXED)
        for _, system in in_turns(systems, rounds):
            asked = await asker.ask_once(system)
            if system is systems[0]:
                await asker.ask_ours(system, asked)
        model.set_pace(AT_ONCE)
        for _, system in in_turns(systems, rounds_at_once):
            found.at_once[system.name].append(await asker.timed(system, next(asker.questions)))
    return found


class _Asked(NamedTuple):
    """A question, and what models were asked for it."""

    question: str
    seen: Seen


class _Asker:
    """Asks, and notes what it took."""

    def __init__(self, http: httpx.AsyncClient, model: Model, found: EndToEnd) -> None:
        self._http = http
        self._model = model
        self._found = found
        self.questions = on_topic()
        self._off_topic = off_topic()

    async def timed(self, system: System, question: str) -> float:
        """Seconds until the answer to a question."""
        began = time.monotonic()
        await ask(self._http, system, question)
        return time.monotonic() - began

    async def ask_once(self, system: System) -> _Asked:
        """A question about the platform, to any system."""
        self._model.seen()
        question, began = next(self.questions), time.monotonic()
        seconds = await self.timed(system, question)
        seen = self._model.seen()
        self._found.whole[system.name].append(seconds)
        self._found.outside[system.name].append(outside(began, began + seconds, seen.calls))
        self._found.calls[system.name] = Counter(call.kind for call in seen.calls)
        return _Asked(question, seen)

    async def ask_ours(self, system: System, asked: _Asked) -> None:
        """What else is promised of our own answers, beside what that is compared with."""
        calls = [await self._alone(asked.seen, kind) for kind in ("classification", "answer")]
        self._found.calls_alone.append(sum(calls))
        self._found.again.append(await self.timed(system, asked.question))
        self._found.refused.append(await self.timed(system, next(self._off_topic)))
        alone = await self._alone(self._model.seen(), "classification")
        self._found.first_call_alone.append(alone)
        self._found.first_step.append(await self._first_step(system, next(self.questions)))

    async def _alone(self, seen: Seen, kind: str) -> float:
        """Seconds that the last call of a kind takes by itself, its body sent as it was."""
        began = time.monotonic()
        url, body = f"{self._model.base_url}/chat/completions", seen.bodies[kind]
        headers = {"Content-Type": "application/json"}
        (await self._http.post(url, content=body, headers=headers)).raise_for_status()
        return time.monotonic() - began

    async def _first_step(self, system: System, question: str) -> float:
        """Seconds until the first step of an answer that comes as events; it is read to its end."""
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
