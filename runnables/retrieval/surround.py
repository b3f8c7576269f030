"""The best chunk brings what stands before and after it in its document."""

import asyncio

from langchain_core.runnables import Runnable, RunnableConfig

from ingestion.collection import Collection
from runnables.state import PipelineState
from runnables.steps import named_step
from schemas.document import RetrievedChunk


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
