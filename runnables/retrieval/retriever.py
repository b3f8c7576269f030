"""question -> the k best chunks, by the route that Settings name."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Literal

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict

from ingestion.store.collection import NO_FILTERS, Collection
from ingestion.store.schema import Vector
from runnables.question.extract_details import search_query
from runnables.retrieval.query_analysis import (
    Glossary,
    QueryEmbeddings,
    defining_first,
    identifiers,
    split_question,
)
from runnables.retrieval.rank_fusion import POOL, ScoredIds, dense_weight, fuse
from runnables.retrieval.rerank import MOST as RERANKED
from runnables.retrieval.rerank import RerankStep
from runnables.run_context import MODEL_FAILURE, child_config, dispatch_event, named_step
from schemas.document import Chunk, RetrievedChunk
from schemas.errors import ConfigurationError, ModelError
from schemas.question import Filters, Question
from schemas.settings import Settings

RetrievalMode = Literal["full_text", "dense", "hybrid"]

CANDIDATES = 50
"""Chunks that are looked at for the k that are given."""

MOST_OF_ONE = 3
"""Chunks of one document among any five: what one page says five times crowds out the others."""

log = logging.getLogger(__name__)


class MilvusRetriever(BaseRetriever):
    """A Collection as LangChain knows retrievers, so that traces show its results as documents.

    Why not langchain-milvus: docs/decisions/0001-own-retriever.md.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    collection: Collection
    vectors: QueryEmbeddings | None
    mode: RetrievalMode

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int = 5,
        more: str = "",
        filters: Filters = NO_FILTERS,
    ) -> list[Document]:
        vector = self.vectors.blocking(query) if self.vectors and self._takes_vectors else None
        return self._find(query, more, k, vector, filters)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int = 5,
        more: str = "",
        words: bool = False,
        filters: Filters = NO_FILTERS,
    ) -> list[Document]:
        """With `words`, `query` is no question but words to be looked for, in full text if there is one."""
        vector = None
        if self.vectors and self._takes_vectors and not (words and self.mode == "hybrid"):
            try:
                vector = await self.vectors.of(query)
            except ModelError as error:
                log.warning("searching full text alone: %s", error)
                labels = self.collection.embedding_role.labels
                inside: RunnableConfig = {"callbacks": run_manager.get_child()}
                await dispatch_event(inside, MODEL_FAILURE, **labels, code=error.code)
        return await asyncio.to_thread(self._find, query, more, k, vector, filters)

    def _find(
        self, query: str, more: str, k: int, vector: Vector | None, filters: Filters
    ) -> list[Document]:
        """The k best chunks; without a vector by full text, whatever the mode.

        `more` are words that full text looks for besides those of `query`.
        """
        ranked = partial(self._ranking, f"{query} {more}".strip(), vector, filters)
        return [_document(retrieved) for retrieved in self._chosen(query, k, ranked)]

    def _chosen(
        self, query: str, k: int, ranked: Callable[[int], ScoredIds]
    ) -> list[RetrievedChunk]:
        """Of as few as will do: each hit takes time, and each chunk that is read more."""
        many = max(CANDIDATES, k)
        if names := identifiers(query):
            return diversify(defining_first(self._read(ranked(many), many), names), k)
        ranking = ranked(3 * k)
        for count in (k, 3 * k):
            chosen = diversify(self._read(ranking, count), k)
            if not is_dominated(chosen):
                return chosen
        return diversify(self._read(ranked(many), many), k)

    def _read(self, ranking: ScoredIds, count: int) -> list[RetrievedChunk]:
        """The first `count` of `ranking`, read from the collection."""
        chunks = self.collection.by_ids(list(ranking)[:count])
        return [RetrievedChunk(chunk=chunk, score=ranking[chunk.id]) for chunk in chunks]

    def _ranking(
        self, query: str, vector: Vector | None, filters: Filters, count: int
    ) -> ScoredIds:
        search = partial(self.collection.ranked, filters=filters)
        if vector is None:
            return search(query, count, "full_text")
        if self.mode == "dense":
            return search(query, count, "dense", vector)
        full_text, dense = search(query, POOL, "full_text"), search(query, POOL, "dense", vector)
        return fuse(full_text, dense, self._weight)

    @property
    def _takes_vectors(self) -> bool:
        """Whether the question is embedded: not where its vector would count for nothing."""
        return self.mode == "dense" or (self.mode == "hybrid" and self._weight > 0)

    @property
    def _weight(self) -> float:
        return dense_weight(self.collection.contract.reliability)


class ChunkSearch:
    """Retrieval as the pipeline uses it: a question in its parts, each widened by the glossary."""

    def __init__(
        self, retriever: MilvusRetriever, glossary: Glossary, rerank: RerankStep | None
    ) -> None:
        self._collection = retriever.collection
        self._retriever = retriever
        self._glossary = glossary
        self._rerank = rerank

    async def find(
        self, question: Question, config: RunnableConfig, terms: Sequence[str] = ()
    ) -> list[RetrievedChunk]:
        """The k best chunks for `question`, and for `terms`, further words for the same."""
        query, k = search_query(question.text), question.k
        found = await self._search(question, config, terms, max(k, RERANKED) if self._rerank else k)
        if self._rerank is not None:
            found = await self._rerank.rerank(query, found, config)
        return diversify(found, k)

    async def search_without_rerank(
        self, question: Question, config: RunnableConfig
    ) -> list[RetrievedChunk]:
        """As `find`, but nobody reranks: for what is only looked at."""
        return diversify(await self._search(question, config, (), question.k), question.k)

    async def is_in_the_only_language(self, question: Question) -> bool:
        """Whether all documents are in the language of `question`."""
        return await asyncio.to_thread(self._collection.languages) == {question.language}

    async def _search(
        self, question: Question, config: RunnableConfig, terms: Sequence[str], wanted: int
    ) -> list[RetrievedChunk]:
        query = search_query(question.text)
        run = child_config(config, "retrieve/milvus")
        return _in_turn(
            await asyncio.gather(
                *(
                    self._part(part, terms, wanted, question.filters, run)
                    for part in split_question(query)
                )
            )
        )

    async def _part(
        self, query: str, terms: Sequence[str], k: int, filters: Filters, run: RunnableConfig
    ) -> list[RetrievedChunk]:
        """The chunks for `query` with what widens it; in turn with those for the wider terms alone,
        which the question's own words would outweigh where they are in the other language.
        """
        more = " ".join([*self._glossary.widen(query), *terms])
        ask = partial(self._retriever.ainvoke, config=run, k=k, filters=filters)
        searches = [ask(query, more=more), *([ask(more, words=True)] if more else [])]
        return _in_turn(
            [[_retrieved(d) for d in found] for found in await asyncio.gather(*searches)]
        )


def open_retriever(
    settings: Settings, collection: Collection, vectors: QueryEmbeddings | None
) -> MilvusRetriever:
    """The retriever in the mode of Settings. Raises ConfigurationError for a mode without its model."""
    mode = _mode(settings, vectors)
    return MilvusRetriever(collection=collection, vectors=vectors, mode=mode)


def build_retriever(finder: ChunkSearch) -> Runnable[Question, list[RetrievedChunk]]:
    """The step `retrieve`."""

    async def retrieve(question: Question, config: RunnableConfig) -> list[RetrievedChunk]:
        return await finder.find(question, config)

    return named_step("retrieve", retrieve)


def _in_turn(found: Sequence[Sequence[RetrievedChunk]]) -> list[RetrievedChunk]:
    """The first of each, then the second of each, and so on; each chunk once."""
    merged: dict[str, RetrievedChunk] = {}
    for row in zip_longest(*found):
        for retrieved in row:
            if retrieved is not None:
                merged.setdefault(retrieved.chunk.id, retrieved)
    return list(merged.values())


def diversify(found: Iterable[RetrievedChunk], k: int) -> list[RetrievedChunk]:
    """The first k of `found`, with at most 3 of one document among each five; others come instead."""
    chosen: list[RetrievedChunk] = []
    waiting = list(found)
    while waiting and len(chosen) < k:
        five = chosen[len(chosen) - len(chosen) % 5 :]
        of_document = Counter(_place(r) for r in five)
        best = next((r for r in waiting if of_document[_place(r)] < MOST_OF_ONE), waiting[0])
        waiting.remove(best)
        chosen.append(best)
    return chosen


def is_dominated(chosen: Sequence[RetrievedChunk]) -> bool:
    """Whether one document has more than its share of some five."""
    fives = (chosen[start : start + 5] for start in range(0, len(chosen), 5))
    return any(max(Counter(map(_place, five)).values()) > MOST_OF_ONE for five in fives)


def _place(retrieved: RetrievedChunk) -> tuple[str, str]:
    return retrieved.chunk.source, retrieved.chunk.document_id


def _mode(settings: Settings, vectors: QueryEmbeddings | None) -> RetrievalMode:
    if settings.retrieval == "auto":
        return "hybrid" if vectors else "full_text"
    if settings.retrieval != "full_text" and vectors is None:
        raise ConfigurationError(
            f"APIDESK_RETRIEVAL={settings.retrieval} needs APIDESK_EMBEDDING_MODEL"
        )
    return settings.retrieval


def _document(retrieved: RetrievedChunk) -> Document:
    metadata = retrieved.chunk.model_dump(exclude={"text"}) | {"score": retrieved.score}
    return Document(id=retrieved.chunk.id, page_content=retrieved.chunk.text, metadata=metadata)


def _retrieved(document: Document) -> RetrievedChunk:
    fields = dict(document.metadata)
    score = fields.pop("score")
    return RetrievedChunk(chunk=Chunk(text=document.page_content, **fields), score=score)
