"""Measures `/retrieve` of apidesk and of full-text retrievers of other frameworks, with the same passages.

Each system is a process, and all are asked the same questions in turns.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from benchmarks.peers.environment import RETRIEVERS, Name, start_peer
from benchmarks.performance.passages import passages_of
from benchmarks.performance.rounds import in_turns
from benchmarks.process_cpu import cpu_seconds
from benchmarks.process_memory import resident
from benchmarks.scale.corpus import questions
from benchmarks.scale.effort import Effort
from benchmarks.scale.servers import (
    QUESTION_PAGES,
    Serving,
    running,
    seconds_one_at_a_time,
)
from benchmarks.scale.stores import Store

TITLES: dict[Name, str] = {
    "haystack_retriever": "Haystack, InMemoryBM25Retriever",
    "langchain_retriever": "LangChain, BM25Retriever (rank_bm25)",
    "llama_index_retriever": "LlamaIndex, BM25Retriever (bm25s)",
}


@dataclass
class SystemRetrieval:
    """A running system, and its results; seconds and MB."""

    title: str
    url: str
    pid: int
    ready_cpu: float
    """CPU seconds of a start; for a peer, this includes indexing the passages."""
    retrieve: list[float] = field(default_factory=list)
    """Seconds of each question to `/retrieve`."""
    resident_mb: float = 0.0


def measure_retrieval(store: Store, effort: Effort) -> list[SystemRetrieval]:
    """Measure apidesk with `store`, and each peer with its passages. Raises PeerFailed.

    apidesk is the first result.
    """
    passages = passages_of(store.platform, store.folder / "passages.jsonl")
    texts = questions(QUESTION_PAGES)
    warm_up = list(islice(texts, effort.warm_up))
    rounds = [list(islice(texts, effort.retrieved)) for _ in range(effort.rounds)]
    with ExitStack() as stack:
        systems = [
            stack.enter_context(_apidesk(store)),
            *(stack.enter_context(_peer(name, passages.file)) for name in RETRIEVERS),
        ]
        for system in systems:
            asyncio.run(seconds_one_at_a_time(system.url, warm_up))
        for number, system in in_turns(systems, effort.rounds):
            system.retrieve += asyncio.run(seconds_one_at_a_time(system.url, rounds[number]))
        for system in systems:
            system.resident_mb = resident(system.pid)
    return systems


@contextmanager
def _apidesk(store: Store) -> Iterator[SystemRetrieval]:
    with running(Serving(store, workers=1)) as server:
        url = f"{server.url}/retrieve"
        yield SystemRetrieval("apidesk", url, server.pid, cpu_seconds(server.pid))


@contextmanager
def _peer(name: Name, passages: Path) -> Iterator[SystemRetrieval]:
    with start_peer(name, passages) as peer:
        yield SystemRetrieval(TITLES[name], peer.url, peer.pid, cpu_seconds(peer.pid))
