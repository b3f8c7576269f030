"""A Haystack 3 pipeline with dense retrieval, behind Hayhooks, and Haystack's indexing pipeline.

    python -m benchmarks.peers.haystack_dense serve --documents FILE --model-url URL
    python -m benchmarks.peers.haystack_dense ingest --documents FILE --model-url URL

The indexing pipeline consists of an embedder, with its default of 32 texts per request, and a writer. The
writer skips documents that are already in the store (`DuplicatePolicy.SKIP`), but only after they have been
embedded: Haystack's `CacheChecker` skips whole files, not single passages.
This file is the pipeline wrapper that Hayhooks loads.
"""

from pathlib import Path
from typing import Any

from hayhooks import BasePipelineWrapper
from haystack import Pipeline
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy

from benchmarks.peers.command import Indexing, Site, peer
from benchmarks.peers.haystack_parts import (
    answering_pipeline,
    ask,
    client_settings,
    documents,
    hayhooks_app,
    site_of_wrapper,
)
from benchmarks.peers.task import EMBEDDING_MODEL, K


class PipelineWrapper(BasePipelineWrapper):
    """The pipeline that Hayhooks serves."""

    def setup(self) -> None:
        """Index the passages, and put embedder and retriever between the two model calls."""
        site = site_of_wrapper()
        store = InMemoryDocumentStore()
        indexing_pipeline(store, site.model_url).run({"embedder": _given(site)})
        embedder = OpenAITextEmbedder(model=EMBEDDING_MODEL, **client_settings(site.model_url))
        self.pipeline = answering_pipeline(site.model_url)
        self.pipeline.add_component("embedder", embedder)
        self.pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=K))
        self.pipeline.connect("topic.question", "embedder.text")
        self.pipeline.connect("embedder.embedding", "retriever.query_embedding")
        self.pipeline.connect("retriever.documents", "answer_prompt.documents")
        self.pipeline.connect("retriever.documents", "answer.documents")

    async def run_api_async(self, question: str) -> dict[str, Any]:
        """Answer a question about the platform."""
        return await ask(self.pipeline, question)


def indexing_pipeline(store: InMemoryDocumentStore, model_url: str) -> Pipeline:
    """Return the pipeline that embeds documents and writes those that are new."""
    pipeline = Pipeline()
    pipeline.add_component(
        "embedder",
        OpenAIDocumentEmbedder(
            model=EMBEDDING_MODEL,
            progress_bar=False,
            raise_on_failure=True,
            **client_settings(model_url),
        ),
    )
    pipeline.add_component("writer", DocumentWriter(store, policy=DuplicatePolicy.SKIP))
    pipeline.connect("embedder.documents", "writer.documents")
    return pipeline


def indexing(site: Site) -> Indexing:
    """Return the indexing function of the pipeline, for an empty store."""
    pipeline = indexing_pipeline(InMemoryDocumentStore(), site.model_url)

    async def index() -> object:
        return await pipeline.run_async({"embedder": _given(site)})

    return index


def _given(site: Site) -> dict[str, Any]:
    return {"documents": documents(site.passages)}


if __name__ == "__main__":
    peer(hayhooks_app("haystack_dense", Path(__file__)), indexing, "/haystack_dense/run")()
