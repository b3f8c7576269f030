"""Searches and reads a collection on a Milvus server."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, get_args

from ingestion.store.cache import CollectionReloader, ReadThroughCache
from ingestion.store.catalogue import DocumentKey, document_key, read_catalogue, words_name
from ingestion.store.client import (
    in_language,
    literal,
    matching,
    of_apis,
    of_documents,
    with_ids,
)
from ingestion.store.collection import NO_FILTERS, ChunkHit, Collection, SearchRoute, loaded
from ingestion.store.manifest import CollectionManifest, catalogue_version, collection_version
from ingestion.store.schema import CHUNK_FIELDS, Vector, chunk_from_row
from ingestion.text.words import query_terms
from schemas.choices import Language
from schemas.document import CatalogueEntry, Chunk, RetrievedChunk
from schemas.question import Filters

if TYPE_CHECKING:
    from pymilvus import MilvusClient

MAX_CACHED_WORDS = 50_000
"""Maximum number of words whose counts are cached, about 5 MB."""

MAX_CACHED_CHUNKS = 1_000
"""Maximum number of chunks in each of the caches by id and by position, about 5 MB per cache."""


class MilvusReader(Collection):
    """Searches and reads the collection that an alias points to.

    Reads check, at most once a second, whether another process has written the collection, and load it
    again if so.
    """

    def __init__(self, client: "MilvusClient", alias: str, expected: CollectionManifest) -> None:
        super().__init__(alias, expected)
        self._client = client
        self._manifest: CollectionManifest | None = None
        self._counts = ReadThroughCache(self._read_word_counts, MAX_CACHED_WORDS)
        self._by_id = ReadThroughCache(self._read_by_id, MAX_CACHED_CHUNKS)
        self._languages = ReadThroughCache(self._read_languages, len(get_args(Language)))
        self._catalogue: tuple[str, list[CatalogueEntry]] = ("", [])
        """Version and entries of the cached catalogue."""
        self._reloader = CollectionReloader(self._read_version, self.load)

    @property
    def manifest(self) -> CollectionManifest:
        """The manifest of the loaded collection. Raises CollectionMissing before `load`."""
        return loaded(self._manifest)

    def refresh(self) -> None:
        """Load the collection again if another process has written it."""
        self._reloader.refresh()

    def search(
        self, question: str, k: int, route: SearchRoute, vector: Vector | None = None
    ) -> list[RetrievedChunk]:
        """Search by one route and return the best `k` chunks, best first.

        `vector` is the embedding of `question`; only the dense route needs it.
        """
        return [
            RetrievedChunk(chunk=chunk_from_row(hit["entity"]), score=_score(hit, route))
            for hit in self._search_one(question, k, route, vector, NO_FILTERS, CHUNK_FIELDS)
        ]

    def search_hits(
        self,
        question: str,
        k: int,
        route: SearchRoute,
        vector: Vector | None = None,
        filters: Filters = NO_FILTERS,
        synonyms: Sequence[str] = (),
    ) -> dict[ChunkHit, float]:
        """Return the best `k` chunks that match `filters` with their scores, best first."""
        fields = list(ChunkHit._fields)
        hits = self._search_one(question, k, route, vector, filters, fields, synonyms)
        return {
            ChunkHit(*(hit["entity"][field] for field in fields)): _score(hit, route)
            for hit in hits
        }

    def search_documents(
        self, questions: Sequence[str], k: int, route: SearchRoute, vectors: Sequence[Vector]
    ) -> list[list[DocumentKey]]:
        """Search for all `questions` in one request; return the documents of the best `k` chunks of each.

        The documents are in the order of their chunks, best first. `vectors` are the embeddings of
        `questions`; only the dense route needs them.
        """
        queries = (
            list(vectors)
            if route == "dense"
            else [" ".join(query_terms(question)) for question in questions]
        )
        fields = ["source", "document_id"]
        return [
            [document_key(hit["entity"]) for hit in hits]
            for hits in self._search_all(queries, k, route, NO_FILTERS, fields)
        ]

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        """Return the chunks with these ids, in the order of `ids`; unknown ids are skipped."""
        self.refresh()
        return list(self._by_id.get(ids).values())

    def chunks_of_documents(self, documents: Iterable[DocumentKey]) -> list[Chunk]:
        """Return all chunks of these documents, sorted by document and position."""
        expression = of_documents(documents)
        return self._query_chunks(expression) if expression else []

    def chunks_by_api(self, urls: Sequence[str], names: Sequence[str]) -> list[Chunk]:
        """Return all chunks of the APIs with one of these URLs or names, sorted by position."""
        if not urls and not names:
            return []
        return self._query_chunks(of_apis(urls, names))

    def sample(self, count: int) -> list[Chunk]:
        """Return a sample of about `count` chunks; it is the same for the same collection.

        Ids are hashes, so the chunks with the lowest ids are a uniform sample.
        """
        share = min(1.0, count / max(1, self.manifest.rows))
        bound = f"{int(share * 0xFFFFFFFF):08x}"
        return self._query_chunks(f"id <= {literal(bound + 'g')}")

    def catalogue(self) -> list[CatalogueEntry]:
        """Return an entry per document, sorted by source and id. Do not modify the list.

        The list is cached until a run writes the collection. It is empty if an earlier version of
        apidesk created the collection without a catalogue; the next ingestion run creates one.
        """
        self.refresh()
        with self._reloader.store_errors():
            version = catalogue_version(self._client, self._alias)
            if version != self._catalogue[0]:
                entries = read_catalogue(self._client, self._alias) if version else []
                self._catalogue = (version, entries)
        return self._catalogue[1]

    def word_counts(self, words: Iterable[str]) -> dict[str, int]:
        """Return how often each of `words` occurs in all chunks. Words that do not occur are omitted."""
        self.refresh()
        return self._counts.get(words)

    def languages(self) -> frozenset[Language]:
        """Return the languages of the documents."""
        self.refresh()
        return frozenset(self._languages.get(get_args(Language)))

    def _clear_caches(self) -> None:
        for cache in (self._counts, self._by_id, self._languages):
            cache.clear()

    def _read_version(self) -> str | None:
        if not self._client.has_collection(self._alias):
            return None
        return collection_version(self._client, self._alias)

    def _read_by_id(self, ids: list[str]) -> dict[str, Chunk]:
        return {chunk.id: chunk for chunk in self._query_chunks(with_ids(ids))}

    def _read_languages(self, languages: list[Language]) -> dict[Language, bool]:
        with self._reloader.store_errors():
            return {language: True for language in languages if self._has_language(language)}

    def _has_language(self, language: Language) -> bool:
        rows = self._client.query(
            self._alias, filter=in_language(language), output_fields=["id"], limit=1
        )
        return bool(rows)

    def _read_word_counts(self, words: list[str]) -> dict[str, int]:
        with self._reloader.store_errors():
            rows = self._client.query(
                words_name(self._alias),
                filter=f"word in {literal(words)}",
                output_fields=["word", "occurrences"],
            )
        return {row["word"]: row["occurrences"] for row in rows if row["occurrences"]}

    def _query_chunks(self, expression: str) -> list[Chunk]:
        self.refresh()
        with self._reloader.store_errors():
            rows = self._client.query(self._alias, filter=expression, output_fields=CHUNK_FIELDS)
        chunks = map(chunk_from_row, rows)
        return sorted(chunks, key=lambda chunk: (chunk.source, chunk.document_id, chunk.position))

    def _search_one(
        self,
        question: str,
        k: int,
        route: SearchRoute,
        vector: Vector | None,
        filters: Filters,
        fields: list[str],
        synonyms: Sequence[str] = (),
    ) -> list[dict[str, Any]]:
        query = vector if route == "dense" else " ".join(query_terms(question, synonyms))
        return self._search_all([query], k, route, filters, fields)[0]

    def _search_all(
        self,
        queries: Sequence[object],
        k: int,
        route: SearchRoute,
        filters: Filters,
        fields: list[str],
    ) -> list[list[dict[str, Any]]]:
        """Return the hits for each query. Queries are words (full-text route) or vectors (dense route)."""
        self.refresh()
        index, metric = ("sparse", "BM25") if route == "full_text" else ("dense", "COSINE")
        with self._reloader.store_errors():
            hits = self._client.search(
                self._alias,
                data=list(queries),
                anns_field=index,
                # Milvus Lite refuses the client's default parameters for BM25.
                search_params={"metric_type": metric, "params": {}},
                limit=k,
                filter=matching(filters),
                output_fields=fields,
            )
        return [list(query_hits) for query_hits in hits]


def _score(hit: dict[str, Any], route: SearchRoute) -> float:
    """Return the score of `hit`; higher is better. Milvus Lite reports BM25 as a negative distance."""
    distance = float(hit["distance"])
    return abs(distance) if route == "full_text" else distance
