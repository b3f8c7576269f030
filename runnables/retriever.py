"""question -> the k best chunks, by the route that Settings names."""

import asyncio

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict

from ingestion.collection import Collection, Route, Vector
from ingestion.model_errors import model_errors
from runnables.steps import child, step
from schemas.document import Chunk, RetrievedChunk
from schemas.question import Question
from schemas.settings import Settings


class MilvusRetriever(BaseRetriever):
    """A Collection as LangChain knows retrievers, so that traces show its results as documents.

    Why not langchain-milvus: docs/decisions/0001-own-retriever.md.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    collection: Collection
    embeddings: Embeddings | None
    route: Route

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int = 5
    ) -> list[Document]:
        vector: Vector | None = None
        if self.embeddings and self.route != "full_text":
            with model_errors("APIDESK_EMBEDDING_MODEL"):
                vector = self.embeddings.embed_query(query)
        return [_document(r) for r in self.collection.search(query, k, self.route, vector)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int = 5
    ) -> list[Document]:
        vector: Vector | None = None
        if self.embeddings and self.route != "full_text":
            with model_errors("APIDESK_EMBEDDING_MODEL"):
                vector = await self.embeddings.aembed_query(query)
        found = await asyncio.to_thread(self.collection.search, query, k, self.route, vector)
        return [_document(r) for r in found]


def build_retriever(
    settings: Settings, collection: Collection, embeddings: Embeddings | None
) -> Runnable[Question, list[RetrievedChunk]]:
    """The step `retrieve`."""
    retriever = MilvusRetriever(
        collection=collection, embeddings=embeddings, route=_route(settings, embeddings)
    )

    async def retrieve(question: Question, config: RunnableConfig) -> list[RetrievedChunk]:
        run = child(config, "retrieve/milvus")
        return [_retrieved(d) for d in await retriever.ainvoke(question.text, run, k=question.k)]

    return step("retrieve", retrieve)


def _route(settings: Settings, embeddings: Embeddings | None) -> Route:
    if settings.retrieval == "auto":
        return "hybrid" if embeddings else "full_text"
    return settings.retrieval


def _document(retrieved: RetrievedChunk) -> Document:
    metadata = retrieved.chunk.model_dump(exclude={"text"}) | {"score": retrieved.score}
    return Document(id=retrieved.chunk.id, page_content=retrieved.chunk.text, metadata=metadata)


def _retrieved(document: Document) -> RetrievedChunk:
    fields = dict(document.metadata)
    score = fields.pop("score")
    return RetrievedChunk(chunk=Chunk(text=document.page_content, **fields), score=score)
