"""Is it fast? Every promise of speed, beside other systems, in one run on one machine.

    python -m benchmarks.performance [--only load --only start] [--quick]

Writes docs/performance.md; with --only or --quick it prints alone. The peers' own virtual environment is
made when it is missing; where it cannot be made, its rows say so.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import CalledProcessError

import click

from benchmarks.document import around_markers, write_between_markers
from benchmarks.peers.environment import PEERS, Name, python
from benchmarks.performance import end_to_end, growth, ingestion, load, memory, start
from benchmarks.performance.effort import QUICK, THOROUGH, Effort
from benchmarks.performance.model_process import Model, running_model
from benchmarks.performance.passages import Passages, corpus_passages, passages_of
from benchmarks.performance.plots import draw
from benchmarks.performance.report import Circumstances, Result, report
from benchmarks.performance.systems import one_thread, running_systems
from benchmarks.retrieval_sets import ROOT
from schemas.settings import SAMPLE_PLATFORM

DOCUMENT = ROOT / "docs" / "performance.md"


@dataclass(frozen=True)
class Site:
    """What is measured, on what."""

    folder: Path
    effort: Effort
    model: Model
    peers: tuple[Name, ...]
    corpus: Passages
    samples: Passages


@contextmanager
def site(effort: Effort, peers: tuple[Name, ...]) -> Iterator[Site]:
    """A model that runs, and passages to index."""
    with tempfile.TemporaryDirectory() as name, running_model() as model:
        folder = Path(name)
        corpus = corpus_passages(folder / "corpus", effort.sections)
        samples = passages_of(SAMPLE_PLATFORM, folder / "samples.jsonl")
        yield Site(folder, effort, model, peers, corpus, samples)


def questions(site: Site) -> Result:
    """One at a time."""
    folder, effort = site.folder / "questions", site.effort
    with running_systems(folder, site.corpus, site.model, site.peers) as systems:
        return end_to_end.measure(systems, site.model, effort.rounds, effort.rounds_at_once)


def throughput(site: Site) -> Result:
    """Many at a time."""
    folder, effort = site.folder / "throughput", site.effort
    with running_systems(folder, site.corpus, site.model, site.peers) as systems:
        return load.measure(systems, site.model, effort.load_rounds, effort.load_questions)


def indexing(site: Site) -> Result:
    """By each way, first and again."""
    folder, rounds = site.folder / "indexing", site.effort.ingestion_rounds
    return ingestion.measure(site.corpus, site.model, folder, rounds, site.peers)


def starting(site: Site) -> Result:
    """A command and a server."""
    folder, effort = site.folder / "starting", site.effort
    return start.measure(site.samples, site.model, folder, effort.commands, effort.starts)


def weighing(site: Site) -> Result:
    """Serving processes."""
    folder, asked = site.folder / "weighing", site.effort.memory_questions
    return memory.measure(site.samples, site.model, folder, asked, site.peers)


def growing(site: Site) -> Result:
    """The embedded store."""
    return growth.measure(site.model, site.folder / "growing", site.effort.growth)


SUBJECTS: dict[str, Callable[[Site], Result]] = {
    "questions": questions,
    "load": throughput,
    "ingestion": indexing,
    "start": starting,
    "memory": weighing,
    "growth": growing,
}


@click.command()
@click.option(
    "--only", type=click.Choice(list(SUBJECTS)), multiple=True, help="Subjects; else all of them."
)
@click.option("--quick", is_flag=True, help="Once each: the figures mean nothing.")
@click.option("--peers/--no-peers", "beside", default=True, help="Whether to measure others too.")
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default=DOCUMENT,
    help="Markdown file that the figures are written to, between its markers.",
)
def main(only: Sequence[str], quick: bool, beside: bool, document: Path) -> None:
    """Measure, print the figures and write them into the documentation."""
    tell = partial(click.echo, err=True)
    around_markers(document)  # before minutes of work
    one_thread()
    missing = missing_peers() if beside else "left out by --no-peers."
    peers = () if missing else PEERS
    results = []
    with site(QUICK if quick else THOROUGH, peers) as found:
        for name in only or SUBJECTS:
            began = time.monotonic()
            results.append(SUBJECTS[name](found))
            tell(f"{name}: {time.monotonic() - began:.0f} s")
        text = report(results, Circumstances(os.cpu_count() or 1, found.corpus.count, missing))
    if not (only or quick):
        for result in results:
            draw(result, document.parent / "images")
        write_between_markers(document, text)
    click.echo(text)


def missing_peers() -> str:
    """Why the peers cannot be measured; empty where they can. Their environment is made if need be."""
    try:
        python()
    except CalledProcessError:
        return "their environment could not be made, its packages could not be installed."
    return ""


if __name__ == "__main__":
    main()
