"""A collection in files: the snapshot, from which all searches read, and its copy in Milvus Lite.

The snapshot is an SQLite file that several processes can open. It gives each chunk a number, which is also
the index of the chunk in the arrays that are kept in memory.
"""

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from sys import intern
from threading import RLock
from typing import Self

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache
from pydantic import TypeAdapter, ValidationError

from ingestion.store.catalogue import DocumentKey, entry_key
from ingestion.store.client import batches
from ingestion.store.collection import (
    NO_FILTERS,
    ChunkHit,
    Collection,
    CollectionWriter,
    StoredChunk,
    T,
    require_manifest,
)
from ingestion.store.lite_copy import ChildLiteCopy, LiteCopy
from ingestion.store.manifest import (
    CollectionManifest,
    IndexedSource,
    RouteCalibration,
    expected_manifest,
)
from ingestion.store.postings import Bm25, Mask, Scores, best_numbers
from ingestion.store.schema import Vector
from ingestion.store.snapshot import (
    MAX_VARIABLES,
    SOURCES_KEY,
    VERSION_KEY,
    get_manifest,
    get_state,
    open_snapshot,
    placeholders,
    select_chunks,
    set_manifest,
    set_state,
    snapshot_errors,
    snapshot_path,
    transaction,
    vector_dimension,
    with_existing_snapshot,
)
from ingestion.store.snapshot_writer import SnapshotWriter
from ingestion.text.words import query_terms
from schemas.choices import Language
from schemas.document import CatalogueEntry, Chunk, SectionKind
from schemas.question import Filters
from schemas.settings import Settings

TOKENIZER = "apidesk"
"""Name of the tokenizer in the manifest. apidesk itself splits the text into words."""

MAX_CACHED_CHUNKS = 1_000
"""Maximum number of decoded chunks to keep, about 5 MB."""

MAX_MASKS = 64
"""Maximum number of filters whose masks are cached; a mask takes one byte per chunk."""

NO_SIMILARITY = -2.0
"""Score of a chunk without a vector, less than any cosine similarity."""

_SOURCES = TypeAdapter(dict[str, IndexedSource])


@dataclass
class _LoadedDocuments:
    """The data that is kept in memory about the documents in one version of the snapshot."""

    full_text: Bm25
    languages: frozenset[Language]
    hits: dict[int, ChunkHit]
    """The hit that a search returns for each chunk, by chunk number; about 250 bytes each."""
    catalogue: list[CatalogueEntry] | None = None
    vectors: npt.NDArray[np.float32] | None = None
    """The vector of each chunk number, scaled to length 1; None until the first search by vector."""
    chunks: LRUCache[int, Chunk] = field(default_factory=lambda: LRUCache(MAX_CACHED_CHUNKS))
    """Decoded chunks by chunk number."""
    masks: LRUCache[str, Mask] = field(default_factory=lambda: LRUCache(MAX_MASKS))
    """Masks of the chunk numbers that match recently used filters, by the filters' JSON."""


@dataclass
class _LoadedState:
    """The part of one version of the snapshot that is kept in memory."""

    version: str
    manifest: CollectionManifest | None
    documents: _LoadedDocuments | None = None
    """None until documents are first read. Without embeddings, most ingestion runs never read them."""


class EmbeddedCollection(Collection):
    """The collection in a snapshot. `Collection` documents the methods.

    Reads see the result of the last finished ingestion run, even if another process ran it. All reads
    within one call of `run` share a transaction. Opening the collection loads no chunks. Only ingestion
    runs open Milvus Lite, to write to it or to restore a missing snapshot from it.
    """

    def __init__(self, path: Path, copy: LiteCopy, expected: CollectionManifest) -> None:
        super().__init__(copy.alias, expected)
        self._path = path
        self._copy = copy
        self._connection = open_snapshot(path)
        self._lock = RLock()
        """Held by the thread that uses the connection."""
        self._state = _LoadedState("", None)

    @classmethod
    def open(cls, settings: Settings, long_lived: bool = False) -> Self:
        """Open the files in `settings`. Raises ConfigurationError and StoreUnavailable."""
        settings = with_existing_snapshot(settings)
        expected = expected_manifest(settings, TOKENIZER)
        copy = ChildLiteCopy(settings) if long_lived else LiteCopy(settings)
        return cls(snapshot_path(settings), copy, expected)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def load(self) -> None:
        self._check_manifest(self.manifest)

    refresh = load

    @property
    def manifest(self) -> CollectionManifest:
        with self._reading() as (_, state):
            return require_manifest(state.manifest)

    @property
    def vector_dimension(self) -> int | None:
        with self._reading() as (connection, _):
            return vector_dimension(connection)

    async def run(self, read: Callable[[], T]) -> T:
        # A read takes a few milliseconds, and would take up to 50 % longer in a thread.
        # Therefore, the read uses a thread only if another thread, such as that of an ingestion run, holds
        # the lock.
        if not self._lock.acquire(blocking=False):
            return await super().run(partial(self._in_one_transaction, read))
        try:
            return self._in_one_transaction(read)
        finally:
            self._lock.release()

    def _in_one_transaction(self, read: Callable[[], T]) -> T:
        with self._reading():
            return read()

    def search_hits(
        self,
        question: str,
        k: int,
        vector: Vector | None = None,
        filters: Filters = NO_FILTERS,
        synonyms: Sequence[str] = (),
    ) -> dict[ChunkHit, float]:
        with self._reading_documents() as (connection, documents):
            mask = None if filters == NO_FILTERS else _mask(connection, documents, filters)
            if vector is None:
                terms = Counter(query_terms(question, synonyms))
                scores = documents.full_text.scores(connection, terms)
                minimum = 0.0
            else:
                scores, minimum = _similarities(connection, documents, vector), NO_SIMILARITY
        numbers = best_numbers(scores, k, mask, minimum)
        best: list[float] = scores[numbers].tolist()
        return {documents.hits[number]: score for number, score in zip(numbers, best, strict=True)}

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        wanted = list(dict.fromkeys(ids))
        chunks = {
            chunk.id: chunk
            for batch in batches(wanted, MAX_VARIABLES)
            for chunk in self._chunks(f"id IN {placeholders(batch)}", batch)
        }
        return [chunks[chunk_id] for chunk_id in wanted if chunk_id in chunks]

    def chunks_of_documents(self, documents: Iterable[DocumentKey]) -> list[Chunk]:
        return [
            chunk
            for key in sorted(set(documents))
            for chunk in self._chunks("source = ? AND document_id = ?", key)
        ]

    def neighbours(self, chunks: Iterable[Chunk], distance: int) -> list[Chunk]:
        condition = "(source = ? AND document_id = ? AND position BETWEEN ? AND ?)"
        ranges = [
            (*chunk.document_key, chunk.position - distance, chunk.position + distance)
            for chunk in chunks
        ]
        values = [value for bounds in ranges for value in bounds]
        return self._chunks(" OR ".join([condition] * len(ranges)), values) if ranges else []

    def chunks_by_api(self, urls: Sequence[str], names: Sequence[str]) -> list[Chunk]:
        # The indexes of both columns contain only non-empty values. `<> ''` lets SQLite use them.
        conditions = [
            f"({column} IN {placeholders(values)} AND {column} <> '')"
            for column, values in (("api_url", urls), ("api_name", names))
            if values
        ]
        return self._chunks(" OR ".join(conditions), [*urls, *names]) if conditions else []

    def sample(self, count: int) -> list[Chunk]:
        # Ids are hashes, so the chunks with the lowest ids are a uniform sample.
        return self._chunks("id IN (SELECT id FROM chunk ORDER BY id LIMIT ?)", [count])

    def catalogue(self) -> list[CatalogueEntry]:
        with self._reading_documents() as (connection, documents):
            if documents.catalogue is None:
                rows = connection.execute("SELECT entry FROM document")
                entries = (CatalogueEntry.model_validate_json(entry) for (entry,) in rows)
                documents.catalogue = sorted(entries, key=entry_key)
            return documents.catalogue

    def word_counts(self, words: Iterable[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        with self._reading_documents() as (connection, _):
            for batch in batches(words, MAX_VARIABLES):
                condition = f"word IN {placeholders(batch)}"
                counts.update(connection.execute(f"SELECT * FROM word WHERE {condition}", batch))
        return counts

    def languages(self) -> frozenset[Language]:
        with self._reading_documents() as (_, documents):
            return documents.languages

    def stored_manifest(self) -> CollectionManifest | None:
        with self._reading() as (connection, _):
            return get_manifest(connection)

    def save_calibration(self, calibration: RouteCalibration) -> None:
        manifest = self.manifest.model_copy(update={"calibration": calibration})
        with self._writing() as connection:
            set_manifest(connection, manifest)
            # The new version makes other processes read the manifest again.
            set_state(connection, VERSION_KEY, str(time.time_ns()))

    def indexed_sources(self) -> dict[str, IndexedSource]:
        with self._reading() as (connection, _):
            text = get_state(connection, SOURCES_KEY)
        try:
            return _SOURCES.validate_json(text)
        except ValidationError:  # not stored since the last write, or stored by another version
            return {}

    def save_indexed_sources(self, sources: dict[str, IndexedSource]) -> None:
        if sources != self.indexed_sources():
            with self._writing() as connection:
                set_state(connection, SOURCES_KEY, _SOURCES.dump_json(sources).decode())

    def save_fingerprints(self, fingerprints: Mapping[DocumentKey, str]) -> None:
        rows = [(fingerprint, *key) for key, fingerprint in fingerprints.items()]
        if rows:
            with self._writing() as connection:
                connection.executemany(
                    "UPDATE chunk SET fingerprint = ? WHERE source = ? AND document_id = ?", rows
                )

    def stored_chunks(self, excluded_sources: Sequence[str] = ()) -> Iterator[StoredChunk]:
        with self._reading() as (connection, _):
            rows = connection.execute(
                f"SELECT {', '.join(StoredChunk._fields)} FROM chunk "
                f"WHERE source NOT IN {placeholders(excluded_sources)}",
                list(excluded_sources),
            ).fetchall()
        yield from map(StoredChunk._make, rows)

    def recover(self, rebuild: bool) -> None:
        # Complete an interrupted copy to Milvus Lite, or restore a missing snapshot from it. A rebuild
        # needs neither, because it writes everything.
        with self._reading() as (connection, state):
            manifest = state.manifest
            has_journal = connection.execute("SELECT 1 FROM journal LIMIT 1").fetchone() is not None
        if manifest is None:
            self._copy.check_manifest(None if rebuild else self._expected)
            if not rebuild:
                self._restore()
        elif has_journal and not rebuild:
            with self._lock, snapshot_errors(self._path):
                self._copy.replay_journal(self._connection, manifest)

    def _restore(self) -> None:
        writer, is_empty = self._writer(rebuild=False), True
        try:
            for chunks, vectors in self._copy.stored_rows(bool(self._expected.embedding_model)):
                writer.put(chunks, vectors)
                is_empty = False
            if not is_empty:
                writer.finish_restoring()
        except BaseException:
            writer.abandon()
            raise

    def writer(self, rebuild: bool) -> CollectionWriter:
        if not rebuild:
            self.check()
        return self._writer(rebuild)

    def _writer(self, rebuild: bool) -> SnapshotWriter:
        return SnapshotWriter(self._path, self._copy, self._expected, rebuild=rebuild)

    @contextmanager
    def _reading(self) -> Iterator[tuple[sqlite3.Connection, _LoadedState]]:
        """Run the block in one transaction. Yields the connection and the state that is kept in memory.

        If the snapshot has changed, the state is replaced first.
        """
        with self._lock, snapshot_errors(self._path):
            if self._connection.in_transaction:  # within another read of this thread
                yield self._connection, self._state
                return
            with transaction(self._connection):
                version = get_state(self._connection, VERSION_KEY)
                if version != self._state.version:
                    self._state = _LoadedState(version, get_manifest(self._connection))
                yield self._connection, self._state

    @contextmanager
    def _reading_documents(self) -> Iterator[tuple[sqlite3.Connection, _LoadedDocuments]]:
        """Run the block as `_reading` does, but yield the documents instead of the state.

        The documents are loaded first if needed. Raises CollectionMissing, and CollectionMismatch if the
        collection was created with settings that differ from the current ones.
        """
        with self._reading() as (connection, state):
            self._check_manifest(require_manifest(state.manifest))
            if state.documents is None:
                state.documents = _load_documents(connection)
            yield connection, state.documents

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with (
            self._lock,
            snapshot_errors(self._path),
            transaction(self._connection, "IMMEDIATE"),
        ):
            yield self._connection

    def _chunks(self, condition: str, values: Sequence[object]) -> list[Chunk]:
        """Return the chunks that match `condition`, sorted by document and position."""
        with self._reading_documents() as (connection, documents):
            rows = connection.execute(
                f"SELECT number FROM chunk WHERE {condition} ORDER BY source, document_id, position",
                values,
            )
            numbers = [number for (number,) in rows]
            cached = documents.chunks
            chunks = {number: cached[number] for number in numbers if number in cached}
            missing = [number for number in numbers if number not in chunks]
            for batch in batches(missing, MAX_VARIABLES):
                chunks.update(select_chunks(connection, f"number IN {placeholders(batch)}", batch))
            cached.update({number: chunks[number] for number in missing})
            return [chunks[number] for number in numbers]


def _load_documents(connection: sqlite3.Connection) -> _LoadedDocuments:
    lengths, hits, languages = dict[int, int](), dict[int, ChunkHit](), set[Language]()
    kinds = dict[SectionKind, SectionKind]()
    rows = connection.execute(
        "SELECT number, words, language, id, source, document_id, kind FROM chunk"
    )
    for number, words, language, chunk_id, source, document_id, kind in rows:
        lengths[number] = words
        languages.add(language)
        # Chunks share one copy of each source, document id and kind. Separate copies for every chunk would
        # take most of the memory.
        hits[number] = ChunkHit(
            chunk_id, intern(source), intern(document_id), kinds.setdefault(kind, kind)
        )
    return _LoadedDocuments(Bm25(lengths), frozenset(languages), hits)


def _mask(connection: sqlite3.Connection, documents: _LoadedDocuments, filters: Filters) -> Mask:
    """Return the mask of the chunk numbers that match `filters`; cached until the snapshot changes."""
    key = filters.model_dump_json()
    if (cached := documents.masks.get(key)) is not None:
        return cached
    conditions, values = ["1"], list[object]()
    for column, value in (("service_id", filters.service), ("source", filters.source)):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    for name, value in filters.metadata.items():
        # `json_extract` is not used, because its paths cannot name a key that contains a quote.
        conditions.append("(?, ?) IN (SELECT key, value FROM json_each(metadata))")
        values += [name, value]
    query = f"SELECT number FROM chunk WHERE {' AND '.join(conditions)}"
    mask = np.zeros(len(documents.full_text), dtype=np.bool_)
    mask[[number for (number,) in connection.execute(query, values)]] = True
    documents.masks[key] = mask
    return mask


def _similarities(
    connection: sqlite3.Connection, documents: _LoadedDocuments, vector: Vector
) -> Scores:
    """Return the cosine similarity of `vector` to each chunk's vector, by chunk number.

    The result for a number without a vector is `NO_SIMILARITY`.
    """
    if documents.vectors is None:
        documents.vectors = _read_vectors(connection, len(documents.full_text), len(vector))
    query = np.array(vector, dtype=np.float32)
    length = float(np.linalg.norm(query)) or 1.0
    similarities: Scores = documents.vectors @ (query / length)
    similarities[~documents.vectors.any(axis=1)] = NO_SIMILARITY
    return similarities


def _read_vectors(
    connection: sqlite3.Connection, count: int, dimension: int
) -> npt.NDArray[np.float32]:
    """Return the vector of each chunk number, scaled to length 1; zeros for a number without a vector."""
    vectors = np.zeros((count, dimension), dtype=np.float32)
    for number, components in connection.execute("SELECT number, components FROM vector"):
        vectors[number] = np.frombuffer(components, np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.where(lengths == 0, 1, lengths)
    return vectors
