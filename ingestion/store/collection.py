"""The collection of chunks. Ingestion writes it, and retrieval searches it.

There are two implementations. `MilvusCollection` is stored and searched by a Milvus server.
`EmbeddedCollection` is stored in an SQLite file, called the snapshot. Searches read this file; Milvus Lite
contains a copy of it. Both implementations index the same words with the same BM25 parameters, so they rank
chunks alike.

A collection has a manifest (manifest.py), which contains the settings with which it was created, and a
catalogue (catalogue.py), which has one entry per document.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as AbstractCollection
from typing import NamedTuple, TypeVar

from ingestion.providers import ModelRole
from ingestion.store.catalogue import DocumentKey
from ingestion.store.manifest import (
    CollectionManifest,
    IndexedSource,
    RouteCalibration,
    check_manifest,
)
from ingestion.store.schema import Vector
from schemas.choices import Language
from schemas.document import CatalogueEntry, Chunk, RetrievedChunk, SectionKind
from schemas.errors import CollectionMissing
from schemas.question import Filters
from schemas.settings import Settings

T = TypeVar("T")

NO_FILTERS = Filters()
"""Matches every chunk."""

WARM_UP_QUESTION = "预热 warm-up"
"""Question to search for after loading, so that word lists are loaded before the first user's question."""

NOTHING_INDEXED = "nothing has been indexed yet: run `apidesk ingest`"
"""Message of CollectionMissing if there is no collection."""


class ChunkHit(NamedTuple):
    """A chunk that a search found, without its text. The text is read only for the chunks that are used."""

    id: str
    source: str
    document_id: str
    kind: SectionKind

    @classmethod
    def from_chunk(cls, chunk: Chunk) -> "ChunkHit":
        """Return the hit that stands for `chunk`."""
        return cls(chunk.id, chunk.source, chunk.document_id, chunk.kind)

    @property
    def document_key(self) -> DocumentKey:
        """The source and the id of the chunk's document, which together are unique."""
        return self.source, self.document_id


class StoredChunk(NamedTuple):
    """The fields of a stored chunk that a run compares with the sources (see `StoredDocuments`)."""

    id: str
    source: str
    document_id: str
    content_hash: str
    fingerprint: str


class CollectionWriter(ABC):
    """Writes the chunks of one ingestion run, and deletes the chunks that are no longer in the sources."""

    @abstractmethod
    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Write new or changed `chunks`. `vectors` are their embeddings; None if there is no model."""

    @abstractmethod
    def finish(self, dropped: AbstractCollection[str]) -> CollectionManifest:
        """Delete the chunks with the ids `dropped`, complete the collection and return its manifest.

        Until then, searches still find these chunks.
        """

    @abstractmethod
    def abandon(self) -> None:
        """Clean up after an error in the run, whether or not `finish` was called."""


class Collection(ABC):
    """The chunks of a platform, searchable by words and, with an embedding model, by vectors.

    All methods except `run` block: call them through `run` or in a worker thread. Methods that search or
    read raise CollectionMissing if nothing has been indexed, CollectionMismatch if the collection was
    created with settings that differ from the current ones, and StoreUnavailable if the store does not
    answer. Such methods see writes of other processes at once or, on a Milvus server, within a second.
    """

    def __init__(self, alias: str, expected: CollectionManifest) -> None:
        """Create the interface to the collection that is named `alias`.

        `expected` is the manifest that a collection created with the current settings would have.
        """
        self.alias = alias
        self._expected = expected

    @staticmethod
    def connect(settings: Settings, *, long_lived: bool = False) -> "Collection":
        """Connect to the store in `settings`. Raises ConfigurationError and StoreUnavailable.

        `long_lived` must be true if this process continues to run after an ingestion run. Milvus Lite then
        runs in a child process, so that its memory is freed after the run.
        """
        # Imported here, because the implementations import this module. They import pymilvus when needed.
        if settings.embedded:
            from ingestion.store.embedded_collection import EmbeddedCollection

            return EmbeddedCollection.open(settings, long_lived)
        from ingestion.store.milvus_collection import MilvusCollection

        return MilvusCollection.open(settings)

    @property
    def embedding_role(self) -> ModelRole:
        """The embedding model of this collection."""
        return ModelRole("EMBEDDING", self._expected.embedding_model)

    @property
    @abstractmethod
    def manifest(self) -> CollectionManifest:
        """The manifest of the collection; call `load` first. Raises CollectionMissing."""

    @property
    @abstractmethod
    def vector_dimension(self) -> int | None:
        """The length of the stored vectors; None if there are none. Call `load` first."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    def load(self) -> None:
        """Load the collection for searching.

        Raises CollectionMissing if there is no collection or its rows are lost. Raises CollectionMismatch
        if the collection was created with settings that differ from the current ones.
        """

    @abstractmethod
    def refresh(self) -> None:
        """Load the collection again if another process has written it."""

    # --- searching and reading --------------------------------------------------------------------

    async def run(self, read: Callable[[], T]) -> T:
        """Return the result of `read`, which reads this collection.

        A Milvus server is read in a worker thread. An embedded collection is usually read directly, which
        blocks the event loop for a few milliseconds.
        """
        return await asyncio.to_thread(read)

    @abstractmethod
    def search_hits(
        self,
        question: str,
        k: int,
        vector: Vector | None = None,
        filters: Filters = NO_FILTERS,
        synonyms: Sequence[str] = (),
    ) -> dict[ChunkHit, float]:
        """Return the best `k` chunks that match `filters` with their scores, best first.

        With `vector`, the embedding of `question`, the search compares vectors. Without `vector`, it is a
        full-text search for `question` and for `synonyms`, which weigh less than the question's words.
        Higher scores are better.
        """

    @abstractmethod
    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        """Return the chunks with these ids, in the order of `ids`; unknown ids are skipped."""

    @abstractmethod
    def chunks_of_documents(self, documents: Iterable[DocumentKey]) -> list[Chunk]:
        """Return all chunks of these documents, sorted by document and position."""

    @abstractmethod
    def neighbours(self, chunks: Iterable[Chunk], distance: int) -> list[Chunk]:
        """Return the chunks at most `distance` positions from one of `chunks` in the same document.

        The result includes `chunks`, and is sorted by document and position.
        """

    @abstractmethod
    def chunks_by_api(self, urls: Sequence[str], names: Sequence[str]) -> list[Chunk]:
        """Return all chunks of the APIs with these URLs or names, sorted by document and position."""

    @abstractmethod
    def sample(self, count: int) -> list[Chunk]:
        """Return a sample of about `count` chunks. The same collection always gives the same sample."""

    @abstractmethod
    def catalogue(self) -> list[CatalogueEntry]:
        """Return an entry per document, sorted by source and id. Do not modify the list.

        The list is cached until a run writes the collection.
        """

    @abstractmethod
    def word_counts(self, words: Iterable[str]) -> dict[str, int]:
        """Return how often each of `words` occurs in all chunks. Words that do not occur are omitted."""

    @abstractmethod
    def languages(self) -> frozenset[Language]:
        """Return the languages of the documents."""

    def search(self, question: str, k: int, vector: Vector | None = None) -> list[RetrievedChunk]:
        """Return the best `k` chunks, best first; `search_hits` describes the arguments."""
        hits = self.search_hits(question, k, vector)
        scores = {hit.id: score for hit, score in hits.items()}
        return [
            RetrievedChunk(chunk=chunk, score=scores[chunk.id])
            for chunk in self.chunks_by_id(list(scores))
        ]

    def chunks_of_document(self, document_id: str, source: str) -> list[Chunk]:
        """Return all chunks of one document, sorted by position."""
        return self.chunks_of_documents([(source, document_id)])

    # --- ingestion --------------------------------------------------------------------------------

    @abstractmethod
    def stored_manifest(self) -> CollectionManifest | None:
        """Return the stored manifest without comparing it to the settings; None if nothing is indexed.

        Raises CollectionMismatch if apidesk did not create the collection.
        """

    def exists(self) -> bool:
        """Return whether anything has been indexed. Raises the same errors as `stored_manifest`."""
        return self.stored_manifest() is not None

    @abstractmethod
    def save_calibration(self, calibration: RouteCalibration) -> None:
        """Store the calibration of full-text and dense search in the manifest."""

    @abstractmethod
    def indexed_sources(self) -> dict[str, IndexedSource]:
        """Return the state of every source after the last run.

        The result is empty if there was no run, or if the state is unknown, for example because the last
        run was interrupted.
        """

    @abstractmethod
    def save_indexed_sources(self, sources: dict[str, IndexedSource]) -> None:
        """Store the state of every source after this run."""

    @abstractmethod
    def save_fingerprints(self, fingerprints: Mapping[DocumentKey, str]) -> None:
        """Store the file fingerprints of documents with unchanged chunks.

        The next run then does not parse these files again. On a Milvus server, this method does nothing,
        because only whole rows can be written there.
        """

    @abstractmethod
    def stored_chunks(self, excluded_sources: Sequence[str] = ()) -> Iterator[StoredChunk]:
        """Yield every stored chunk except those of `excluded_sources`.

        The settings with which the collection was created may differ from the current ones.
        """

    @abstractmethod
    def recover(self, rebuild: bool) -> None:
        """Complete or remove what an interrupted run has left, and restore a missing snapshot file.

        Call this at the start of a run; `rebuild` says whether that run rebuilds the collection. May raise
        the same errors as `writer`.
        """

    @abstractmethod
    def writer(self, rebuild: bool) -> CollectionWriter:
        """Return the writer of one run.

        With `rebuild`, the caller must write all chunks; without it, only new and changed chunks. Raises
        CollectionMismatch if apidesk did not create the collection or, without `rebuild`, if the collection
        was created with settings that differ from the current ones.
        """

    def check(self) -> None:
        """Raise CollectionMismatch if the settings of the collection differ from the current ones."""
        if stored := self.stored_manifest():
            self._check_manifest(stored)

    def _check_manifest(self, manifest: CollectionManifest) -> None:
        check_manifest(self.alias, manifest, self._expected)


def require_manifest(manifest: CollectionManifest | None) -> CollectionManifest:
    """Return `manifest`. Raises CollectionMissing if it is None."""
    if manifest is None:
        raise CollectionMissing(NOTHING_INDEXED)
    return manifest
