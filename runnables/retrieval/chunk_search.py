"""Retrieval for a question: splits and expands it, searches, and reranks."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import get_async_callback_manager_for_config, patch_config

from runnables.question.extract_details import details_of
from runnables.retrieval.compressors import RERANK_DEPTH
from runnables.retrieval.query_analysis import Glossary, general_lexicon, split_question
from runnables.retrieval.ranking import diversify, interleave, retrieved_document
from runnables.retrieval.rerank import RerankStep
from runnables.retrieval.retriever import HybridSearch, to_document
from runnables.retrieval.section_choice import add_request_parameters, lacks_request_parameters
from schemas.document import RetrievedChunk
from schemas.question import Question


class ChunkSearch:
    """Retrieves chunks for a question. If the question has several parts, each is searched for."""

    def __init__(
        self, search: HybridSearch, glossary: Glossary, reranker: RerankStep | None = None
    ) -> None:
        self._search = search
        self._glossary = glossary
        self._reranker = reranker

    async def retrieve(
        self,
        question: Question,
        config: RunnableConfig,
        terms: Sequence[str] = (),
        run_name: str = "retrieve",
        depth: int = 0,
    ) -> list[RetrievedChunk]:
        """Return the `question.k` best chunks, or `depth` chunks if that is more.

        `terms` are additional search terms. A retrieval is one run of the type `retriever`, so that traces
        show the `question.k` best chunks as documents.
        """
        config, query = ensure_config(config), details_of(question).search_query
        run = await get_async_callback_manager_for_config(config).on_retriever_start(
            None, query, name=run_name, run_id=config.get("run_id")
        )
        try:
            chunks = await self._retrieve(
                query, question, terms, depth, patch_config(config, callbacks=run.get_child())
            )
        except BaseException as error:
            await run.on_retriever_error(error)
            raise
        await run.on_retriever_end([to_document(chunk) for chunk in chunks[: question.k]])
        return chunks

    async def find(
        self, question: Question, terms: str, config: RunnableConfig
    ) -> list[RetrievedChunk]:
        """Return the best chunks for a list of terms instead of `question`, without a run in traces.

        In mode `hybrid`, only full text is searched.
        """
        return await self._search.search(
            terms, question.k, question.filters, config, terms_only=True
        )

    async def is_only_language(self, question: Question) -> bool:
        """Return whether all documents are in the language of `question`."""
        collection = self._search.collection
        return await collection.run(collection.languages) == {question.language}

    async def _retrieve(
        self,
        query: str,
        question: Question,
        terms: Sequence[str],
        depth: int,
        config: RunnableConfig,
    ) -> list[RetrievedChunk]:
        rerank_depth = RERANK_DEPTH if self._reranker else 0
        deeper = question.model_copy(update={"k": max(question.k, depth, rerank_depth)})
        chunks = await self._search_parts(query, deeper, terms, config)
        if self._reranker is not None:
            candidates = max(question.k, RERANK_DEPTH)
            reranked = await self._reranker.rerank(query, chunks[:candidates], config)
            chunks = [*reranked, *chunks[candidates:]]
        return diversify(chunks, max(question.k, depth), retrieved_document)

    async def _search_parts(
        self, query: str, question: Question, terms: Sequence[str], config: RunnableConfig
    ) -> list[RetrievedChunk]:
        """Search for each part of `query`, and interleave the results."""
        parts = [self._search_part(part, question, terms, config) for part in split_question(query)]
        return interleave(await asyncio.gather(*parts))

    async def _search_part(
        self, query: str, question: Question, terms: Sequence[str], config: RunnableConfig
    ) -> list[RetrievedChunk]:
        """Search for `query` with its extra terms, and for the extra terms alone; interleave the results.

        The extra terms are `terms` and the glossary's equivalents of `query`. They are also searched alone,
        because the words of `query` outweigh extra terms in another language. Without extra terms, the
        less exact lexicon adds synonyms, and missing request parameters of the first result's API are
        added.
        """
        extra_terms = " ".join([*self._glossary.equivalents(query), *terms])
        filters = question.filters
        search = partial(self._search.search, k=question.k, filters=filters, config=config)
        if extra_terms:
            return interleave(
                await asyncio.gather(
                    search(query, extra_terms=extra_terms), search(extra_terms, terms_only=True)
                )
            )
        chunks = await search(query, synonyms=general_lexicon().equivalents(query))
        if not lacks_request_parameters(chunks):  # most questions
            return chunks
        collection = self._search.collection
        return await collection.run(partial(add_request_parameters, chunks, collection, filters))


class RetrieveStep(Runnable[Question, list[RetrievedChunk]]):
    """Returns the `k` best chunks for a question, or `depth` chunks if that is more.

    `ChunkSearch.retrieve` starts the run that traces show.
    """

    name = "retrieve"

    def __init__(self, search: ChunkSearch, depth: int = 0) -> None:
        self._search = search
        self._depth = depth

    def invoke(
        self, input: Question, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[RetrievedChunk]:
        """Raise NotImplementedError."""
        raise NotImplementedError("use ainvoke")

    async def ainvoke(
        self, input: Question, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[RetrievedChunk]:
        """Return the best chunks for a question."""
        return await self._search.retrieve(input, ensure_config(config), depth=self._depth)
