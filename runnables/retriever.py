"""question -> the k best chunks, by the route that Settings names."""

import asyncio
import logging

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict

from ingestion.collection import Collection, Route
from ingestion.collection_schema import Vector
from ingestion.model_errors import model_errors
from runnables.pasted import search_query
from runnables.steps import child, step
from schemas.document import Chunk, RetrievedChunk
from schemas.errors import ConfigurationError, ModelError
from schemas.question import Question
from schemas.settings import Settings

EMBEDDING_SECONDS = 10
"""How long a question's embedding is waited for; then full text alone answers."""

log = logging.getLogger(__name__)


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
        vector = self._model.embed_query(query) if self.route != "full_text" else None
        return [_document(r) for r in self.collection.search(query, k, self.route, vector)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int = 5
    ) -> list[Document]:
        route, vector = self.route, None
        if route != "full_text":
            try:
                vector = await self._embed(query)
            except ModelError as error:
                log.warning("searching full text alone: %s", error)
                route = "full_text"
        found = await asyncio.to_thread(self.collection.search, query, k, route, vector)
        return [_document(r) for r in found]

    @property
    def _model(self) -> Embeddings:
        assert self.embeddings is not None, "a route with vectors comes with an embedding model"
        return self.embeddings

    async def _embed(self, query: str) -> Vector:
        with model_errors(self.collection.embedding_role):
            async with asyncio.timeout(EMBEDDING_SECONDS):
                return await self._model.aembed_query(query)


def build_retriever(
    settings: Settings, collection: Collection, embeddings: Embeddings | None
) -> Runnable[Question, list[RetrievedChunk]]:
    """The step `retrieve`."""
    retriever = MilvusRetriever(
        collection=collection, embeddings=embeddings, route=_route(settings, embeddings)
    )

    async def retrieve(question: Question, config: RunnableConfig) -> list[RetrievedChunk]:
        run = child(config, "retrieve/milvus")
        query = search_query(question.text)
        return [_retrieved(d) for d in await retriever.ainvoke(query, run, k=question.k)]

    return step("retrieve", retrieve)


def _route(settings: Settings, embeddings: Embeddings | None) -> Route:
    if settings.retrieval == "auto":
        return "hybrid" if embeddings else "full_text"
    if settings.retrieval != "full_text" and embeddings is None:
        raise ConfigurationError(
            f"APIDESK_RETRIEVAL={settings.retrieval} needs APIDESK_EMBEDDING_MODEL"
        )
    return settings.retrieval


def _document(retrieved: RetrievedChunk) -> Document:
    metadata = retrieved.chunk.model_dump(exclude={"text"}) | {"score": retrieved.score}
    return Document(id=retrieved.chunk.id, page_content=retrieved.chunk.text, metadata=metadata)


def _retrieved(document: Document) -> RetrievedChunk:
    fields = dict(document.metadata)
    score = fields.pop("score")
    return RetrievedChunk(chunk=Chunk(text=document.page_content, **fields), score=score)
