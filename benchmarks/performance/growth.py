"""Measures retrieval in an embedded store of growing size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.corpus import write_corpus
from benchmarks.fresh_process import in_fresh_process
from benchmarks.performance.calls import NO_LATENCY
from benchmarks.performance.ingestion import job, settings_of
from benchmarks.performance.model_process import Model
from benchmarks.performance.questions import distinct_questions
from benchmarks.performance.rounds import p50, p95
from benchmarks.performance.rows import Row, milliseconds
from benchmarks.retrieval_speed import times_of

ROUTES = ("full_text", "hybrid")

SLOW_S = 0.1
"""Median seconds of a retrieval above which a Milvus server is recommended.

This is half of the time to the first token.
"""


@dataclass(frozen=True)
class Grown:
    """Median and 95th percentile, in seconds, of retrieval from one store by one route."""

    route: str
    chunks: int
    p50: float
    p95: float


@dataclass(frozen=True)
class Growth:
    """Results by route, smallest store first."""

    grown: tuple[Grown, ...]

    def largest(self, route: str) -> int:
        """Return the size in chunks of the largest store that is fast enough by a route; 0 if none is."""
        return max(
            (e.chunks for e in self.grown if e.route == route and e.p50 <= SLOW_S), default=0
        )

    @property
    def routes(self) -> list[str]:
        """The routes."""
        return list(dict.fromkeys(each.route for each in self.grown))

    def rows(self) -> Iterator[Row]:
        """Return the rows of the report on growth."""
        for route in self.routes:
            mine = [each for each in self.grown if each.route == route]
            counts = " / ".join(f"{each.chunks:,}" for each in mine)
            times = " / ".join(milliseconds(each.p50) for each in mine)
            factor = mine[-1].p50 / mine[0].p50
            yield Row(f"retrieval p50, {route}, {counts} chunks", times, "the smallest", factor)


def measure(model: Model, folder: Path, sections: Sequence[int]) -> Growth:
    """Index a corpus of each size, and measure each route in a new process."""
    model.set_pace(NO_LATENCY)
    return Growth(tuple(each for count in sections for each in _grown(model, folder, count)))


def indexed_platform(model: Model, folder: Path, sections: int) -> Path:
    """Return the platform.toml of a corpus in `folder`; write and index the corpus if it is missing."""
    platform = folder / "platform.toml"
    if not platform.exists():
        write_corpus(folder, sections)
        in_fresh_process(partial(job, settings_of(folder, platform, model)))
    return platform


def _grown(model: Model, folder: Path, sections: int) -> Iterator[Grown]:
    corpus = folder / str(sections)
    platform = indexed_platform(model, corpus, sections)
    settings = settings_of(corpus, platform, model)
    # The corpus is indexed already, so this run only returns the number of chunks.
    chunks = in_fresh_process(partial(job, settings))
    for route in ROUTES:
        chosen = settings.model_copy(update={"retrieval": route})
        times = in_fresh_process(partial(times_of, chosen, distinct_questions()))
        seconds = [milliseconds / 1000 for milliseconds in times]
        yield Grown(route.replace("_", " "), chunks, p50(seconds), p95(seconds))
