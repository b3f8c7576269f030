"""A second look where the first found little: with terms in the documents' language.
An API that the question names pulls its own chunks to the front.
The best chunk brings what stands before and after it in its document.
"""

import asyncio
from collections.abc import Sequence

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.store.collection import Collection
from ingestion.text.words import index_words, query_text
from runnables.question.extract_details import search_query
from runnables.retrieval.retriever import ChunkSearch
from runnables.run_context import named_step
from runnables.state import PipelineState
from schemas.document import Chunk, RetrievedChunk
from schemas.question import StructuredQuestion

STRONG = 0.8
"""The share of a question's words in one chunk from which on the first retrieval was good enough."""


def build_expand_query(finder: ChunkSearch) -> Runnable[PipelineState, PipelineState]:
    """The step `widen`: retrieve once more with the structured question's search terms too, which are in
    the other language: not where no document is, nor where one chunk holds nearly all of the question's
    words and more of them than any holds of the terms.
    """

    async def widen(understood: PipelineState, config: RunnableConfig) -> PipelineState:
        asked, terms = understood["question"], understood["classification"].structured.search_terms
        if not terms or await finder.is_in_the_only_language(asked):
            return understood
        share = best_word_share(asked.text, understood["retrieved"])
        if share >= STRONG:
            in_terms = asked.model_copy(update={"text": " ".join(terms)})
            if share > best_word_share(
                in_terms.text, await finder.search_without_rerank(in_terms, config)
            ):
                return understood
        return {**understood, "retrieved": await finder.find(asked, config, terms)}

    return named_step("widen", widen)


def best_word_share(text: str, found: Sequence[RetrievedChunk]) -> float:
    """The share of the telling words of `text` that stand in one chunk of those found, 0 to 1."""
    asked = set(query_text(search_query(text)).split())
    if not asked:
        return 0.0
    shares = (len(asked & set(index_words(r.chunk.text))) / len(asked) for r in found)
    return max(shares, default=0.0)


MAX_NAMED = 2
"""Documents that one name may pull in: the same url or name can stand for two versions."""


def build_boost_named_api(collection: Collection) -> Runnable[PipelineState, PipelineState]:
    """The step `focus`: chunks of the API named by url or name first, then what was retrieved."""

    async def focus(understood: PipelineState, config: RunnableConfig) -> PipelineState:
        structured, named = understood["classification"].structured, list[Chunk]()
        if structured.api_url or structured.api_name:
            named = await asyncio.to_thread(named_chunks, collection, structured)
        allowed = [chunk for chunk in named if understood["question"].filters.allow(chunk)]
        return PipelineState(
            question=understood["question"],
            classification=understood["classification"],
            retrieved=understood["retrieved"],
            chunks=_in_front(allowed, understood["retrieved"]),
        )

    return named_step("focus", focus)


def named_chunks(collection: Collection, structured: StructuredQuestion) -> list[Chunk]:
    """All chunks of the APIs that `structured` names; a url is more exact than a name."""
    if structured.api_url and (
        by_url := collection.chunks_by_api(api_url_candidates(structured.api_url), [])
    ):
        return by_url
    return collection.chunks_by_api([], [structured.api_name] if structured.api_name else [])


def api_url_candidates(url: str) -> list[str]:
    """The urls that an index may know `url` by: its path, with fewer and fewer leading segments.

    A gateway's prefix or a forgotten leading slash is no reason not to find an API.
    """
    segments = url.split("?")[0].strip("/").split("/")
    return ["/" + "/".join(segments[i:]) for i in range(max(len(segments) - 1, 1))]


def _in_front(named: list[Chunk], retrieved: list[RetrievedChunk]) -> list[RetrievedChunk]:
    """The named documents' chunks, those that were retrieved first; then the other retrieved ones."""
    documents = list(dict.fromkeys(chunk.document_id for chunk in named))[:MAX_NAMED]
    scores = {r.chunk.id: r.score for r in retrieved}
    front = [
        RetrievedChunk(chunk=chunk, score=scores.get(chunk.id, 0.0))
        for chunk in named
        if chunk.document_id in documents
    ]
    ids = {r.chunk.id for r in front}
    place = {r.chunk.id: number for number, r in enumerate(retrieved)}
    front.sort(key=lambda r: place.get(r.chunk.id, len(place)))
    return front + [r for r in retrieved if r.chunk.id not in ids]


def build_add_neighbours(collection: Collection) -> Runnable[PipelineState, PipelineState]:
    """The step `surround`: the best chunk's neighbours come last, so that they are the first to go
    when the window is too small for all.
    """

    async def surround(evidence: PipelineState, config: RunnableConfig) -> PipelineState:
        chunks = evidence["chunks"]
        if not chunks:
            return evidence
        beside = await asyncio.to_thread(collection.beside, chunks[0].chunk)
        known = {retrieved.chunk.id for retrieved in chunks}
        added = [RetrievedChunk(chunk=c, score=0.0) for c in beside if c.id not in known]
        return {**evidence, "chunks": [*chunks, *added]}

    return named_step("surround", surround)
