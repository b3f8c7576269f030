"""Retrieval as the pipeline uses it: splitting, query expansion, search, reranking and diversifying."""

import asyncio
from collections.abc import Sequence
from functools import partial

from langchain_core.runnables import Runnable, RunnableConfig

from runnables.question.extract_details import details_of
from runnables.retrieval.query_analysis import Glossary, general_lexicon, split_question
from runnables.retrieval.ranking import diversify, interleave
from runnables.retrieval.rerank import RERANK_DEPTH, RerankStep
from runnables.retrieval.retriever import MilvusRetriever, from_document
from runnables.retrieval.section_choice import add_request_parameters
from runnables.run_context import child_config, named_step
from schemas.document import RetrievedChunk
from schemas.question import Filters, Question


class ChunkSearch:
    """Retrieves the chunks for a question, whose parts are searched separately."""

    def __init__(
        self, retriever: MilvusRetriever, glossary: Glossary, rerank: RerankStep | None
    ) -> None:
        self._collection = retriever.collection
        self._retriever = retriever
        self._glossary = glossary
        self._lexicon = general_lexicon()
        self._rerank = rerank

    async def retrieve(
        self,
        question: Question,
        config: RunnableConfig,
        terms: Sequence[str] = (),
        *,
        rerank: bool = True,
    ) -> list[RetrievedChunk]:
        """Return the `question.k` best chunks.

        `terms` are additional search terms for the question. If `rerank` is false, the order of the
        retriever is kept, which saves a call of the reranker.
        """
        query, k = details_of(question).search_query, question.k
        if self._rerank is None or not rerank:
            chunks = await self._retrieve_parts(query, question.filters, config, terms, k)
            return diversify(chunks, k)
        count = max(k, RERANK_DEPTH)
        candidates = await self._retrieve_parts(query, question.filters, config, terms, count)
        return diversify(await self._rerank.rerank(query, candidates, config), k)

    async def is_only_language(self, question: Question) -> bool:
        """Return whether all documents are in the language of `question`."""
        return await asyncio.to_thread(self._collection.languages) == {question.language}

    async def _retrieve_parts(
        self,
        query: str,
        filters: Filters,
        config: RunnableConfig,
        terms: Sequence[str],
        count: int,
    ) -> list[RetrievedChunk]:
        run_config = child_config(config, "retrieve/milvus")
        rankings = await asyncio.gather(
            *(
                self._retrieve_part(part, terms, count, filters, run_config)
                for part in split_question(query)
            )
        )
        return interleave(rankings)

    async def _retrieve_part(
        self,
        query: str,
        terms: Sequence[str],
        count: int,
        filters: Filters,
        run_config: RunnableConfig,
    ) -> list[RetrievedChunk]:
        """Search for `query` with its extra terms, and for the extra terms alone; interleave the results.

        The second search is needed because in the first one the question's own words would outweigh terms
        in another language. The lexicon is used only if there are no extra terms, which are more exact.
        """
        extra_terms = " ".join([*self._glossary.equivalents(query), *terms])
        search = partial(self._retriever.ainvoke, config=run_config, k=count, filters=filters)
        synonyms = [] if extra_terms else self._lexicon.equivalents(query)
        searches = [search(query, extra_terms=extra_terms, synonyms=synonyms)]
        if extra_terms:
            searches.append(search(extra_terms, terms_only=True))
        rankings = [
            [from_document(document) for document in documents]
            for documents in await asyncio.gather(*searches)
        ]
        if extra_terms:
            return interleave(rankings)
        return await asyncio.to_thread(
            add_request_parameters, rankings[0], self._collection, filters
        )


def build_retriever(search: ChunkSearch) -> Runnable[Question, list[RetrievedChunk]]:
    """Return the step `retrieve`, which returns the best chunks for a question."""

    async def retrieve(question: Question, config: RunnableConfig) -> list[RetrievedChunk]:
        return await search.retrieve(question, config)

    return named_step("retrieve", retrieve)
