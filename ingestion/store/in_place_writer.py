"""Updates a collection on a Milvus server in place."""

from collections import Counter
from collections.abc import Collection as Sized
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ingestion.store.catalogue import (
    CATALOGUED_FIELDS,
    MAX_OUTLINE_CHUNKS,
    CatalogueBuilder,
    DocumentKey,
    catalogue_name,
    document_key,
    entry_key,
    entry_rows,
    move_alias,
    read_catalogue,
    row_id,
    words_name,
)
from ingestion.store.client import batches, literal, milvus_errors, row_pages, with_ids
from ingestion.store.collection import CollectionWriter
from ingestion.store.manifest import (
    CollectionManifest,
    catalogue_version,
    write_finished_manifest,
    write_manifest,
)
from ingestion.store.schema import (
    CHUNK_FIELDS,
    Vector,
    chunk_from_row,
    chunk_rows,
    chunk_words,
    create_catalogue,
    read_words,
    word_rows,
)
from schemas.document import Chunk

if TYPE_CHECKING:
    from pymilvus import MilvusClient

BATCH_DOCUMENTS = 16
"""Documents whose chunks are read in one query: 16 times 1,024 chunks is the limit of a Milvus query."""


class InPlaceWriter(CollectionWriter):
    """Updates the collection that an alias points to.

    The manifest is marked `incomplete` from the first write until the end of the run. If the process
    dies in between, the next run counts all words again and rebuilds the catalogue.
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
        self._changed_documents.update((chunk.source, chunk.document_id) for chunk in chunks)

    def finish(self, dropped: Sized[str]) -> CollectionManifest:
        """Delete the dropped chunks and update the vocabulary and the catalogue."""
        with milvus_errors():
            self._begin()
            for ids in batches(sorted(dropped)):
                self._subtract_rows(ids)
                self._client.delete(self._alias, filter=with_ids(ids))
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
        """Subtract the words of the stored rows with these ids; record their documents as changed."""
        rows = self._client.query(self._alias, filter=with_ids(ids), output_fields=CHUNK_FIELDS)
        for row in rows:
            self._word_changes.subtract(chunk_words(chunk_from_row(row)))
            self._changed_documents.add(document_key(row))

    def _write_words(self) -> int:
        """Update the vocabulary; return the number of words in all chunks."""
        name = words_name(self._alias)
        before = read_words(self._client, self._alias)
        after = self._count_words() if self._manifest.incomplete else before + self._word_changes
        changed = Counter(
            {word: count for word, count in after.items() if count > 0 and before[word] != count}
        )
        for rows in batches(word_rows(changed)):
            self._client.upsert(name, rows)
        for words in batches(word for word in before if after[word] <= 0):
            self._client.delete(name, filter=f"word in {literal(words)}")
        self._client.flush(name)
        return sum(count for count in after.values() if count > 0)

    def _count_words(self) -> Counter[str]:
        words = Counter[str]()
        for page in row_pages(self._client, self._alias, CHUNK_FIELDS):
            for row in page:
                words.update(chunk_words(chunk_from_row(row)))
        return words

    def _write_catalogue(self) -> None:
        """Update the entries of the changed documents, or of all documents after an incomplete run."""
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
        before = [entry_key(entry) for entry in read_catalogue(self._client, self._alias)]
        self._write_entries(builder, before)

    def _read_documents(self, keys: Sequence[DocumentKey]) -> CatalogueBuilder:
        """Return a builder with the stored chunks of the documents `keys`."""
        builder, ids = CatalogueBuilder(), [document_id for _, document_id in keys]
        rows = self._client.query(
            self._alias,
            filter=f"document_id in {literal(ids)} and position < {MAX_OUTLINE_CHUNKS}",
            output_fields=CATALOGUED_FIELDS,
            consistency_level="Strong",
        )
        builder.add(row for row in rows if document_key(row) in keys)
        return builder

    def _write_entries(self, builder: CatalogueBuilder, before: Sequence[DocumentKey]) -> None:
        """Write the builder's entries; delete the entries of `before` that the builder lacks."""
        name = catalogue_name(self._alias)
        for rows in batches(entry_rows(builder.entries())):
            self._client.upsert(name, rows)
        removed = set(before) - builder.keys()
        for ids in batches(sorted(map(row_id, removed))):
            self._client.delete(name, filter=with_ids(ids))

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
