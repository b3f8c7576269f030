"""Searches the collection by full text, dense vectors or both, and fuses the results into one ranking."""

import asyncio
import logging
import math
from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Literal

from cachetools import LRUCache
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig

from ingestion.embeddings import check_vectors
from ingestion.providers import ModelRole, model_errors
from ingestion.store.collection import ChunkHit, Collection
from ingestion.store.schema import Vector
from runnables.models.chat_model import ModelCircuit
from runnables.page_versions import is_deprecated
from runnables.question.error_codes import error_codes
from runnables.question.query_analysis import extract_identifiers
from runnables.retrieval.exact_search import (
    DEFINED,
    definition_strength,
    find_definitions,
)
from runnables.retrieval.heading_numbers import chunks_by_heading_number
from runnables.retrieval.ranking import (
    dense_weight,
    diversify,
    fuse,
    repeated_chunks,
    weigh_sections,
)
from runnables.run_context import MODEL_FAILURE, dispatch_event
from schemas.document import Chunk, RetrievedChunk
from schemas.errors import ConfigurationError, ModelError, ModelOutputInvalid
from schemas.question import Filters

RetrievalMode = Literal["full_text", "dense", "hybrid"]

ScoredHits = dict[ChunkHit, float]
"""Score by chunk, best first."""

CANDIDATE_COUNT = 50
"""Number of candidates from which the best `k` chunks are selected; `k` candidates if `k` is larger."""

DEFINITION_DEPTH = 200
"""Minimum number of full-text hits to rank if the question contains identifiers.

Chunks that define an identifier come first, and equally good definitions are in the order of this ranking.
It is longer than the list of candidates, because a definition need not be a candidate.
"""

MAX_LEADING_DEFINITIONS = 2
"""Maximum number of chunks that come first because they define an identifier of the question.

If `k` is 5, three results remain for the other words of the question.
"""

MAX_INLINE_VECTORS = 10_000
"""Maximum number of vectors to compare on the event loop; comparing this many takes about 5 ms."""

EMBEDDING_TIMEOUT_S = 5
"""Seconds to wait for the vector of a question. After that, only full text is searched.

A server that loads the model for the first question needs a few seconds.
"""

EMBEDDING_FAILURE_THRESHOLD = 3
"""Number of consecutive failures after which the embedding model is not called for a while."""

EMBEDDING_RECOVERY_S = 30
"""Seconds for which the embedding model is not called. Meanwhile, only full text is searched."""

EMBEDDING_CACHE_SIZE = 256
"""Maximum number of cached vectors of questions, which take one megabyte at 1,024 dimensions."""

log = logging.getLogger(__name__)


class QueryEmbeddings:
    """An embedding model for questions, with a cache and a circuit breaker."""

    def __init__(self, embeddings: Embeddings, role: ModelRole) -> None:
        self.role = role
        self.last_error: ModelError | None = None
        """The error of the last call; None if the call succeeded, or if there was no call."""
        self._embeddings = embeddings
        self._circuit = ModelCircuit(
            EMBEDDING_FAILURE_THRESHOLD, EMBEDDING_RECOVERY_S, expected_exception=ModelError
        )
        self._cache: LRUCache[tuple[str, int], array[float]] = LRUCache(EMBEDDING_CACHE_SIZE)

    async def embed(self, query: str, dimension: int) -> Vector | None:
        """Return the vector of `query`; None if it is not cached and the circuit breaker is open.

        Raises ModelError, in particular ModelOutputInvalid if the length of the vector is not `dimension`.
        """
        if (query, dimension) not in self._cache:
            if self._circuit.opened:
                return None
            try:
                vector = await self._circuit.call_async(self._request, query, dimension)
            except ModelError as error:
                self.last_error = error
                raise
            self.last_error = None
            self._cache[query, dimension] = vector
        return self._cache[query, dimension].tolist()

    async def _request(self, query: str, dimension: int) -> "array[float]":
        with model_errors(self.role):
            async with asyncio.timeout(EMBEDDING_TIMEOUT_S):
                vector = await self._embeddings.aembed_query(query)
            check_vectors([vector], 1, self.role)
            if len(vector) != dimension:
                raise ModelOutputInvalid(
                    f"{self.role.setting}: vectors have {len(vector)} dimensions, the index has "
                    f"{dimension}: run `apidesk ingest --rebuild`"
                )
            if not 0 < math.hypot(*vector) < math.inf:  # NaN fails both comparisons
                raise ModelOutputInvalid(
                    f"{self.role.setting}: the server returned a vector that is zero or not finite"
                )
            return array("f", vector)


class HybridSearch:
    """Searches a collection by full text, dense vectors or both.

    docs/decisions/0001-own-retriever.md explains why langchain-milvus is not used.
    """

    def __init__(
        self, collection: Collection, embeddings: QueryEmbeddings | None, mode: RetrievalMode
    ) -> None:
        self.collection = collection
        self._embeddings = embeddings
        self._mode = mode

    async def search(
        self,
        query: str,
        k: int,
        filters: Filters,
        config: RunnableConfig,
        *,
        extra_terms: str = "",
        synonyms: Sequence[str] = (),
        terms_only: bool = False,
    ) -> list[RetrievedChunk]:
        """Return the `k` best chunks. Full text is also searched for `extra_terms` and `synonyms`.

        Extra terms weigh as much as the words of `query`; synonyms weigh less (see
        `ingestion.text.words.query_terms`). If `query` cannot be embedded, only full text is searched.

        If `terms_only` is true, `query` consists of search terms instead of a question, and mode
        `hybrid` searches full text only.
        """
        vector = None
        uses_vectors = self._uses_vectors and not (terms_only and self._mode == "hybrid")
        dimension = self.collection.vector_dimension if uses_vectors else None
        if self._embeddings and dimension:
            try:
                vector = await self._embeddings.embed(query, dimension)
            except ModelError as error:
                log.warning("searching full text alone: %s", error)
                labels = self.collection.embedding_role.labels
                await dispatch_event(config, MODEL_FAILURE, **labels, code=error.code)
        retrieve = partial(self._retrieve, query, extra_terms, synonyms, k, vector, filters)
        if vector is None or self.collection.manifest.rows <= MAX_INLINE_VECTORS:
            return await self.collection.run(retrieve)
        # A thread keeps the event loop free, because NumPy releases the GIL while it compares vectors.
        return await asyncio.to_thread(retrieve)

    def _retrieve(
        self,
        query: str,
        extra_terms: str,
        synonyms: Sequence[str],
        k: int,
        vector: Vector | None,
        filters: Filters,
    ) -> list[RetrievedChunk]:
        """Return the `k` best chunks; if `vector` is None, only full text is searched."""
        text = f"{query} {extra_terms}".strip()
        identifiers = extract_identifiers(query)
        count = max(CANDIDATE_COUNT, k)
        search = partial(self.collection.search_hits, text, filters=filters)
        if vector is not None and self._mode == "dense":
            ranking = candidates = search(count, vector)
        else:
            depth = max(DEFINITION_DEPTH, count) if identifiers else count
            ranking = search(depth, synonyms=synonyms)
            candidates = weigh_sections(dict(islice(ranking.items(), count)), query)
            if vector is not None:
                dense = search(count, vector)
                fused = fuse(
                    diversify(candidates, count), diversify(dense, count), self._dense_weight
                )
                candidates = dict(islice(fused.items(), count))
                # The hits after the candidates only break ties (see `DEFINITION_DEPTH`).
                ranking = fused | {hit: 0.0 for hit in ranking if hit not in fused}
        chunks: dict[ChunkHit, Chunk] = {}
        if identifiers:
            exact = find_definitions(self.collection, identifiers, query, filters)
            found = {ChunkHit.from_chunk(chunk): chunk for chunk in exact}
            chunks = found | self._read(hit for hit in candidates if hit not in found)
            codes = list(map(str.lower, error_codes(query)))
            candidates = _definitions_first(identifiers, codes, chunks, found, ranking, candidates)
        if numbered := chunks_by_heading_number(self.collection, query, filters):
            # The score 0 marks chunks that the search did not find; `relative_scores` gives them the best
            # score.
            first = {ChunkHit.from_chunk(c): 0.0 for c in numbered[:MAX_LEADING_DEFINITIONS]}
            candidates = first | {h: s for h, s in candidates.items() if h not in first}
        return self._read_best(candidates, k, chunks)

    def _read_best(
        self, candidates: ScoredHits, k: int, chunks: dict[ChunkHit, Chunk]
    ) -> list[RetrievedChunk]:
        """Return the `k` best of `candidates`, diversified. Chunks that are not yet in `chunks` are read.

        Of several chunks with the same content, only the best is returned. Chunks repeat because platforms
        publish the same section on several pages, such as one per version.
        """
        while True:
            best = diversify(candidates, k)
            chunks |= self._read(hit for hit in best if hit not in chunks)
            # A chunk may have been deleted since the search.
            found = [
                RetrievedChunk(chunk=chunks[h], score=candidates[h]) for h in best if h in chunks
            ]
            repeated = repeated_chunks(found)
            if not repeated:
                return found
            candidates = {h: s for h, s in candidates.items() if h.id not in repeated}

    def _read(self, hits: Iterable[ChunkHit]) -> dict[ChunkHit, Chunk]:
        chunks = self.collection.chunks_by_id([hit.id for hit in hits])
        return {ChunkHit.from_chunk(chunk): chunk for chunk in chunks}

    @property
    def _uses_vectors(self) -> bool:
        """Whether to embed the question: in mode `dense`, and in mode `hybrid` if vectors have a weight."""
        return self._mode == "dense" or (self._mode == "hybrid" and self._dense_weight > 0)

    @property
    def _dense_weight(self) -> float:
        return dense_weight(self.collection.manifest.calibration)


def _definitions_first(
    identifiers: list[str],
    codes: list[str],
    chunks: Mapping[ChunkHit, Chunk],
    exact: Container[ChunkHit],
    ranking: ScoredHits,
    others: ScoredHits,
) -> ScoredHits:
    """Return the chunks that define `identifiers`, at most `MAX_LEADING_DEFINITIONS`, followed by `others`.

    The chunks whose `definition_strength` is at least `DEFINED` are sorted by these criteria:

    1. Chunks with a higher `definition_strength` come first. For example, a code may be in the tables of
       several APIs, and the question may also contain the path of one of them. The table of that API then
       comes first, because it matches two identifiers.
    2. If the question contains a path, the chunks in `exact` come first, because exact search also
       compares the HTTP method.
    3. Chunks of documents that are not deprecated come first.
    4. Chunks that are earlier in `ranking` come first.

    If none of the leading chunks defines one of `codes`, the best chunk that does replaces the last one.
    All chunks of an API define its path, so they would hide the table of the platform's error codes.
    """
    strengths = {hit: definition_strength(chunk, identifiers) for hit, chunk in chunks.items()}
    ranks = {hit: rank for rank, hit in enumerate(ranking)}
    has_path = any("/" in identifier for identifier in identifiers)
    defining = sorted(
        (hit for hit, strength in strengths.items() if strength >= DEFINED),
        key=lambda hit: (
            -strengths[hit],
            has_path and hit not in exact,
            is_deprecated(chunks[hit]),
            ranks.get(hit, len(ranks)),
        ),
    )
    leading = defining[:MAX_LEADING_DEFINITIONS]
    explaining = [h for h in defining if definition_strength(chunks[h], codes) >= DEFINED]
    if explaining and not any(hit in leading for hit in explaining):
        leading[-1] = explaining[0]
    first = {hit: ranking.get(hit, 0.0) for hit in leading}
    return first | {hit: score for hit, score in others.items() if hit not in first}


def open_search(
    mode: RetrievalMode | Literal["auto"],
    collection: Collection,
    embeddings: QueryEmbeddings | None,
) -> HybridSearch:
    """Return a search in `mode`. `auto` is `hybrid` with an embedding model, otherwise `full_text`.

    Raises ConfigurationError if the mode needs an embedding model and there is none.
    """
    if mode == "auto":
        mode = "hybrid" if embeddings else "full_text"
    if mode != "full_text" and embeddings is None:
        raise ConfigurationError(f"APIDESK_RETRIEVAL={mode} needs APIDESK_EMBEDDING_MODEL")
    return HybridSearch(collection, embeddings, mode)


def to_document(retrieved: RetrievedChunk) -> Document:
    """Return the chunk's text as a LangChain document, with all other fields and the score as metadata."""
    metadata = {**vars(retrieved.chunk), "score": retrieved.score}
    text = metadata.pop("text")
    return Document(id=retrieved.chunk.id, page_content=text, metadata=metadata)
