"""The Milvus collection of chunks: what questions ask of it, and the writers of it.

Its name in Settings is an alias. Every method blocks; call them in a worker thread.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from ingestion.providers import ModelRole
from ingestion.store.cache import Freshness, ReadThroughCache
from ingestion.store.catalogue import DocumentKey, document_key
from ingestion.store.client import (
    ChunkPlace,
    at_places,
    every_row,
    in_language,
    is_lite,
    literal,
    milvus_errors,
    of_apis,
    of_documents,
    open_milvus,
    passing,
    with_ids,
)
from ingestion.store.schema import (
    CHUNK_FIELDS,
    CollectionManifest,
    IndexedSource,
    RouteCalibration,
    Vector,
    catalogue_stamp,
    chunk_of,
    collection_state,
    expected_manifest,
    read_manifest,
    read_sources,
    words_name,
    write_manifest,
    write_sources,
)
from ingestion.store.writers import (
    CollectionWriter,
    InPlaceWriter,
    NextCollectionWriter,
    drop_leftovers,
    read_catalogue,
)
from ingestion.text.words import query_text, with_parts
from schemas.choices import Language
from schemas.document import CatalogueEntry, Chunk, RetrievedChunk
from schemas.errors import CollectionMismatch, CollectionMissing
from schemas.question import Filters
from schemas.settings import Settings

if TYPE_CHECKING:
    from pymilvus import MilvusClient

SearchRoute = Literal["full_text", "dense"]
"""An index that can be searched."""

REMEMBERED_WORDS = 50_000
"""Words whose counts are kept: some 5 MB."""

REMEMBERED_CHUNKS = 1_000
"""Chunks that are kept of those that were found, and of those beside them: some 5 MB each."""

NO_FILTERS = Filters()
"""Everything may be found."""


class StoredChunk(NamedTuple):
    """What sync compares of a chunk that was written before."""

    id: str
    source: str
    document_id: str
    content_hash: str
    fingerprint: str


class Collection:
    """A handle on the collection that an alias names.

    Other processes may write it: within a second each question's reads notice that, and load anew.
    """

    def __init__(
        self, client: "MilvusClient", alias: str, expected: CollectionManifest, in_place: bool
    ) -> None:
        self._client = client
        self._alias = alias
        self._expected = expected
        self._in_place = in_place
        self._contract: CollectionManifest | None = None
        self._counts = ReadThroughCache(self._read_counts, REMEMBERED_WORDS)
        self._by_id = ReadThroughCache(self._read_by_id, REMEMBERED_CHUNKS)
        self._by_place = ReadThroughCache(self._read_by_place, REMEMBERED_CHUNKS)
        self._in_language = ReadThroughCache(self._read_in_language, len(get_args(Language)))
        self._catalogue: tuple[str, list[CatalogueEntry]] = ("", [])
        """What was read last, and its stamp."""
        self._freshness = Freshness(self._state, self.load)

    @classmethod
    def connect(cls, settings: Settings) -> "Collection":
        """Connect to the store in Settings. Raises StoreLocked or StoreUnavailable."""
        client = open_milvus(settings)
        lite = settings.embedded or is_lite(client)
        expected = expected_manifest(settings, lite=lite)
        return cls(client, settings.collection, expected, in_place=not lite)

    def close(self) -> None:
        """Close the connection; an embedded store stays locked until the process ends."""
        self._client.close()

    @property
    def contract(self) -> CollectionManifest:
        """What made the collection that is loaded. Raises CollectionMissing before `load`."""
        if self._contract is None:
            raise CollectionMissing("nothing has been indexed yet: run `apidesk ingest`")
        return self._contract

    @property
    def embedding_role(self) -> ModelRole:
        """The embedding model that this collection is made and searched with."""
        return ModelRole("EMBEDDING", self._expected.embedding_model)

    def exists(self) -> bool:
        """Whether anything has been indexed under this name."""
        with milvus_errors():
            return bool(self._client.has_collection(self._alias))

    def load(self) -> None:
        """Make the collection ready to search and answer one query, so that no caller is the first.

        Raises CollectionMissing, or CollectionMismatch when other settings made it.
        """
        with self._freshness.loading():
            if not self._client.has_collection(self._alias):
                self._contract = None
                _ = self.contract
            state = collection_state(self._client, self._alias)
            found = read_manifest(self._client, self._alias)
            self._check(found)
            self._client.load_collection(self._alias)
            self._client.load_collection(words_name(self._alias))
            self._check_rows(found)
            self._contract = found
            self._forget()
            self._freshness.loaded(state)
            self.search("预热 warm-up", 1, "full_text")

    def _forget(self) -> None:
        """What was read before is of another writing."""
        for remembered in (self._counts, self._by_id, self._by_place, self._in_language):
            remembered.forget()

    def refresh(self) -> None:
        """Load anew what was written since; it asks the store once a second at most.

        Raises what `load` raises.
        """
        self._freshness.refresh()

    def search(
        self, question: str, k: int, route: SearchRoute, vector: Vector | None = None
    ) -> list[RetrievedChunk]:
        """The best `k` chunks for `question` by one route, best first; `vector` is its embedding."""
        return [
            RetrievedChunk(chunk=chunk_of(hit["entity"]), score=_score(hit, route))
            for hit in self._hits(question, k, route, vector, NO_FILTERS, CHUNK_FIELDS)
        ]

    def ranked(
        self,
        question: str,
        k: int,
        route: SearchRoute,
        vector: Vector | None = None,
        filters: Filters = NO_FILTERS,
    ) -> dict[str, float]:
        """Score by chunk id of the best `k` that `filters` let through, best first; the chunks
        themselves stay where they are.
        """
        hits = self._hits(question, k, route, vector, filters, ["id"])
        return {hit["entity"]["id"]: _score(hit, route) for hit in hits}

    def documents(
        self, questions: Sequence[str], k: int, route: SearchRoute, vectors: Sequence[Vector]
    ) -> list[list[DocumentKey]]:
        """For each of `questions` the documents of the best `k` chunks, best first: all in one request."""
        data = list(vectors) if route == "dense" else list(map(_indexed_words, questions))
        fields = ["source", "document_id"]
        return [
            [document_key(hit["entity"]) for hit in hits]
            for hits in self._all_hits(data, k, route, NO_FILTERS, fields)
        ]

    def by_ids(self, ids: Sequence[str]) -> list[Chunk]:
        """The chunks with these ids, in their order; ids that nothing has are passed over."""
        self.refresh()
        return list(self._by_id.of(ids).values())

    def _read_by_id(self, ids: list[str]) -> dict[str, Chunk]:
        return {chunk.id: chunk for chunk in self._chunks(with_ids(ids))}

    def chunks_of(self, document_id: str, source: str) -> list[Chunk]:
        """All chunks of one document, in the document's order."""
        return self._chunks(of_documents([(source, document_id)]))

    def beside(self, chunk: Chunk) -> list[Chunk]:
        """The chunks before and after `chunk` in its document, as far as there are any."""
        self.refresh()
        positions = (chunk.position - 1, chunk.position + 1)
        places = ((chunk.source, chunk.document_id, position) for position in positions)
        return list(self._by_place.of(places).values())

    def _read_by_place(self, places: list[ChunkPlace]) -> dict[ChunkPlace, Chunk]:
        found = self._chunks(at_places(places))
        return {(chunk.source, chunk.document_id, chunk.position): chunk for chunk in found}

    def chunks_of_all(self, documents: Iterable[tuple[str, str]]) -> list[Chunk]:
        """All chunks of these documents (source, id), as `chunks_of` gives them."""
        expression = of_documents(documents)
        return self._chunks(expression) if expression else []

    def chunks_by_api(self, urls: Sequence[str], names: Sequence[str]) -> list[Chunk]:
        """All chunks of the APIs with one of these urls or names, by API in the document's order."""
        if not urls and not names:
            return []
        return self._chunks(of_apis(urls, names))

    def catalogue(self) -> list[CatalogueEntry]:
        """An entry a document, by source and id; not to be changed.

        The same list as long as nothing is written. Empty where the collection was made before there
        were catalogues: the next ingest run makes one. Raises CollectionMissing before `load`.
        """
        self.refresh()
        with self._freshness.store():
            stamp = catalogue_stamp(self._client, self._alias)
            if stamp != self._catalogue[0]:
                entries = read_catalogue(self._client, self._alias) if stamp else []
                self._catalogue = (stamp, entries)
        return self._catalogue[1]

    def word_counts(self, words: Iterable[str]) -> dict[str, int]:
        """How often each of `words` occurs in all chunks together; words that do not are left out.

        Counts are remembered until the collection is loaded again.
        """
        self.refresh()
        return self._counts.of(words)

    def languages(self) -> frozenset[Language]:
        """Those that the documents are in; remembered until the collection is loaded again."""
        self.refresh()
        return frozenset(self._in_language.of(get_args(Language)))

    def _read_in_language(self, languages: list[Language]) -> dict[Language, bool]:
        with self._freshness.store():
            return {language: True for language in languages if self._is_spoken(language)}

    def _is_spoken(self, language: Language) -> bool:
        one = self._client.query(
            self._alias, filter=in_language(language), output_fields=["id"], limit=1
        )
        return bool(one)

    def _read_counts(self, words: list[str]) -> dict[str, int]:
        with self._freshness.store():
            rows = self._client.query(
                words_name(self._alias),
                filter=f"word in {literal(words)}",
                output_fields=["word", "occurrences"],
            )
        return {row["word"]: row["occurrences"] for row in rows if row["occurrences"]}

    def some(self, count: int) -> list[Chunk]:
        """About `count` chunks, the same ones each time: ids are hashes, so the first are a fair sample."""
        share = min(1.0, count / max(1, self.contract.rows))
        bound = f"{int(share * 0xFFFFFFFF):08x}"
        return self._chunks(f"id <= {literal(bound + 'g')}")

    def keep_reliability(self, reliability: RouteCalibration) -> None:
        """Write down how far the routes can be trusted."""
        contract = self.contract.model_copy(update={"reliability": reliability})
        with milvus_errors():
            name = self._client.describe_alias(self._alias)["collection_name"]
            write_manifest(self._client, name, contract)
        self._contract = contract

    def check(self) -> None:
        """Raises CollectionMismatch when other settings made what there is."""
        with milvus_errors():
            if self._client.has_collection(self._alias):
                self._check(read_manifest(self._client, self._alias))

    def indexed(self) -> dict[str, IndexedSource]:
        """What the last run left of every source that there is; empty where that is not certain.

        Raises CollectionMismatch when the collection is not ours.
        """
        with milvus_errors():
            if not self._client.has_collection(self._alias):
                return {}
            contract = read_manifest(self._client, self._alias)
            if contract.unfinished or self._is_damaged(contract):
                return {}
            return read_sources(self._client, self._alias)

    def keep_indexed(self, sources: dict[str, IndexedSource]) -> None:
        """Write down what this run left of every source."""
        with milvus_errors():
            if sources != read_sources(self._client, self._alias):
                write_sources(self._client, self._alias, sources)

    def stored(self, without: Sequence[str] = ()) -> Iterator[StoredChunk]:
        """Every chunk that was written before, whatever settings made it, but those of the sources
        `without`; none where there are none.

        Raises CollectionMismatch when the collection is not ours.
        """
        with milvus_errors():
            if not self._client.has_collection(self._alias):
                return
            read_manifest(self._client, self._alias)
            self._client.load_collection(self._alias)
            expression = f"source not in {literal(without)}" if without else ""
            for page in every_row(self._client, self._alias, list(StoredChunk._fields), expression):
                yield from (StoredChunk(**row) for row in page)

    def writer(self, rebuild: bool) -> CollectionWriter:
        """What writes a run's chunks; with `rebuild` everything is put, else what is new or changed.

        Raises CollectionMismatch when the collection is not ours, or is of other settings and is not
        to be made anew.
        """
        with milvus_errors():
            old = None
            if self._client.has_collection(self._alias):
                old = read_manifest(self._client, self._alias)
                if not rebuild:
                    self._check(old)
            if old is not None and self._is_damaged(old):
                old = None
            drop_leftovers(self._client, self._alias)
        if old is not None and self._in_place and not rebuild:
            return InPlaceWriter(self._client, self._alias, old)
        kept = None if rebuild else old
        return NextCollectionWriter(self._client, self._alias, self._expected, kept)

    def stored_contract(self) -> CollectionManifest | None:
        """The contract as it stands in the store, whatever settings made it; None where there is none.

        Raises CollectionMismatch when the collection is not ours.
        """
        with milvus_errors():
            return read_manifest(self._client, self._alias) if self.exists() else None

    def _hits(
        self,
        question: str,
        k: int,
        route: SearchRoute,
        vector: Vector | None,
        filters: Filters,
        fields: list[str],
    ) -> list[dict[str, Any]]:
        asked = vector if route == "dense" else _indexed_words(question)
        return self._all_hits([asked], k, route, filters, fields)[0]

    def _all_hits(
        self,
        data: Sequence[object],
        k: int,
        route: SearchRoute,
        filters: Filters,
        fields: list[str],
    ) -> list[list[dict[str, Any]]]:
        """What is found for each of `data`: words, or vectors."""
        self.refresh()
        field, metric = ("sparse", "BM25") if route == "full_text" else ("dense", "COSINE")
        with self._freshness.store():
            found = self._client.search(
                self._alias,
                data=list(data),
                anns_field=field,
                # Milvus Lite refuses the client's default parameters for BM25.
                search_params={"metric_type": metric, "params": {}},
                limit=k,
                filter=passing(filters),
                output_fields=fields,
            )
        return [list(hits) for hits in found]

    def _chunks(self, expression: str) -> list[Chunk]:
        self.refresh()
        with self._freshness.store():
            rows = self._client.query(self._alias, filter=expression, output_fields=CHUNK_FIELDS)
        return sorted(map(chunk_of, rows), key=lambda c: (c.source, c.document_id, c.position))

    def _state(self) -> str | None:
        if not self._client.has_collection(self._alias):
            return None
        return collection_state(self._client, self._alias)

    def _check(self, found: CollectionManifest) -> None:
        if difference := found.difference(self._expected):
            raise CollectionMismatch(
                f"the collection {self._alias} was made with {difference}: "
                "run `apidesk ingest --rebuild` to make it anew"
            )

    def _check_rows(self, contract: CollectionManifest) -> None:
        if self._is_damaged(contract):
            raise CollectionMissing(
                f"the collection {self._alias} is damaged ({contract.rows} rows were written, none "
                "is there): run `apidesk ingest`"
            )

    def _is_damaged(self, contract: CollectionManifest) -> bool:
        """A damaged embedded store opens without a word as an empty one."""
        rows = int(self._client.get_collection_stats(self._alias)["row_count"])
        return bool(contract.rows) and not rows


def _indexed_words(question: str) -> str:
    """The words of `question` as they are indexed."""
    return " ".join(with_parts(query_text(question).split()))


def _score(hit: dict[str, Any], route: SearchRoute) -> float:
    """Higher is better: Milvus Lite gives BM25 as a negative distance, a server as a positive score."""
    distance = float(hit["distance"])
    return abs(distance) if route == "full_text" else distance
