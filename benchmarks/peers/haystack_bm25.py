"""A Haystack 3 pipeline with full-text retrieval, behind Hayhooks.

    python -m benchmarks.peers.haystack_bm25 serve --documents FILE --model-url URL

It uses `InMemoryDocumentStore` with its defaults: BM25L over words and, in Chinese, single characters.
This file is the pipeline wrapper that Hayhooks loads.
"""

from pathlib import Path
from typing import Any

from hayhooks import BasePipelineWrapper
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from benchmarks.peers.command import peer
from benchmarks.peers.haystack_parts import (
    answering_pipeline,
    ask,
    documents,
    hayhooks_app,
    site_of_wrapper,
)
from benchmarks.peers.task import K


class PipelineWrapper(BasePipelineWrapper):
    """The pipeline that Hayhooks serves."""

    def setup(self) -> None:
        """Index the passages, and put the retriever between the two model calls."""
        site = site_of_wrapper()
        store = InMemoryDocumentStore()
        store.write_documents(documents(site.passages))
        self.pipeline = answering_pipeline(site.model_url)
        self.pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=K))
        self.pipeline.connect("topic.question", "retriever.query")
        self.pipeline.connect("retriever.documents", "answer_prompt.documents")
        self.pipeline.connect("retriever.documents", "answer.documents")

    async def run_api_async(self, question: str) -> dict[str, Any]:
        """Answer a question about the platform."""
        return await ask(self.pipeline, question)


if __name__ == "__main__":
    peer(hayhooks_app("haystack_bm25", Path(__file__)), path="/haystack_bm25/run")()
