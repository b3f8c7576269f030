"""Measures the memory of an ingestion job whose store is in another process.

python -m benchmarks.ingestion_memory [--chunks 100000]
"""

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from benchmarks.corpus import write_corpus
from benchmarks.fresh_process import in_fresh_process
from benchmarks.performance.ingestion import import_everything, settings_of
from benchmarks.performance.model_process import running_model
from benchmarks.process_memory import resident
from ingestion.embeddings import open_embeddings
from ingestion.job import IngestionJob
from ingestion.runs import IngestionRunStore
from ingestion.store.client import open_milvus
from ingestion.store.manifest import expected_manifest
from ingestion.store.milvus_collection import MilvusCollection
from schemas.settings import Settings
from tests.milvus_server import MilvusServer


class IngestionMemory(NamedTuple):
    """Memory of the job's process in MB: before the job, and at its highest."""

    chunks: int
    before: float
    highest: float


@click.command()
@click.option(
    "--chunks",
    default=100_000,
    show_default=True,
    help="Number of sections to index; some become two chunks.",
)
def main(chunks: int) -> None:
    """Index a corpus and print the memory of the process that runs the ingestion job."""
    with tempfile.TemporaryDirectory() as name, running_model() as model:
        folder = Path(name)
        settings = settings_of(folder, write_corpus(folder / "corpus", chunks), model)
        with MilvusServer(folder / "served") as milvus:
            served = settings.model_copy(update={"milvus_uri": milvus.uri})
            memory = in_fresh_process(partial(measure_memory, served))
    click.echo(
        f"memory of the job's process over {memory.chunks} chunks: {memory.before:.0f} MB before, "
        f"{memory.highest:.0f} MB at its highest"
    )


def measure_memory(settings: Settings) -> IngestionMemory:
    """Index the platform of `settings` and return the memory of this process."""
    import_everything()
    # The server at this address is Milvus Lite, which has its own tokenizer and no aliases.
    manifest = expected_manifest(settings, "standard")
    collection = MilvusCollection(
        open_milvus(settings), settings.collection, manifest, in_place=True
    )
    ingestion = IngestionJob(
        settings, collection, open_embeddings(settings), IngestionRunStore.open(settings)
    )
    seen = [resident(os.getpid())]
    run = ingestion.run(ingestion.new_run("command"), lambda _: seen.append(resident(os.getpid())))
    return IngestionMemory(run.sources[0].chunks, seen[0], max(seen))


if __name__ == "__main__":
    main()
