"""Retrieval for a question, and the steps that choose the chunks for its answer.

Retrieval splits the question into parts, adds equivalent terms, searches, and reranks. The steps then add
the results of the model's search terms, put the chunks of a named API first, and append more chunks if a
model answers.
"""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import get_async_callback_manager_for_config, patch_config

from ingestion.store.collection import Collection
from ingestion.text.language import estimate_tokens
from ingestion.text.words import with_indexed_versions
from runnables.page_versions import VersionFinder
from runnables.question.extract_details import details_of
from runnables.question.query_analysis import (
    Glossary,
    general_lexicon,
    main_languages,
    split_question,
)
from runnables.retrieval.compressors import RERANK_DEPTH
from runnables.retrieval.exact_search import as_written, missing_identifiers, similar_identifiers
from runnables.retrieval.named_operations import chunks_by_path, chunks_of_compared_apis
from runnables.retrieval.path_patterns import matching_patterns, unescaped_body
from runnables.retrieval.query_terms import QueryTerms
from runnables.retrieval.ranking import (
    add_request_parameters,
    content_of,
    diversify,
    interleave,
    lacks_request_parameters,
)
from runnables.retrieval.relevance import MAX_COMPARED_CHUNKS, with_relevant_chunk
from runnables.retrieval.rerank import RerankStep
from runnables.retrieval.retriever import HybridSearch, to_document
from runnables.run_context import NamedStep
from runnables.state import PipelineState, StateFunction, with_retrieved
from schemas.document import Chunk, RetrievedChunk
from schemas.question import Question, StructuredQuestion

_CLASS_NAME = re.compile(r"(?:[A-Z][a-z0-9]+){2,}")
"""A class name of two or more words, such as `CardError`."""

EVIDENCE_DEPTH = 50
"""Number of chunks to retrieve if a model answers. `fill_evidence` selects from them."""

MAX_NAMED_DOCUMENTS = 2
"""Maximum number of documents that come first because the question names their API.

A question may name several documents, because the versions of an API can share a URL or a name.
"""

MAX_COMPARED_DOCUMENTS = 4
"""Maximum number of documents that come first because the question compares their APIs."""


class ChunkSearch:
    """Retrieves chunks for each part of a question."""

    def __init__(
        self, search: HybridSearch, glossary: Glossary, reranker: RerankStep | None = None
    ) -> None:
        self._search = search
        self._glossary = glossary
        self._reranker = reranker

    async def retrieve(
        self, question: Question, config: RunnableConfig, depth: int = 0
    ) -> list[RetrievedChunk]:
        """Return the `question.k` best chunks, or `depth` chunks if that is more.

        If `depth` is 0 and there is no reranker, the last chunk is chosen by its relevance (see
        `with_relevant_chunk`). Traces show a run of the type `retriever`, with the `question.k` best chunks
        as documents.
        """
        query = details_of(question).search_query
        search = partial(self._retrieve, query, question, depth)
        return await _traced("retrieve", query, question.k, search, config)

    async def find(
        self, terms: Sequence[str], question: Question, config: RunnableConfig
    ) -> list[RetrievedChunk]:
        """Search for each of `terms`, which are the model's words for the subject of `question`.

        The results are interleaved, so that the best chunk of each term comes first. In mode `hybrid`, only
        full text is searched. Traces show the run `expand-query`, of the type `retriever`.
        """

        async def search(config: RunnableConfig) -> list[RetrievedChunk]:
            filters, search_term = question.filters, self._search.search
            searches = [
                search_term(term, EVIDENCE_DEPTH, filters, config, terms_only=True)
                for term in terms
            ]
            return interleave(await asyncio.gather(*searches))

        return await _traced("expand-query", "\n".join(terms), question.k, search, config)

    async def _retrieve(
        self, query: str, question: Question, depth: int, config: RunnableConfig
    ) -> list[RetrievedChunk]:
        compared_count = max(question.k, RERANK_DEPTH if self._reranker else MAX_COMPARED_CHUNKS)
        deeper = question.model_copy(update={"k": max(compared_count, depth)})
        chunks = await self._search_parts(query, deeper, config)
        if self._reranker is not None:
            reranked = await self._reranker.rerank(query, chunks[:compared_count], config)
            chunks = [*reranked, *chunks[compared_count:]]
        chunks = diversify(chunks, deeper.k)
        if self._reranker is not None or depth:
            return chunks[: max(question.k, depth)]
        return await self._search.collection.run(
            partial(self._with_relevant_chunk, question, chunks)
        )

    def _with_relevant_chunk(
        self, question: Question, chunks: Sequence[RetrievedChunk]
    ) -> list[RetrievedChunk]:
        """Return the best `question.k` of `chunks` (see `with_relevant_chunk`). This method blocks."""
        collection = self._search.collection
        terms = QueryTerms.of(details_of(question), None, collection, self._glossary)
        return with_relevant_chunk(chunks, question.k, terms)

    async def _search_parts(
        self, query: str, question: Question, config: RunnableConfig
    ) -> list[RetrievedChunk]:
        """Search for each part of `query`, and interleave the results."""
        collection = self._search.collection
        query = await collection.run(partial(with_indexed_versions, query, collection.word_counts))
        parts = [self._search_part(part, question, config) for part in split_question(query)]
        return interleave(await asyncio.gather(*parts))

    async def _search_part(
        self, query: str, question: Question, config: RunnableConfig
    ) -> list[RetrievedChunk]:
        """Search for `query` with its equivalents, and for the equivalents alone; interleave the results.

        The equivalents come from the glossary. They are also searched for alone, because the words of
        `query` outweigh terms in another language.

        Without equivalents, `query` is searched for with synonyms from the general lexicon, which is less
        exact than the glossary. The request parameters of the best chunk's API are then among the
        first three chunks (see `add_request_parameters`).
        """
        extra_terms = " ".join(self._glossary.equivalents(query))
        filters = question.filters
        search = partial(self._search.search, k=question.k, filters=filters, config=config)
        if extra_terms:
            return interleave(
                await asyncio.gather(
                    search(query, extra_terms=extra_terms), search(extra_terms, terms_only=True)
                )
            )
        collection = self._search.collection
        lexicon = general_lexicon(await collection.run(partial(main_languages, collection)))
        chunks = await search(query, synonyms=lexicon.equivalents(query))
        if not lacks_request_parameters(chunks):  # most questions
            return chunks
        return await collection.run(partial(add_request_parameters, chunks, collection, filters))


async def _traced(
    name: str,
    query: str,
    k: int,
    search: Callable[[RunnableConfig], Awaitable[list[RetrievedChunk]]],
    config: RunnableConfig,
) -> list[RetrievedChunk]:
    """Return the results of `search`, in a run `name` whose documents are the `k` best chunks."""
    config = ensure_config(config)
    run = await get_async_callback_manager_for_config(config).on_retriever_start(
        None, query, name=name, run_id=config.get("run_id")
    )
    try:
        chunks = await search(patch_config(config, callbacks=run.get_child()))
    except BaseException as error:
        await run.on_retriever_error(error)
        raise
    await run.on_retriever_end([to_document(chunk) for chunk in chunks[:k]])
    return chunks


class RetrieveStep(Runnable[Question, list[RetrievedChunk]]):
    """Returns the `k` best chunks for a question, or `depth` chunks if that is more.

    The step starts no run of its own, because `ChunkSearch.retrieve` starts the run that traces show.
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


def build_expand_query(search: ChunkSearch) -> StateFunction:
    """Return the function that adds the results of the search terms of the classification.

    The terms are a model's words for what the question asks, so they find documents that share no word with
    the question. Half of the chunks come from the question, half from the terms. Without terms, the chunks
    stay the same.
    """

    async def expand_query(state: PipelineState, config: RunnableConfig) -> PipelineState:
        question, terms = state["question"], state["classification"].structured.search_terms
        if not terms:
            return state
        by_question = [*state["retrieved"], *state["further"]]
        by_terms = await search.find(terms, question, config)
        depth = max(EVIDENCE_DEPTH, question.k)
        return with_retrieved(state, diversify(interleave([by_question, by_terms]), depth))

    return expand_query


def build_boost_named_api(collection: Collection) -> Runnable[PipelineState, PipelineState]:
    """Return the step that puts chunks first if they belong to the API that the question names.

    If pages exist in several versions, the step first selects the versions to read (see
    `runnables.page_versions`). The step also sets `compared`, and `missing_identifiers`: the identifiers of
    the question that no document contains, each with similar identifiers from the documents.
    """
    finder = VersionFinder(collection)

    async def boost_named_api(state: PipelineState, config: RunnableConfig) -> PipelineState:
        return await collection.run(partial(_boost_named_api, collection, finder, state))

    return NamedStep(boost_named_api, "boost-named-api")


def _boost_named_api(
    collection: Collection, finder: VersionFinder, state: PipelineState
) -> PipelineState:
    structured, details = state["classification"].structured, details_of(state["question"])
    compared = chunks_of_compared_apis(collection, details)
    named = compared or find_named_api_chunks(collection, structured, state["question"].text)
    max_documents = MAX_COMPARED_DOCUMENTS if compared else MAX_NAMED_DOCUMENTS
    allowed = [chunk for chunk in named if state["question"].filters.allow(chunk)]
    ranking = [*state["retrieved"], *state["further"]]
    versions = finder.find(state["question"], [*allowed, *(r.chunk for r in ranking)])
    state = {**with_retrieved(state, versions.select(ranking)), "versions": versions}
    selected = list(filter(versions.is_selected, allowed))
    chunks = _boost(selected, state["retrieved"], max_documents)
    missing = _missing_identifiers(collection, state["question"], chunks)
    return {**state, "chunks": chunks, "compared": compared, "missing_identifiers": missing}


def _missing_identifiers(
    collection: Collection, question: Question, chunks: Sequence[RetrievedChunk]
) -> dict[str, Sequence[str]]:
    """Return the identifiers that no document contains, each with similar ones from the documents.

    An identifier is not missing if a chunk in `chunks` contains its class (`CardError` for
    `acme.CardError`), a hyphenated form (`400-CODE` for `400`) or a pattern that matches it.
    """
    details, filters = details_of(question), question.filters
    searched = [retrieved.chunk for retrieved in chunks]
    text = "\n".join(map(unescaped_body, searched)).lower()
    names = {
        as_written(name, details.text): name
        for name in missing_identifiers(collection, details, filters)
    }
    return {
        written: similar_identifiers(collection, name, searched, filters)
        for written, name in names.items()
        if not _contains_part(text, _class_name(written).lower() or name)
        and not ("/" in name and matching_patterns(text, name))
    }


def _class_name(identifier: str) -> str:
    """Return the class in a qualified name, such as `CardError` in `acme.CardError`; empty for other names.

    Documents often name classes without their package.
    """
    last = identifier.rpartition(".")[2]
    return last if last != identifier and _CLASS_NAME.fullmatch(last) else ""


def _contains_part(text: str, identifier: str) -> bool:
    """Return whether `text` contains `identifier`, alone or in a hyphenated name such as `400-CODE`.

    A path may also have a base path before it, and a parameter after it: `/orders` in `/v2/orders/{id}`.
    """
    before = "" if identifier.startswith("/") else r"(?<![\w./])"
    return re.search(rf"{before}{re.escape(identifier)}(?!\w|/\w)", text) is not None


def find_named_api_chunks(
    collection: Collection, structured: StructuredQuestion, question: str
) -> list[Chunk]:
    """Return all chunks of the APIs that `structured` names.

    A URL takes precedence over a name, because a URL is more exact. The HTTP method in `question` selects
    one of several APIs with the same URL.

    This function blocks: call it in a worker thread.
    """
    if structured.api_url and (by_url := chunks_by_path(collection, structured.api_url, question)):
        return by_url
    return collection.chunks_by_api([], [structured.api_name] if structured.api_name else [])


def _boost(
    named: list[Chunk], retrieved: list[RetrievedChunk], max_documents: int
) -> list[RetrievedChunk]:
    """Return the chunks in `named`, then all other chunks in `retrieved`.

    Of `named`, only the chunks of the first `max_documents` documents are returned. Those that are
    also in `retrieved` come first, in the order of `retrieved`.
    """
    documents = list(dict.fromkeys(chunk.document_key for chunk in named))[:max_documents]
    scores = {r.chunk.id: r.score for r in retrieved}
    boosted = [
        RetrievedChunk(chunk=chunk, score=scores.get(chunk.id, 0.0))
        for chunk in named
        if chunk.document_key in documents
    ]
    boosted_ids = {retrieved.chunk.id for retrieved in boosted}
    ranks = {r.chunk.id: rank for rank, r in enumerate(retrieved)}
    boosted.sort(key=lambda retrieved: ranks.get(retrieved.chunk.id, len(ranks)))
    return boosted + [r for r in retrieved if r.chunk.id not in boosted_ids]


def build_add_evidence(max_tokens: int) -> StateFunction:
    """Return the function that appends the next best chunks, because a model can read more than `k` chunks.

    The added chunks come last, so that they are dropped first if the context window is too small. Chunks
    are added as long as all chunks together have at most `max_tokens` tokens.
    """

    async def add_evidence(state: PipelineState, config: RunnableConfig) -> PipelineState:
        ranking = [*state["retrieved"], *state["further"]]
        return {**state, "chunks": fill_evidence(state["chunks"], ranking, max_tokens)}

    return add_evidence


def fill_evidence(
    chunks: Sequence[RetrievedChunk], ranking: Sequence[RetrievedChunk], max_tokens: int
) -> list[RetrievedChunk]:
    """Return `chunks`, followed by the chunks of `ranking` that still fit into `max_tokens` tokens.

    `ranking` is sorted, best first. Chunks are added in the order of rank * sqrt(tokens), smallest first:
    several short chunks answer more questions than one long chunk of a slightly better rank.
    docs/explanation/retrieval.md has the measurements. Duplicates are skipped.
    """
    filled = list(chunks)
    known = set(map(content_of, chunks))
    tokens_left = max_tokens - count_tokens(chunks)
    candidates = [(rank, count_tokens([r]), r) for rank, r in enumerate(ranking, start=1)]
    for _, tokens, retrieved in sorted(candidates, key=lambda each: each[0] * math.sqrt(each[1])):
        if content_of(retrieved) not in known and tokens <= tokens_left:
            filled.append(retrieved)
            known.add(content_of(retrieved))
            tokens_left -= tokens
    return filled


def count_tokens(chunks: Sequence[RetrievedChunk]) -> int:
    """Return the estimated number of tokens of the chunks' texts."""
    return sum(estimate_tokens(retrieved.chunk.text) for retrieved in chunks)
