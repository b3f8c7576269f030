"""An API that the question names pulls its own chunks to the front."""

import asyncio

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.collection import Collection
from runnables.state import PipelineState
from runnables.steps import named_step
from schemas.document import Chunk, RetrievedChunk
from schemas.question import StructuredQuestion

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
