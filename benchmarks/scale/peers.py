"""Measures full-text retrievers of other frameworks with the same passages, each in its own process."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environment import RETRIEVERS, Name, start_peer
from benchmarks.performance.passages import passages_of
from benchmarks.process_cpu import cpu_seconds
from benchmarks.process_memory import resident
from benchmarks.scale.effort import Effort
from benchmarks.scale.servers import retrieval_questions, seconds_one_at_a_time
from benchmarks.scale.stores import Store

TITLES: dict[Name, str] = {
    "haystack_retriever": "Haystack, InMemoryBM25Retriever",
    "langchain_retriever": "LangChain, BM25Retriever (rank_bm25)",
    "llama_index_retriever": "LlamaIndex, BM25Retriever (bm25s)",
}


@dataclass(frozen=True)
class PeerRetrieval:
    """The results of a peer."""

    name: Name
    ready_cpu: float
    """CPU seconds of a start, which indexes the passages."""
    retrieve: list[float]
    """Seconds of each question to `/retrieve`."""
    resident_mb: float


def measure_peers(store: Store, effort: Effort) -> list[PeerRetrieval]:
    """Measure each peer with the passages of `store`. Raises PeerFailed."""
    passages = passages_of(store.platform, store.folder / "passages.jsonl")
    return [_measure(name, passages.file, effort) for name in RETRIEVERS]


def _measure(name: Name, passages: Path, effort: Effort) -> PeerRetrieval:
    texts = retrieval_questions(effort)
    with start_peer(name, passages) as peer:
        ready_cpu = cpu_seconds(peer.pid)
        asyncio.run(seconds_one_at_a_time(peer.url, texts[: effort.warm_up]))
        seconds = asyncio.run(seconds_one_at_a_time(peer.url, texts))
        return PeerRetrieval(name, ready_cpu, seconds, resident(peer.pid))
