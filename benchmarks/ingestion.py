"""How fast documents are indexed, and in how much memory.

    python -m benchmarks.ingestion [--chunks 2500] [--memory 100000]

Against one scripted embedding server with 30 ms a request, over one corpus: a naive loop (one chunk
a request, in order), the ingestion job, and the job again over unchanged documents: in a new process,
and in one that has the store open, as a server has. Then the memory of the job's process while it
indexes `--memory` chunks into a store that another process serves.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import click

from benchmarks.corpus import write_corpus
from ingestion.chunking import chunk_document
from ingestion.collection import Collection
from ingestion.collection_schema import embedded_text, expected_contract
from ingestion.embeddings import open_embeddings
from ingestion.job import IngestionJob
from ingestion.milvus import open_milvus
from ingestion.profile import read_platform
from ingestion.runs import Runs
from ingestion.sources import read_source
from ingestion.sources.limits import Limits
from schemas.document import SourceDocument
from schemas.settings import Settings, read_settings

LATENCY = 0.03
"""Seconds that the embedding server takes for a request, whatever is in it."""


@dataclass
class EmbeddingServer:
    """The scripted server's address, and how often it was asked."""

    url: str
    asked: list[str] = field(default_factory=list)


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    """The scripted server in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.embedding_server", str(LATENCY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        server = EmbeddingServer(f"http://127.0.0.1:{process.stdout.readline().strip()}/v1")
        threading.Thread(
            target=lambda: server.asked.extend(process.stdout or ()), daemon=True
        ).start()
        yield server
        process.kill()


def settings_of(folder: Path, platform: Path, server: EmbeddingServer) -> Settings:
    """An embedded store and a database in `folder`."""
    return read_settings(
        milvus_uri=str(folder / "milvus.db"),
        database_url=f"sqlite:///{folder / 'apidesk.db'}",
        platform=platform,
        embedding_model="openai:scripted",
        embedding_base_url=server.url,
        embedding_api_key="none",
    )


def naive(settings: Settings) -> int:
    """What a first script does: read, cut, embed one chunk, insert it, go on. How many chunks."""
    collection, model = Collection.connect(settings), open_embeddings(settings)
    assert model is not None
    writer = collection.writer(rebuild=True)
    count = 0
    for source in read_platform(settings.platform).sources:
        for found in read_source(source, Limits()):
            assert isinstance(found, SourceDocument)
            for chunk in chunk_document(found, settings.chunk_tokens):
                writer.put([chunk], model.embed_documents([embedded_text(chunk)]))
                count += 1
    writer.finish(())
    collection.load()
    return count


def job(settings: Settings) -> int:
    """A run of the ingestion job. How many chunks the documents have."""
    ingestion = IngestionJob.connect(settings)
    return ingestion.run(ingestion.new_run("command")).sources[0].chunks


@dataclass
class Figure:
    """What one way of indexing took."""

    name: str
    chunks: int
    seconds: float
    requests: int

    @property
    def rate(self) -> float:
        """Chunks a second."""
        return self.chunks / self.seconds


def measured(
    name: str,
    index: Callable[[Settings], int],
    settings: Settings,
    server: EmbeddingServer,
    times: int = 1,
) -> Figure:
    """`index` in a process of its own, its imports done before; the last of as many `times`, so that
    the first one opens the store.
    """
    before = len(server.asked)
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_timed, args=(index, settings, times, theirs))
    process.start()
    chunks, seconds = ours.recv()
    process.join()
    return Figure(name, chunks, seconds, len(server.asked) - before)


def _timed(
    index: Callable[[Settings], int], settings: Settings, times: int, answer: Connection
) -> None:
    _import_everything()
    for _ in range(times):
        started = time.perf_counter()
        chunks = index(settings)
        seconds = time.perf_counter() - started
    answer.send((chunks, seconds))
    os._exit(0)  # Milvus Lite's threads would hold the process


def _import_everything() -> None:
    import langchain.embeddings
    import langchain_openai
    import milvus_lite.adapter.grpc.server  # type: ignore[import-untyped]
    import pymilvus
    import rjieba

    from ingestion.everyday_words import zipf_frequency

    zipf_frequency("word")
    _ = (langchain.embeddings, langchain_openai, milvus_lite.adapter, pymilvus, rjieba)


@contextmanager
def milvus_server(folder: Path) -> Iterator[str]:
    """Milvus Lite as a server process, so that its memory is not the job's."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(Path(sys.executable).with_name("milvus-lite")),
        *("server", "--host", "127.0.0.1", "--port", str(port), "--data-dir", str(folder)),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while True:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
        process.kill()


def memory(settings: Settings, answer: Connection) -> None:
    """Index everything; the process's memory before, and at its highest, in MB."""
    _import_everything()
    contract = expected_contract(settings, lite=True)
    collection = Collection(open_milvus(settings), settings.collection, contract, in_place=True)
    ingestion = IngestionJob(settings, collection, open_embeddings(settings), Runs.open(settings))
    before, highest = resident(), [0.0]
    run = ingestion.run(
        ingestion.new_run("command"),
        lambda run: highest.__setitem__(0, max(highest[0], resident())),
    )
    answer.send((run.sources[0].chunks, before, max(highest[0], resident())))
    os._exit(0)


def resident() -> float:
    """This process's resident memory in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def measured_memory(settings: Settings) -> tuple[int, float, float]:
    """Chunks, and the memory of a process that indexes them, before and at its highest."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=memory, args=(settings, theirs))
    process.start()
    found: tuple[int, float, float] = ours.recv()
    process.join()
    return found


@click.command()
@click.option("--chunks", default=2_500, show_default=True, help="Chunks to time.")
@click.option("--memory", "many", default=100_000, show_default=True, help="Chunks to weigh.")
def main(chunks: int, many: int) -> None:
    """Print a table of both."""
    with tempfile.TemporaryDirectory() as name, embedding_server() as server:
        folder = Path(name)
        platform = write_corpus(folder / "corpus", chunks)
        figures = []
        for label, index, store, times in (
            ("naive loop", naive, "naive", 1),
            ("ingestion job", job, "job", 1),
            ("the job again", job, "job", 1),
            ("the job again, its store open", job, "job", 2),
        ):
            (folder / store).mkdir(exist_ok=True)
            settings = settings_of(folder / store, platform, server)
            figures.append(measured(label, index, settings, server, times))
        print_times(figures)
        if many:
            print_memory(folder, many, server)


def print_times(figures: list[Figure]) -> None:
    """A row a figure, and the ratios that count."""
    print("| | chunks | seconds | chunks a second | embedding requests |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for figure in figures:
        print(
            f"| {figure.name} | {figure.chunks} | {figure.seconds:.2f} | {figure.rate:.0f} "
            f"| {figure.requests} |"
        )
    loop, first, again, open_again = figures
    print(f"\nchunks a second, job to naive loop: {first.rate / loop.rate:.1f}")
    print(f"seconds, second run to first: {again.seconds / first.seconds:.3f}")
    print(f"the same, its store open: {open_again.seconds / first.seconds:.3f}")


def print_memory(folder: Path, many: int, server: EmbeddingServer) -> None:
    """What the job's process weighs while it indexes `many` chunks."""
    platform = write_corpus(folder / "large", many)
    settings = settings_of(folder, platform, server)
    with milvus_server(folder / "served") as uri:
        update: dict[str, Any] = {"milvus_uri": uri}
        chunks, before, highest = measured_memory(settings.model_copy(update=update))
    print(
        f"\nmemory of the job's process over {chunks} chunks: {before:.0f} MB before, "
        f"{highest:.0f} MB at its highest"
    )


if __name__ == "__main__":
    main()
