"""The writer that builds a new collection for a run.

`NextCollectionWriter` builds a new collection and then moves the alias to it, so that searches use the
old collection until the new one is complete. Rebuilds always use this writer. On Milvus Lite every run
uses it because Milvus Lite weights words per segment and can miss rows during a flush (see
`docs/decisions`). Other runs use `InPlaceWriter`, which updates and deletes rows on a server.

Both writers also update two smaller collections: the vocabulary, which contains the count of every word
in the chunks, and the catalogue, which contains one row per document.
"""

import time
from collections import Counter
from collections.abc import Collection as Sized
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ingestion.store.catalogue import (
    CatalogueBuilder,
    catalogue_name,
    drop_leftovers,
    entry_rows,
    move_alias,
    words_name,
)
from ingestion.store.client import BATCH_ROWS, MilvusRow, batches, milvus_errors, row_pages
from ingestion.store.collection import CollectionWriter
from ingestion.store.manifest import CollectionManifest, write_finished_manifest
from ingestion.store.schema import (
    COPIED_FIELDS,
    Vector,
    chunk_from_row,
    chunk_rows,
    chunk_words,
    create_catalogue,
    create_chunks,
    create_words,
    read_words,
    word_rows,
)
from schemas.document import Chunk

if TYPE_CHECKING:
    from pymilvus import MilvusClient


class NextCollectionWriter(CollectionWriter):
    """Builds a new collection and moves the alias to it."""

    def __init__(
        self,
        client: "MilvusClient",
        alias: str,
        expected: CollectionManifest,
        previous: CollectionManifest | None,
    ) -> None:
        """Initialise the writer; the collection is created with the first rows.

        `expected` is the manifest of the new collection. `previous` is the manifest of the current one,
        whose unchanged rows are copied; if it is None, nothing is copied.
        """
        self._client = client
        self._alias = alias
        self._expected = expected
        self._previous = previous
        self._name = f"{alias}_{time.time_ns()}"
        self._is_created = False
        self._written_ids: set[str] = set()
        self._buffer: list[MilvusRow] = []
        """Rows to insert later: a batch of embedded chunks is smaller than a batch of rows."""
        self._row_count = 0
        self._words = Counter[str]()
        self._catalogue = CatalogueBuilder()

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Write `chunks` to the next collection."""
        words = [chunk_words(chunk) for chunk in chunks]
        self._add(chunk_rows(chunks, words, vectors))
        self._written_ids.update(chunk.id for chunk in chunks)
        self._words.update(chain.from_iterable(words))

    def finish(self, dropped: Sized[str]) -> CollectionManifest:
        """Copy the remaining rows, complete the new collection and move the aliases."""
        with milvus_errors():
            if self._previous is not None:
                self._copy_rows(dropped, self._previous)
            self._insert()
            self._words = +self._words
            manifest = self._expected.model_copy(
                update={
                    "rows": self._row_count,
                    "words": self._words.total(),
                    "calibration": self._previous.calibration if self._previous else None,
                }
            )
            self._complete(manifest)
            for companion_name in (words_name, catalogue_name):
                move_alias(self._client, companion_name(self._alias), companion_name(self._name))
            move_alias(self._client, self._alias, self._name)
            drop_leftovers(self._client, self._alias)
        return manifest

    def abandon(self) -> None:
        """Drop the new collection."""
        with milvus_errors():
            drop_leftovers(self._client, self._alias)

    def _add(self, rows: list[MilvusRow]) -> None:
        self._buffer += rows
        if len(self._buffer) >= BATCH_ROWS:
            with milvus_errors():
                self._insert()

    def _insert(self) -> None:
        rows, self._buffer = self._buffer, []
        if not rows:
            return
        if not self._is_created:
            dimension = len(rows[0]["dense"]) if "dense" in rows[0] else None
            create_chunks(self._client, self._name, dimension, self._expected.tokenizer)
            self._is_created = True
        self._client.insert(self._name, rows)
        self._row_count += len(rows)
        self._catalogue.add(rows)

    def _copy_rows(self, dropped: Sized[str], previous: CollectionManifest) -> None:
        """Copy the remaining rows with their vectors; subtract the words of the other rows."""
        self._words.update(read_words(self._client, self._alias))
        fields = [*COPIED_FIELDS, "dense"] if previous.embedding_model else COPIED_FIELDS
        for page in row_pages(self._client, self._alias, fields):
            remaining: list[MilvusRow] = []
            for row in page:
                if row["id"] in self._written_ids or row["id"] in dropped:
                    self._words.subtract(chunk_words(chunk_from_row(row)))
                else:
                    remaining.append(row)
            for rows in batches(remaining):
                self._add(rows)

    def _complete(self, manifest: CollectionManifest) -> None:
        """Write the vocabulary, the catalogue and the manifest, and load all collections."""
        words, catalogue = words_name(self._name), catalogue_name(self._name)
        create_words(self._client, words)
        for rows in batches(word_rows(self._words)):
            self._client.insert(words, rows)
        create_catalogue(self._client, catalogue)
        for rows in batches(entry_rows(self._catalogue.entries())):
            self._client.insert(catalogue, rows)
        write_finished_manifest(self._client, self._name, manifest)
        for name in (words, catalogue, self._name):
            self._client.flush(name)
            self._client.load_collection(name)
