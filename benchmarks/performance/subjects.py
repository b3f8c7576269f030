"""The subjects of the benchmark, each with its own processes and store."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environment import Name
from benchmarks.performance import end_to_end, growth, ingestion, large, load, memory, start
from benchmarks.performance.effort import Effort
from benchmarks.performance.model_process import Model, running_model
from benchmarks.performance.passages import Passages, corpus_passages, passages_of
from benchmarks.performance.report import Result
from benchmarks.performance.systems import running_systems
from schemas.settings import SAMPLE_PLATFORM


@dataclass(frozen=True)
class Site:
    """The shared resources of a measurement."""

    folder: Path
    effort: Effort
    model: Model
    peers: tuple[Name, ...]
    corpus: Passages
    samples: Passages


@contextmanager
def site(effort: Effort, peers: tuple[Name, ...]) -> Iterator[Site]:
    """Start a model server, and write the passages that all systems index."""
    with tempfile.TemporaryDirectory() as name, running_model() as model:
        folder = Path(name)
        corpus = corpus_passages(folder / "corpus", effort.sections)
        samples = passages_of(SAMPLE_PLATFORM, folder / "samples.jsonl")
        yield Site(folder, effort, model, peers, corpus, samples)


def questions(site: Site) -> Result:
    """Measure questions that are asked one at a time."""
    folder, effort = site.folder / "questions", site.effort
    with running_systems(folder, site.corpus, site.model, site.peers) as systems:
        return end_to_end.measure(systems, site.model, effort.rounds, effort.rounds_at_once)


def throughput(site: Site) -> Result:
    """Measure questions from many clients at a time."""
    folder, effort = site.folder / "throughput", site.effort
    with running_systems(folder, site.corpus, site.model, site.peers) as systems:
        return load.measure(systems, site.model, effort.load_rounds, effort.load_questions)


def indexing(site: Site) -> Result:
    """Measure first and second indexing runs of each system."""
    folder, effort = site.folder / "indexing", site.effort
    corpus = corpus_passages(folder / "corpus", effort.ingestion_sections)
    return ingestion.measure(corpus, site.model, folder, effort.ingestion_rounds, site.peers)


def starting(site: Site) -> Result:
    """Measure the start of a command and of a server."""
    folder, effort = site.folder / "starting", site.effort
    return start.measure(site.samples, site.model, folder, effort.commands, effort.starts)


def weighing(site: Site) -> Result:
    """Measure the memory of serving processes."""
    folder, asked = site.folder / "weighing", site.effort.memory_questions
    return memory.measure(site.samples, site.model, folder, asked, site.peers)


def growing(site: Site) -> Result:
    """Measure retrieval from embedded stores of growing size."""
    return growth.measure(site.model, site.folder / "growing", site.effort.growth)


def asking_large(site: Site) -> Result:
    """Measure questions over the largest corpus of `growing`."""
    return large.measure(site.model, site.folder / "growing", site.effort, site.peers)


SUBJECTS: dict[str, Callable[[Site], Result]] = {
    "questions": questions,
    "load": throughput,
    "ingestion": indexing,
    "start": starting,
    "memory": weighing,
    "growth": growing,
    "large": asking_large,
}
