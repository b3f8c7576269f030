"""Measures the memory of servers with the same documents: apidesk and peers."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.peers.environment import Name, start_peer
from benchmarks.performance.calls import NO_LATENCY
from benchmarks.performance.model_process import Model
from benchmarks.performance.passages import Passages
from benchmarks.performance.questions import on_topic
from benchmarks.performance.rows import Row, Target
from benchmarks.performance.systems import TIMEOUT_S, System, ask, running_apidesk, title
from benchmarks.process_memory import family, proportional, resident
from tests.milvus_server import MilvusServer

EMBEDDED, SERVED = "apidesk, embedded", "apidesk, Milvus server"

TARGETS = {EMBEDDED: Target(1.9), SERVED: Target(1.6)}

HAYHOOKS: tuple[Name, ...] = ("haystack_bm25", "haystack_dense")
"""The peers that Hayhooks serves."""


@dataclass(frozen=True)
class MemoryUse:
    """Memory of a process and its children, in MB."""

    resident: float
    proportional: float
    """Proportional set size (PSS)."""


@dataclass
class Memory:
    """Memory by system."""

    weights: dict[str, MemoryUse] = field(default_factory=dict)

    def rows(self) -> Iterator[Row]:
        """Return the rows of the memory targets, compared with the smaller of the two Hayhooks peers."""
        theirs = [(self.weights[name].resident, name) for name in HAYHOOKS if name in self.weights]
        for name, target in TARGETS.items():
            mine, what = self.weights[name].resident, f"resident memory, {name}"
            if theirs:
                least, peer = min(theirs)
                against = f"{title(peer)} {least:.0f} MB"
                yield Row(what, f"{mine:.0f} MB", against, mine / least, target)
            else:
                yield Row(what, f"{mine:.0f} MB", "Hayhooks not measured", None, target)


def measure(
    samples: Passages, model: Model, folder: Path, questions: int, peers: tuple[Name, ...]
) -> Memory:
    """Start each system with `samples`, ask questions, and measure its memory."""
    model.set_pace(NO_LATENCY)
    found = Memory()
    embedded = running_apidesk(EMBEDDED, folder / "embedded", samples, model)
    found.weights[EMBEDDED] = _measure(embedded, questions)
    with MilvusServer(folder / "served") as milvus:
        served = running_apidesk(
            SERVED, folder / "serving", samples, model, APIDESK_MILVUS_URI=milvus.uri
        )
        found.weights[SERVED] = _measure(served, questions)
    for name in HAYHOOKS:
        if name in peers:
            started = start_peer(name, samples.file, model.base_url)
            found.weights[name] = _measure(started, questions)
    return found


def _measure(starting: AbstractContextManager[System], questions: int) -> MemoryUse:
    with starting as system:
        asyncio.run(_ask(system, questions))
        processes = family(system.pid)
        return MemoryUse(sum(map(resident, processes)), sum(map(proportional, processes)))


async def _ask(system: System, questions: int) -> None:
    asked = on_topic()
    async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S) as http:
        for _ in range(questions):
            await ask(http, system, next(asked))
