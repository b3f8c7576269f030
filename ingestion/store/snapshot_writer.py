"""Writes the changes of an ingestion run to a snapshot, in one transaction, and then to Milvus Lite."""

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Collection as AbstractCollection
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path

import numpy as np

from ingestion.store.catalogue import CatalogueBuilder, DocumentKey, entry_key
from ingestion.store.client import batches
from ingestion.store.collection import CollectionWriter
from ingestion.store.lite_copy import LiteCopy
from ingestion.store.manifest import CollectionManifest
from ingestion.store.postings import PostingsUpdate
from ingestion.store.schema import Vector, check_lengths, chunk_words, indexed_terms
from ingestion.store.snapshot import (
    MAX_VARIABLES,
    REPLACED_KEY,
    SOURCES_KEY,
    VERSION_KEY,
    encode_chunk,
    get_manifest,
    open_snapshot,
    placeholders,
    select_chunks,
    set_manifest,
    set_state,
    snapshot_errors,
    vector_dimension,
)
from schemas.document import Chunk
from schemas.errors import StoreError

BATCH_DOCUMENTS = 100
"""Number of documents whose catalogue entries are written together."""


class SnapshotWriter(CollectionWriter):
    """Updates a snapshot; readers see the changes when `finish` commits them.

    The same transaction writes the ids of changed chunks to the table `journal`. After the commit, these
    chunks are copied to Milvus Lite. If the process dies before the copy is complete, the next run copies
    them again.
    """

    def __init__(
        self, path: Path, copy: LiteCopy, expected: CollectionManifest, *, rebuild: bool
    ) -> None:
        """Initialise the writer; the first change opens the snapshot at `path`.

        `expected` is the manifest for the current settings, with all counts 0. With `rebuild`, the previous
        chunks are removed.
        """
        self._path = path
        self._copy = copy
        self._expected = expected
        self._rebuild = rebuild
        self._connection: sqlite3.Connection | None = None
        """The connection to the snapshot, open from the first change to the end of the run."""
        self._numbers: Iterator[int] = count()
        """Numbers for new chunks."""
        self._dimension: int | None = None
        """Length of every vector of the collection; None if there is no vector yet."""
        self._postings = PostingsUpdate()
        self._words = Counter[str]()
        self._documents: set[DocumentKey] = set()
        """Documents whose entry in the catalogue must be written or deleted."""

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Write `chunks`; chunks with the same ids are replaced.

        Raises StoreError if a chunk is too long for Milvus Lite, or if the vectors differ in length.
        """
        for chunk in chunks:
            check_lengths(chunk)
        with snapshot_errors(self._path):
            connection = self._begin()
            replaced = self._remove(connection, [chunk.id for chunk in chunks])
            for index, chunk in enumerate(chunks):
                number = replaced[chunk.id] if chunk.id in replaced else next(self._numbers)
                vector = vectors[index] if vectors is not None else None
                self._insert(connection, number, chunk, vector)

    def finish(self, dropped: AbstractCollection[str]) -> CollectionManifest:
        """Delete the dropped chunks, commit the new state and copy the changes to Milvus Lite."""
        with snapshot_errors(self._path):
            connection = self._begin()
            for ids in batches(sorted(dropped), MAX_VARIABLES):
                self._remove(connection, ids)
            manifest = self._commit(connection)
            self._postings, self._words = PostingsUpdate(), Counter()  # free memory for Milvus Lite
            self._copy.replay_journal(connection, manifest)
            self.abandon()  # closes the connection
        return manifest

    def finish_restoring(self) -> None:
        """Commit chunks that were read from Milvus Lite, without copying them back."""
        with snapshot_errors(self._path):
            connection = self._begin()
            connection.execute("DELETE FROM journal")
            self._commit(connection)
            self.abandon()  # closes the connection

    def abandon(self) -> None:
        """Close the snapshot. Changes that are not committed are rolled back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _begin(self) -> sqlite3.Connection:
        """Return the connection. The first call opens it and begins the transaction."""
        if self._connection is None:
            self._connection = open_snapshot(self._path)
            self._connection.execute("BEGIN IMMEDIATE")
            if self._rebuild:
                _clear(self._connection)
            self._numbers = _unused_numbers(self._connection)
            self._dimension = vector_dimension(self._connection)
        return self._connection

    def _commit(self, connection: sqlite3.Connection) -> CollectionManifest:
        self._postings.write(connection)
        self._write_words(connection)
        self._write_documents(connection)
        manifest = self._write_manifest(connection)
        connection.commit()
        return manifest

    def _insert(
        self, connection: sqlite3.Connection, number: int, chunk: Chunk, vector: Vector | None
    ) -> None:
        words = chunk_words(chunk)
        terms = indexed_terms(chunk, words)
        self._postings.add(number, terms)
        self._words.update(words)
        self._documents.add(chunk.document_key)
        row = (
            number, chunk.id, chunk.source, chunk.document_id, chunk.position, chunk.kind,
            chunk.language, chunk.service_id, chunk.api_name, chunk.api_url,
            json.dumps(chunk.metadata, ensure_ascii=False), chunk.content_hash, chunk.fingerprint,
            len(terms),
        )  # fmt: skip
        execute = connection.execute
        execute(f"INSERT INTO chunk VALUES {placeholders(row)}", row)
        execute("INSERT INTO content VALUES (?, ?)", (number, encode_chunk(chunk)))
        if vector is not None:
            execute("INSERT INTO vector VALUES (?, ?)", (number, self._encode_vector(vector)))
        execute("INSERT OR IGNORE INTO journal VALUES (?)", (chunk.id,))

    def _encode_vector(self, vector: Vector) -> bytes:
        self._dimension = self._dimension or len(vector)
        if len(vector) != self._dimension:
            raise StoreError(
                f"a vector has {len(vector)} components, but the others in the collection have "
                f"{self._dimension}: run `apidesk ingest --rebuild` if the model has changed"
            )
        return np.array(vector, dtype=np.float32).tobytes()

    def _remove(self, connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
        """Remove the stored chunks with these ids; return their numbers by id. Unknown ids are skipped."""
        numbers: dict[str, int] = {}
        for number, chunk in select_chunks(connection, f"id IN {placeholders(ids)}", ids):
            numbers[chunk.id] = number
            words = chunk_words(chunk)
            self._postings.remove(number, indexed_terms(chunk, words))
            self._words.subtract(words)
            self._documents.add(chunk.document_key)
        removed = [(number,) for number in numbers.values()]
        for table in ("chunk", "content", "vector"):
            connection.executemany(f"DELETE FROM {table} WHERE number = ?", removed)
        connection.executemany(
            "INSERT OR IGNORE INTO journal VALUES (?)", [(chunk_id,) for chunk_id in numbers]
        )
        return numbers

    def _write_words(self, connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO word VALUES (?, ?) "
            "ON CONFLICT DO UPDATE SET occurrences = occurrences + excluded.occurrences",
            [(word, change) for word, change in self._words.items() if change],
        )
        connection.execute("DELETE FROM word WHERE occurrences <= 0")

    def _write_documents(self, connection: sqlite3.Connection) -> None:
        """Write the entry of each changed document; delete the entries of documents without chunks."""
        for keys in batches(sorted(self._documents), BATCH_DOCUMENTS):
            builder = CatalogueBuilder()
            builder.add(
                chunk.model_dump()
                for key in keys
                for _, chunk in select_chunks(connection, "source = ? AND document_id = ?", key)
            )
            connection.executemany(
                "DELETE FROM document WHERE source = ? AND document_id = ?", keys
            )
            connection.executemany(
                "INSERT INTO document VALUES (?, ?, ?)",
                [(*entry_key(entry), entry.model_dump_json()) for entry in builder.entries()],
            )

    def _write_manifest(self, connection: sqlite3.Connection) -> CollectionManifest:
        rows = connection.execute("SELECT count(*) FROM chunk").fetchone()[0]
        words = connection.execute("SELECT sum(occurrences) FROM word").fetchone()[0]
        previous = get_manifest(connection)
        calibration = previous.calibration if previous else None
        manifest = self._expected.model_copy(
            update={"rows": rows, "words": words or 0, "calibration": calibration}
        )
        set_manifest(connection, manifest)
        set_state(connection, VERSION_KEY, str(time.time_ns()))
        set_state(connection, SOURCES_KEY, "")
        return manifest


def _clear(connection: sqlite3.Connection) -> None:
    """Empty the snapshot, and record that the whole collection in Milvus Lite must be replaced."""
    tables = ("chunk", "content", "vector", "posting", "word", "document", "journal", "state")
    for table in tables:
        connection.execute(f"DELETE FROM {table}")
    set_state(connection, REPLACED_KEY, "true")


def _unused_numbers(connection: sqlite3.Connection) -> Iterator[int]:
    """Return an endless iterator over unused chunk numbers, beginning with those of deleted chunks."""
    used = {number for (number,) in connection.execute("SELECT number FROM chunk")}
    end = max(used, default=-1) + 1
    return chain((number for number in range(end) if number not in used), count(end))
