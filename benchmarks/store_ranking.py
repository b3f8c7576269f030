"""Compares the full-text ranking of the embedded store with that of Milvus, on the public question sets.

    python -m benchmarks.store_ranking --data FOLDER

Both stores index the same words with the same BM25 parameters. Milvus is Milvus Lite in this process.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from benchmarks.retrieval_sets import missing_sets, public_sets
from ingestion.store.client import batches, open_milvus
from ingestion.store.collection import Collection
from ingestion.store.manifest import expected_manifest
from ingestion.store.milvus_collection import MilvusCollection
from schemas.document import Chunk
from schemas.settings import read_settings

RANKS = 10
"""Number of best chunks that are compared."""


@contextmanager
def both_stores(folder: Path, chunks: Sequence[Chunk]) -> Iterator[tuple[Collection, Collection]]:
    """Write `chunks` into an embedded and a Milvus collection in `folder`, and yield both."""
    embedded = Collection.connect(read_settings(milvus_uri=str(folder / "embedded.db")))
    settings = read_settings(milvus_uri=str(folder / "milvus.db"))
    manifest = expected_manifest(settings, "standard")
    client = open_milvus(settings)
    milvus = MilvusCollection(client, settings.collection, manifest, in_place=False)
    try:
        for collection in (embedded, milvus):
            _write(collection, chunks)
        yield embedded, milvus
    finally:
        embedded.close()
        milvus.close()


def overlaps(first: Collection, second: Collection, questions: Iterable[str]) -> list[float]:
    """Return for each question the share of the best chunks that both stores have in common.

    Questions without any result in either store are omitted.
    """
    shares = []
    for question in questions:
        expected = set(first.search_hits(question, RANKS))
        found = set(second.search_hits(question, RANKS))
        if expected or found:
            shares.append(len(expected & found) / max(len(expected), len(found)))
    return shares


def _write(collection: Collection, chunks: Sequence[Chunk]) -> None:
    writer = collection.writer(rebuild=True)
    for batch in batches(chunks):
        writer.put(batch, None)
    writer.finish(set())
    collection.load()


def main() -> None:
    """Print the overlap of the best chunks for each set, and for all questions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--questions", type=int, default=120, help="questions per set")
    arguments = parser.parse_args()
    if missing := missing_sets(arguments.data):
        print(f"skipped, not in {arguments.data}: {', '.join(missing)}", file=sys.stderr)
    every: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        for given in public_sets(arguments.data, Path(name)):
            folder = Path(name) / f"{given.name}-stores"
            chunks = list(chain.from_iterable(given.documents(chunk_tokens=400).sample))
            questions = [question.question for question in given.questions[: arguments.questions]]
            with both_stores(folder, chunks) as (embedded, milvus):
                shares = overlaps(embedded, milvus, questions)
            every += shares
            mean = sum(shares) / len(shares)
            print(
                f"{given.name}: {len(chunks)} chunks, {len(shares)} questions, overlap {mean:.4f}"
            )
    if every:
        print(
            f"all: {len(every)} questions, overlap of the first {RANKS} {sum(every) / len(every):.4f}"
        )


if __name__ == "__main__":
    main()
