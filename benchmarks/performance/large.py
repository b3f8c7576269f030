"""Measures questions with a model over the documentation of a large platform."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environment import Name, start_peer
from benchmarks.performance import end_to_end, growth, load
from benchmarks.performance.effort import Effort
from benchmarks.performance.end_to_end import FULL_TEXT, HYBRID, EndToEnd
from benchmarks.performance.load import Load
from benchmarks.performance.model_process import Model
from benchmarks.performance.passages import Passages, passages_of
from benchmarks.performance.rows import Row, Target
from benchmarks.performance.systems import System, running_apidesk

OVERHEAD = Target(0.3)
THROUGHPUT = Target(5, at_least=True)


@dataclass(frozen=True)
class Large:
    """The results for one size of the documentation."""

    chunks: int
    alone: EndToEnd
    load: Load
    """The throughput of apidesk and the fastest peer."""

    def rows(self) -> Iterator[Row]:
        """Return the rows of the speed targets for large platforms."""
        size = f"{self.chunks:,} chunks"
        for name in (HYBRID, FULL_TEXT):
            outside = self.alone.outside
            yield self.alone.overhead(name, f"outside model calls, {size}", outside, OVERHEAD)
        for name in (HYBRID, FULL_TEXT):
            yield self.load.row(
                name, f"models of 0 ms, {size}", self.load.without_latency, THROUGHPUT
            )


def measure(model: Model, folder: Path, effort: Effort, peers: tuple[Name, ...]) -> Large:
    """Ask apidesk and `peers` about the largest corpus in `folder`, which is written if it is missing.

    Both of apidesk's servers use the corpus's embeddings, but the second one searches full text only.
    """
    sections = max(effort.growth)
    corpus = folder / str(sections)
    platform = growth.indexed_platform(model, corpus, sections)
    passages = passages_of(platform, folder / "large.jsonl")
    with ExitStack() as stack:
        systems: list[System] = [*_ours(stack, corpus, passages, model)]
        systems += [
            stack.enter_context(start_peer(name, passages.file, model.base_url)) for name in peers
        ]
        alone = end_to_end.measure(systems, model, effort.large_rounds, effort.large_rounds)
        fastest = alone.fastest_peer(alone.without_latency)
        loaded = [
            s for s in systems if fastest is None or s.name in (HYBRID, FULL_TEXT, fastest[0])
        ]
        return Large(
            passages.count, alone, load.measure(loaded, model, 1, effort.large_load_questions)
        )


def _ours(stack: ExitStack, corpus: Path, passages: Passages, model: Model) -> Iterator[System]:
    copy = shutil.copytree(corpus, corpus.with_name("large-copy"))
    yield stack.enter_context(running_apidesk(HYBRID, corpus, passages, model))
    yield stack.enter_context(
        running_apidesk(FULL_TEXT, copy, passages, model, APIDESK_RETRIEVAL="full_text")
    )
