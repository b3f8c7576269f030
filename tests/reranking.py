"""Chunks to rerank, a reranker, and checks that reranking keeps each chunk."""

import asyncio
import logging
from collections.abc import Sequence

import pytest
from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableConfig

from runnables.retrieval.rerank import RUN_NAME, RerankStep
from schemas.document import RetrievedChunk
from tests.chunks import page
from tests.traces import Trace

KEY = "sk-never-to-be-seen"
QUESTION = "怎么取消揽收，用哪个接口？"


class ReversesWithoutScores(BaseDocumentCompressor):
    """Has neither a model nor a number of documents, and no scores."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        return documents[::-1]


def retrieved(count: int, body: str = "正文") -> list[RetrievedChunk]:
    """Return `count` chunks with descending scores."""
    chunks = page("取消", *(f"{body} {number}" for number in range(count)))
    return [RetrievedChunk(chunk=c, score=100.0 - n) for n, c in enumerate(chunks)]


def run(
    rerank: RerankStep,
    found: list[RetrievedChunk],
    question: str = QUESTION,
    config: RunnableConfig | None = None,
) -> list[RetrievedChunk]:
    return asyncio.run(rerank.rerank(question, found, config or {}))


def order(reranked: list[RetrievedChunk], found: list[RetrievedChunk]) -> list[int]:
    """Return the old indexes in the new order. Assert that `reranked` contains each chunk once."""
    indexes = {retrieved.chunk.id: index for index, retrieved in enumerate(found)}
    assert len(reranked) == len(found)
    assert {retrieved.chunk.id for retrieved in reranked} == set(indexes)
    return [indexes[retrieved.chunk.id] for retrieved in reranked]


def skip_reason(
    rerank: RerankStep, found: list[RetrievedChunk], caplog: pytest.LogCaptureFixture
) -> str | None:
    """Return the reason why reranking was skipped.

    Assert that the trace and the log state it once, without the question and the key.
    """
    trace = Trace(RUN_NAME)
    with caplog.at_level(logging.WARNING):
        reranked = run(rerank, found, config={"callbacks": [trace]})
    assert reranked == found
    (output,) = trace.outputs
    (record,) = (r for r in caplog.records if r.name == "runnables.retrieval.rerank")
    reason: str = output["skipped"]
    assert record.getMessage().endswith(reason)
    assert record.exc_info is None
    assert QUESTION not in caplog.text
    assert KEY not in caplog.text + repr(output)
    return reason
