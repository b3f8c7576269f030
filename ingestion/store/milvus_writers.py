"""The writers of a collection on a Milvus server.

`NextCollectionWriter` builds a new collection and then moves the alias to it, so that searches use the old
collection until the new one is complete. First runs and rebuilds use this writer. If the server was started
with the command `milvus-lite server`, every run uses it (docs/decisions/0005-writers.md gives the reasons).
All other runs use `InPlaceWriter`, which updates and deletes rows.

Both writers also update two smaller collections: the vocabulary, which contains the count of every word
in the chunks, and the catalogue, which contains one row per document.
"""

import time
from collections import Counter
from collections.abc import Collection as AbstractCollection
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ingestion.store.catalogue import (
    CATALOGUED_FIELDS,
    MAX_OUTLINE_CHUNKS,
    CatalogueBuilder,
    DocumentKey,
    catalogue_name,
    drop_leftovers,
    entry_key,
    entry_rows,
    move_alias,
    read_catalogue,
    row_id,
    row_key,
    words_name,
)
from ingestion.store.client import (
    BATCH_ROWS,
    MilvusRow,
    batches,
    documents_filter,
    ids_filter,
    literal,
    milvus_errors,
    row_pages,
)
from ingestion.store.collection import CollectionWriter
from ingestion.store.manifest import (
    CollectionManifest,
    catalogue_version,
    write_finished_manifest,
    write_manifest,
)
from ingestion.store.schema import (
    CHUNK_FIELDS,
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

BATCH_DOCUMENTS = 16
"""Number of documents whose rows are read in one query.

A query reads at most `MAX_OUTLINE_CHUNKS` rows of each document, so its result stays within Milvus's limit
of 16,384 rows.
"""


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

        `expected` is the manifest of the new collection. `previous` is the manifest of the current
        collection, whose unchanged rows are copied; if `previous` is None, nothing is copied.
        """
        self._client = client
        self._alias = alias
        self._expected = expected
        self._previous = previous
        self._name = f"{alias}_{time.time_ns()}"
        self._is_created = False
        self._written_ids: set[str] = set()
        self._buffer: list[MilvusRow] = []
        """Rows that the next call of `_insert` inserts."""
        self._row_count = 0
        self._words = Counter[str]()
        self._catalogue = CatalogueBuilder()

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Write `chunks` to the new collection, in batches. The last batch is written by `finish`."""
        words = [chunk_words(chunk) for chunk in chunks]
        self._add(chunk_rows(chunks, words, vectors))
        self._written_ids.update(chunk.id for chunk in chunks)
        self._words.update(chain.from_iterable(words))

    def finish(self, dropped: AbstractCollection[str]) -> CollectionManifest:
        """Copy the unchanged rows, complete the new collection and move the aliases."""
        with milvus_errors():
            if self._previous is not None:
                self._copy_rows(dropped, self._previous)
            self._insert()
            self._words = +self._words  # removes words with a count of 0 or less
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

    def _copy_rows(self, dropped: AbstractCollection[str], previous: CollectionManifest) -> None:
        """Copy the unchanged rows of the previous collection, with their vectors and word counts."""
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


class InPlaceWriter(CollectionWriter):
    """Updates the collection that an alias points to.

    The manifest is marked `incomplete` from the first write until the end of the run. If the process dies
    before the end, the next run counts all words again and rebuilds the catalogue.
    """

    def __init__(self, client: "MilvusClient", alias: str, manifest: CollectionManifest) -> None:
        self._client = client
        self._alias = alias
        self._manifest = manifest
        self._has_begun = False
        self._word_changes = Counter[str]()
        self._changed_documents: set[DocumentKey] = set()

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Insert `chunks`; rows with the same ids are replaced."""
        words = [chunk_words(chunk) for chunk in chunks]
        with milvus_errors():
            self._begin()
            self._subtract_rows([chunk.id for chunk in chunks])
            self._client.upsert(self._alias, chunk_rows(chunks, words, vectors))
        self._word_changes.update(chain.from_iterable(words))
        self._changed_documents.update(chunk.document_key for chunk in chunks)

    def finish(self, dropped: AbstractCollection[str]) -> CollectionManifest:
        """Delete the dropped chunks and update the vocabulary and the catalogue."""
        with milvus_errors():
            self._begin()
            for ids in batches(sorted(dropped)):
                self._subtract_rows(ids)
                self._client.delete(self._alias, filter=ids_filter(ids))
            self._client.flush(self._alias)
            words = self._write_words()
            self._write_catalogue()
            rows = self._client.query(self._alias, filter="", output_fields=["count(*)"])
            manifest = self._manifest.model_copy(
                update={"rows": rows[0]["count(*)"], "words": words, "incomplete": False}
            )
            write_finished_manifest(self._client, self._alias, manifest)
        return manifest

    def abandon(self) -> None:
        """Do nothing. The written rows are valid, and the next run completes the collection."""

    def _begin(self) -> None:
        if not self._has_begun:
            incomplete = self._manifest.model_copy(update={"incomplete": True})
            write_manifest(self._client, self._alias, incomplete)
            self._has_begun = True

    def _subtract_rows(self, ids: Sequence[str]) -> None:
        """Subtract the words of the stored rows with these ids from the counts of words.

        The documents of these rows are recorded as changed.
        """
        rows = self._client.query(self._alias, filter=ids_filter(ids), output_fields=CHUNK_FIELDS)
        for row in rows:
            self._word_changes.subtract(chunk_words(chunk_from_row(row)))
            self._changed_documents.add(row_key(row))

    def _write_words(self) -> int:
        """Update the vocabulary; return the number of words in all chunks."""
        name = words_name(self._alias)
        before = read_words(self._client, self._alias)
        # The sum of two counters contains only positive counts.
        after = self._count_words() if self._manifest.incomplete else before + self._word_changes
        changed = {word: count for word, count in after.items() if before[word] != count}
        for rows in batches(word_rows(changed)):
            self._client.upsert(name, rows)
        for words in batches(word for word in before if word not in after):
            self._client.delete(name, filter=f"word in {literal(words)}")
        self._client.flush(name)
        return after.total()

    def _count_words(self) -> Counter[str]:
        words = Counter[str]()
        for page in row_pages(self._client, self._alias, CHUNK_FIELDS):
            for row in page:
                words.update(chunk_words(chunk_from_row(row)))
        return words

    def _write_catalogue(self) -> None:
        """Update the entries of the changed documents, or of all documents if the manifest is incomplete.

        Without a catalogue of the current format, `read_manifest` returns an incomplete manifest.
        """
        if not catalogue_version(self._client, self._alias):
            self._replace_catalogue()
        if self._manifest.incomplete:
            self._write_all_entries()
        else:
            for keys in batches(sorted(self._changed_documents), BATCH_DOCUMENTS):
                self._write_entries(self._read_documents(keys), keys)
        self._client.flush(catalogue_name(self._alias))

    def _write_all_entries(self) -> None:
        builder = CatalogueBuilder()
        for page in row_pages(self._client, self._alias, CATALOGUED_FIELDS):
            builder.add(page)
        previous = [entry_key(entry) for entry in read_catalogue(self._client, self._alias)]
        self._write_entries(builder, previous)

    def _read_documents(self, keys: Sequence[DocumentKey]) -> CatalogueBuilder:
        """Return a builder with the first MAX_OUTLINE_CHUNKS stored chunks of each document in `keys`."""
        builder = CatalogueBuilder()
        rows = self._client.query(
            self._alias,
            filter=f"({documents_filter(keys)}) and position < {MAX_OUTLINE_CHUNKS}",
            output_fields=CATALOGUED_FIELDS,
            consistency_level="Strong",
        )
        builder.add(rows)
        return builder

    def _write_entries(self, builder: CatalogueBuilder, previous: Sequence[DocumentKey]) -> None:
        """Write the entries of `builder`; delete the entries of documents that are only in `previous`."""
        name = catalogue_name(self._alias)
        for rows in batches(entry_rows(builder.entries())):
            self._client.upsert(name, rows)
        removed = set(previous) - builder.keys()
        for ids in batches(sorted(map(row_id, removed))):
            self._client.delete(name, filter=ids_filter(ids))

    def _replace_catalogue(self) -> None:
        """Create an empty catalogue. A catalogue of another version is dropped first."""
        alias = catalogue_name(self._alias)
        name = catalogue_name(self._client.describe_alias(self._alias)["collection_name"])
        if self._client.has_collection(alias):
            self._client.drop_alias(alias)  # a server refuses to drop a collection with an alias
        if self._client.has_collection(name):
            self._client.drop_collection(name)
        create_catalogue(self._client, name)
        self._client.load_collection(name)
        move_alias(self._client, alias, name)
