"""Measures a first ingestion run and a run without changes, with 30 ms per embedding request."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks.fresh_process import in_fresh_process
from benchmarks.peers.environment import INGESTING, Name, ingest
from benchmarks.performance.calls import FIXED
from benchmarks.performance.model_process import Model
from benchmarks.performance.passages import Passages, chunks_of
from benchmarks.performance.rounds import in_turns, p50
from benchmarks.performance.rows import Row, Target
from benchmarks.performance.systems import title
from ingestion.embeddings import open_embeddings
from ingestion.job import IngestionJob
from ingestion.store.collection import Collection
from ingestion.store.schema import searchable_text
from schemas.settings import Settings, read_settings

NAIVE_CHUNKS = 300
"""Number of chunks for the naive loop, whose rate does not depend on their number."""

OURS, NAIVE = "apidesk", "naive loop"

NAIVE_RATE, BEST_RATE = Target(15, True), Target(1.0, True)
"""Target ratios of the chunks per second in first runs: apidesk to the naive loop, and to the best peer."""

AGAIN = Target(0.02)
NO_REQUEST = Target(0)


class Indexed(NamedTuple):
    """The seconds to index documents, and to index them again without changes."""

    chunks: int
    first: float
    requests: int
    """Embedding requests in the first run; for peers, in both runs."""
    again: float | None = None
    """Seconds of a second run in the same process; None if there was none."""
    in_new_process: float | None = None
    """Seconds of a run in a new process; None if there was none."""
    requests_again: int | None = None
    """Embedding requests of all runs but the first."""

    @property
    def rate(self) -> float:
        """Chunks per second in the first run."""
        return self.chunks / self.first


@dataclass
class Ingestion:
    """The runs of each system, one per round."""

    runs: defaultdict[str, list[Indexed]] = field(default_factory=lambda: defaultdict(list))

    def rate(self, name: str) -> float:
        """Return the chunks per second in first runs of a system."""
        return p50([run.rate for run in self.runs[name]])

    def again(self, name: str) -> float | None:
        """Return the median duration of a second run relative to the first; None without a second run."""
        ratios = [run.again / run.first for run in self.runs[name] if run.again is not None]
        return p50(ratios) if ratios else None

    def rows(self) -> Iterator[Row]:
        """Return the rows of the speed targets for indexing."""
        mine, what = self.rate(OURS), "ingestion, first run, chunks a second"
        best = max((name for name in INGESTING if name in self.runs), key=self.rate, default=None)
        for name, target in ((NAIVE, NAIVE_RATE), (best, BEST_RATE)):
            if name is None:
                yield Row(what, f"{mine:,.0f}", "no peer measured", None, target)
            else:
                theirs = self.rate(name)
                yield Row(
                    what, f"{mine:,.0f}", f"{title(name)} {theirs:,.0f}", mine / theirs, target
                )
        again = p50([run.again or 0.0 for run in self.runs[OURS]])
        first = p50([run.first for run in self.runs[OURS]])
        yield Row(
            "ingestion, second run", f"{again:.3f} s", f"first run {first:.3f} s",
            self.again(OURS), AGAIN,
        )  # fmt: skip
        later = p50([run.in_new_process or 0.0 for run in self.runs[OURS]])
        yield Row(
            "ingestion, second run, in a new process", f"{later:.3f} s", f"first run {first:.3f} s",
            later / first,
        )  # fmt: skip
        requests = max(run.requests_again or 0 for run in self.runs[OURS])
        yield Row("embedding requests of the second run", str(requests), "", requests, NO_REQUEST)


def measure(
    passages: Passages, model: Model, folder: Path, rounds: int, peers: tuple[Name, ...]
) -> Ingestion:
    """Index `passages` with each system in turns, each time into an empty store in `folder`."""
    found = Ingestion()
    model.set_pace(FIXED)
    ways: dict[str, Callable[[Path], Indexed]] = {
        OURS: lambda store: _ours(settings_of(store, passages.platform, model), model),
        NAIVE: lambda store: _naive(settings_of(store, passages.platform, model)),
    }
    for peer in [name for name in INGESTING if name in peers]:
        ways[peer] = partial(_peer, peer, passages, model)
    for number, (name, index) in in_turns(list(ways.items()), rounds):
        store = folder / f"{name}-{number}"
        store.mkdir(parents=True)
        found.runs[name].append(index(store))
    return found


def settings_of(folder: Path, platform: Path, model: Model) -> Settings:
    """Return settings with an embedded store in `folder` and the scripted embedding."""
    return read_settings(
        milvus_uri=str(folder / "milvus.db"),
        database_url=f"sqlite:///{folder / 'apidesk.db'}",
        platform=platform,
        embedding_model="openai:scripted-embedding",
        embedding_base_url=model.base_url,
        embedding_api_key="none",
    )


def _ours(settings: Settings, model: Model) -> Indexed:
    """Run the ingestion job twice in one process, as a server does, and once in a new process."""
    model.seen()
    twice = in_fresh_process(partial(_twice, settings, model))
    _, later = in_fresh_process(partial(_timed, job, settings))
    requests = (twice.requests_again or 0) + model.seen().count("embedding")
    return twice._replace(in_new_process=later, requests_again=requests)


def _naive(settings: Settings) -> Indexed:
    chunks, seconds = in_fresh_process(partial(_timed, naive, settings))
    return Indexed(chunks, seconds, chunks)


def _peer(name: Name, passages: Passages, model: Model, _: Path) -> Indexed:
    model.seen()
    ingested = ingest(name, passages.file, model.base_url)
    requests = model.seen().count("embedding")
    return Indexed(ingested.chunks, ingested.first, requests, ingested.second)


def job(settings: Settings) -> int:
    """Run the ingestion job; return the number of chunks."""
    return _run(IngestionJob.connect(settings))


def _run(ingestion: IngestionJob) -> int:
    return ingestion.run(ingestion.new_run("command")).sources[0].chunks


def _twice(settings: Settings, model: Model) -> Indexed:
    """Open an empty store, run a job on it, and run the job again."""
    import_everything()
    began = time.perf_counter()
    ingestion = IngestionJob.connect(settings)
    chunks = _run(ingestion)
    first, requests = time.perf_counter() - began, model.seen().count("embedding")
    began = time.perf_counter()
    _run(ingestion)
    again, requests_again = time.perf_counter() - began, model.seen().count("embedding")
    ingestion.close()
    return Indexed(chunks, first, requests, again, requests_again=requests_again)


def naive(settings: Settings) -> int:
    """Embed and insert one chunk at a time, as a simple script does; return the number of chunks."""
    collection, model = Collection.connect(settings), open_embeddings(settings)
    assert model is not None
    writer = collection.writer(rebuild=True)
    chunks = list(islice(chunks_of(settings.platform), NAIVE_CHUNKS))
    for chunk in chunks:
        writer.put([chunk], model.embed_documents([searchable_text(chunk)]))
    writer.finish(())
    collection.load()
    return len(chunks)


def _timed(index: Callable[[Settings], int], settings: Settings) -> tuple[int, float]:
    """Return the number of chunks that `index` returns and its seconds, without the time of imports."""
    import_everything()
    began = time.perf_counter()
    chunks = index(settings)
    return chunks, time.perf_counter() - began


def import_everything() -> None:
    """Import the modules and word lists that indexing loads lazily."""
    import langchain.embeddings
    import langchain_openai
    import milvus_lite.adapter.grpc.server  # type: ignore[import-untyped]
    import pymilvus
    import rjieba

    from ingestion.text.language import zipf_frequency

    zipf_frequency("word")
    _ = (langchain.embeddings, langchain_openai, milvus_lite.adapter, pymilvus, rjieba)
