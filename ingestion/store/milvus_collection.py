"""A collection that a Milvus server stores and searches.

Each process of apidesk caches word counts, chunks that are read by id, and the catalogue.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self, get_args

from ingestion.store.cache import CollectionReloader, ReadThroughCache
from ingestion.store.catalogue import DocumentKey, drop_leftovers, read_catalogue, words_name
from ingestion.store.client import (
    apis_filter,
    documents_filter,
    ids_filter,
    is_lite,
    language_filter,
    literal,
    milvus_errors,
    milvus_filter,
    neighbours_filter,
    open_milvus,
    row_pages,
)
from ingestion.store.collection import (
    NO_FILTERS,
    NOTHING_INDEXED,
    WARM_UP_QUESTION,
    ChunkHit,
    Collection,
    CollectionWriter,
    StoredChunk,
    require_manifest,
)
from ingestion.store.manifest import (
    CollectionManifest,
    IndexedSource,
    RouteCalibration,
    catalogue_version,
    collection_version,
    expected_manifest,
    read_manifest,
    read_sources,
    write_manifest,
    write_sources,
)
from ingestion.store.milvus_writers import InPlaceWriter, NextCollectionWriter
from ingestion.store.schema import CHUNK_FIELDS, Vector, chunk_from_row, dense_dimension
from ingestion.text.words import query_terms
from schemas.choices import Language
from schemas.document import CatalogueEntry, Chunk
from schemas.errors import CollectionMissing
from schemas.question import Filters
from schemas.settings import Settings

if TYPE_CHECKING:
    from pymilvus import MilvusClient

MAX_CACHED_WORDS = 50_000
"""Maximum number of words whose counts are cached, about 5 MB."""

MAX_CACHED_CHUNKS = 1_000
"""Maximum number of cached chunks, about 5 MB."""


class MilvusCollection(Collection):
    """The collection that a Milvus alias points to. `Collection` documents the methods.

    The methods for searching and reading check, at most once a second, whether another process has changed
    the collection. If so, they load it again.
    """

    def __init__(
        self, client: "MilvusClient", alias: str, expected: CollectionManifest, in_place: bool
    ) -> None:
        """Initialise the collection; `load` or the first search loads it.

        `expected` is the manifest that a collection created with the current settings would have. If
        `in_place` is false, every ingestion run writes a new collection instead of updating rows.
        """
        super().__init__(alias, expected)
        self._client = client
        self._in_place = in_place
        self._manifest: CollectionManifest | None = None
        self._vector_dimension: int | None = None
        self._counts = ReadThroughCache(self._read_word_counts, MAX_CACHED_WORDS)
        self._by_id = ReadThroughCache(self._read_by_id, MAX_CACHED_CHUNKS)
        self._languages = frozenset[Language]()
        self._catalogue: tuple[str, list[CatalogueEntry]] = ("", [])
        """Version and entries of the cached catalogue."""
        self._reloader = CollectionReloader(self._read_version, self.load)

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Connect to the server in `settings`. Raises StoreUnavailable.

        If the server runs Milvus Lite, ingestion runs do not update rows in place.
        """
        client = open_milvus(settings)
        lite = is_lite(client)
        expected = expected_manifest(settings, "standard" if lite else "whitespace")
        return cls(client, _alias(client, settings), expected, in_place=not lite)

    def close(self) -> None:
        self._client.close()

    def load(self) -> None:
        with self._reloader.exclusive_load():
            if not self._client.has_collection(self.alias):
                self._manifest = None
                raise CollectionMissing(NOTHING_INDEXED)
            version = collection_version(self._client, self.alias)
            manifest = read_manifest(self._client, self.alias)
            self._check_manifest(manifest)
            self._client.load_collection(self.alias)
            self._client.load_collection(words_name(self.alias))
            if self._has_lost_rows(manifest):
                raise CollectionMissing(
                    f"the collection {self.alias} is damaged ({manifest.rows} rows were written, "
                    "none are left): run `apidesk ingest`"
                )
            self._manifest = manifest
            self._vector_dimension = dense_dimension(self._client, self.alias)
            self._counts.clear()
            self._by_id.clear()
            self._languages = self._read_languages()
            self._reloader.mark_loaded(version)
            self.search(WARM_UP_QUESTION, 1)

    def refresh(self) -> None:
        self._reloader.refresh()

    @property
    def manifest(self) -> CollectionManifest:
        return require_manifest(self._manifest)

    @property
    def vector_dimension(self) -> int | None:
        return self._vector_dimension

    # --- searching and reading --------------------------------------------------------------------

    def search_hits(
        self,
        question: str,
        k: int,
        vector: Vector | None = None,
        filters: Filters = NO_FILTERS,
        synonyms: Sequence[str] = (),
    ) -> dict[ChunkHit, float]:
        self.refresh()
        terms = " ".join(query_terms(question, synonyms))
        field, metric, query = (
            ("sparse", "BM25", terms) if vector is None else ("dense", "COSINE", vector)
        )
        output_fields = list(ChunkHit._fields)
        with self._reloader.store_errors():
            (hits,) = self._client.search(
                self.alias,
                data=[query],
                anns_field=field,
                # Milvus Lite refuses the client's default parameters for BM25.
                search_params={"metric_type": metric, "params": {}},
                limit=k,
                filter=milvus_filter(filters),
                output_fields=output_fields,
            )
        scores = {
            ChunkHit(*(hit["entity"][name] for name in output_fields)): float(hit["distance"])
            for hit in hits
        }
        # Milvus Lite reports BM25 scores as negative distances.
        return {hit: abs(score) for hit, score in scores.items()} if vector is None else scores

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        self.refresh()
        return list(self._by_id.get(ids).values())

    def chunks_of_documents(self, documents: Iterable[DocumentKey]) -> list[Chunk]:
        expression = documents_filter(documents)
        return self._query_chunks(expression) if expression else []

    def neighbours(self, chunks: Iterable[Chunk], distance: int) -> list[Chunk]:
        expression = neighbours_filter(chunks, distance)
        return self._query_chunks(expression) if expression else []

    def chunks_by_api(self, urls: Sequence[str], names: Sequence[str]) -> list[Chunk]:
        return self._query_chunks(apis_filter(urls, names)) if urls or names else []

    def sample(self, count: int) -> list[Chunk]:
        # Ids are hashes in hexadecimal, so the chunks with the lowest ids are a uniform sample. `g` sorts
        # after all hexadecimal digits, so the filter also matches the ids that begin with the bound.
        share = min(1.0, count / max(1, self.manifest.rows))
        bound = f"{int(share * 0xFFFFFFFF):08x}"
        return self._query_chunks(f"id <= {literal(bound + 'g')}")

    def catalogue(self) -> list[CatalogueEntry]:
        # If an earlier version of apidesk created the collection without a catalogue, the result is empty.
        # The next ingestion run creates the catalogue.
        self.refresh()
        with self._reloader.store_errors():
            version = catalogue_version(self._client, self.alias)
            if version != self._catalogue[0]:
                entries = read_catalogue(self._client, self.alias) if version else []
                self._catalogue = (version, entries)
        return self._catalogue[1]

    def word_counts(self, words: Iterable[str]) -> dict[str, int]:
        self.refresh()
        return self._counts.get(words)

    def languages(self) -> frozenset[Language]:
        self.refresh()
        return self._languages

    def _read_version(self) -> str | None:
        if not self._client.has_collection(self.alias):
            return None
        return collection_version(self._client, self.alias)

    def _read_by_id(self, ids: list[str]) -> dict[str, Chunk]:
        return {chunk.id: chunk for chunk in self._query_chunks(ids_filter(ids))}

    def _read_languages(self) -> frozenset[Language]:
        found = {
            language: self._client.query(self.alias, language_filter(language), ["id"], limit=1)
            for language in get_args(Language)
        }
        return frozenset(language for language, rows in found.items() if rows)

    def _read_word_counts(self, words: list[str]) -> dict[str, int]:
        with self._reloader.store_errors():
            rows = self._client.query(
                words_name(self.alias),
                filter=f"word in {literal(words)}",
                output_fields=["word", "occurrences"],
            )
        return {row["word"]: row["occurrences"] for row in rows if row["occurrences"]}

    def _query_chunks(self, expression: str) -> list[Chunk]:
        self.refresh()
        with self._reloader.store_errors():
            rows = self._client.query(self.alias, filter=expression, output_fields=CHUNK_FIELDS)
        chunks = map(chunk_from_row, rows)
        return sorted(chunks, key=lambda chunk: (chunk.source, chunk.document_id, chunk.position))

    # --- ingestion --------------------------------------------------------------------------------

    def stored_manifest(self) -> CollectionManifest | None:
        with milvus_errors():
            exists = self._client.has_collection(self.alias)
            return read_manifest(self._client, self.alias) if exists else None

    def save_calibration(self, calibration: RouteCalibration) -> None:
        manifest = self.manifest.model_copy(update={"calibration": calibration})
        with milvus_errors():
            name = self._client.describe_alias(self.alias)["collection_name"]
            write_manifest(self._client, name, manifest)
        self._manifest = manifest

    def indexed_sources(self) -> dict[str, IndexedSource]:
        manifest = self.stored_manifest()
        with milvus_errors():
            if manifest is None or manifest.incomplete or self._has_lost_rows(manifest):
                return {}
            return read_sources(self._client, self.alias)

    def save_indexed_sources(self, sources: dict[str, IndexedSource]) -> None:
        with milvus_errors():
            if sources != read_sources(self._client, self.alias):
                write_sources(self._client, self.alias, sources)

    def save_fingerprints(self, fingerprints: Mapping[DocumentKey, str]) -> None:
        pass

    def stored_chunks(self, excluded_sources: Sequence[str] = ()) -> Iterator[StoredChunk]:
        if self.stored_manifest() is None:
            return
        with milvus_errors():
            self._client.load_collection(self.alias)
            expression = f"source not in {literal(excluded_sources)}" if excluded_sources else ""
            for page in row_pages(self._client, self.alias, list(StoredChunk._fields), expression):
                yield from (StoredChunk(**row) for row in page)

    def recover(self, rebuild: bool) -> None:
        self.stored_manifest()  # raises CollectionMismatch if apidesk did not create the collection
        with milvus_errors():
            drop_leftovers(self._client, self.alias)

    def writer(self, rebuild: bool) -> CollectionWriter:
        if not rebuild:
            self.check()
        stored = self.stored_manifest()
        with milvus_errors():
            if stored is not None and self._has_lost_rows(stored):
                stored = None
        if stored is not None and self._in_place and not rebuild:
            return InPlaceWriter(self._client, self.alias, stored)
        previous = None if rebuild else stored
        return NextCollectionWriter(self._client, self.alias, self._expected, previous)

    def _has_lost_rows(self, manifest: CollectionManifest) -> bool:
        """Return whether all rows are lost. `milvus-lite server` opens a damaged store as an empty one."""
        rows = int(self._client.get_collection_stats(self.alias)["row_count"])
        return bool(manifest.rows) and not rows


def _alias(client: "MilvusClient", settings: Settings) -> str:
    """Return the alias in `settings`, or the default alias of earlier versions if only that exists."""
    name, former = settings.collection, settings.former_collection
    with milvus_errors():
        if former and not client.has_collection(name) and client.has_collection(former):
            return former
    return name
