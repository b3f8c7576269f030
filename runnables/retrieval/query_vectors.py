"""The vectors of questions: each is asked for once, however often a question is searched for."""

import asyncio
from array import array

from cachetools import LRUCache
from langchain_core.embeddings import Embeddings

from ingestion.collection_schema import Vector
from ingestion.model_errors import ModelRole, model_errors

SECONDS = 10
"""How long a question's vector is waited for; then full text alone answers."""

REMEMBERED = 256
"""Questions whose vectors are kept: a megabyte where they have 1,024 numbers."""


class QueryEmbeddings:
    """What an embedding model gives for questions."""

    def __init__(self, embeddings: Embeddings, role: ModelRole) -> None:
        self._embeddings = embeddings
        self._role = role
        self._known: LRUCache[str, array[float]] = LRUCache(REMEMBERED)

    async def of(self, query: str) -> Vector:
        """The vector of `query`. Raises ModelError."""
        if query not in self._known:
            with model_errors(self._role):
                async with asyncio.timeout(SECONDS):
                    found = await self._embeddings.aembed_query(query)
            self._known[query] = array("f", found)
        return self._known[query].tolist()

    def blocking(self, query: str) -> Vector:
        """As `of`, for LangChain's own way of calling a retriever; it waits as long as it takes."""
        return self._embeddings.embed_query(query)
