"""The base class of rerankers, and a reranker that wraps any LangChain document compressor."""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Self

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableConfig

from runnables.run_context import deadline_timeout
from schemas.errors import ConfigurationError, ModelTimeout
from schemas.settings import PREFIX, Settings

RERANK_DEPTH = 30
"""Maximum number of chunks to rerank; the chunks after them keep their order."""

SCORE_KEY = "relevance_score"
"""Metadata key of a document's new score, as in LangChain's compressors."""

_INDEX_KEY = "index"


class Reranker(BaseDocumentCompressor, ABC):
    """Orders passages by how well they answer a question."""

    @abstractmethod
    async def rank(
        self, question: str, passages: Sequence[str], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Return the scores of `passages` by index, best passage first.

        A score is None if the reranker gives the passage a position but no score. Some passages may be
        missing. The deadline of `config` applies. Raises ModelError. A `CompressorReranker` also raises the
        errors of its compressor.
        """

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the documents that were ranked, best first, with their new scores as `relevance_score`.

        Raises the errors of `rank`.
        """
        passages = [document.page_content for document in documents]
        ranks = await self.rank(query, passages, {"callbacks": callbacks})
        return [_with_score(documents[index], score) for index, score in ranks.items()]

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Run `acompress_documents`, and wait for it. The thread must not have a running event loop."""
        return asyncio.run(self.acompress_documents(documents, query, callbacks))


def _with_score(document: Document, score: float | None) -> Document:
    metadata = document.metadata | ({} if score is None else {SCORE_KEY: score})
    return document.model_copy(update={"metadata": metadata})


class CompressorReranker(Reranker):
    """Reranks with a LangChain document compressor, such as `langchain_cohere.CohereRerank`."""

    def __init__(self, compressor: BaseDocumentCompressor) -> None:
        super().__init__()
        self._compressor = compressor

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Return a reranker with the compressor class that APIDESK_RERANK names.

        The fields `model` and `top_n` of the class, if it has them, are set to APIDESK_RERANK_MODEL and
        RERANK_DEPTH. Raises ConfigurationError if the class is missing, is not a compressor or cannot be
        created.
        """
        setting = f"{PREFIX}RERANK={settings.rerank}"
        module, _, name = settings.rerank.rpartition(".")
        try:
            compressor_class = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            raise ConfigurationError(
                f"{setting}: there is no such class; check its name, and install its package"
            ) from None
        if not (
            isinstance(compressor_class, type)
            and issubclass(compressor_class, BaseDocumentCompressor)
        ):
            raise ConfigurationError(f"{setting}: not a LangChain BaseDocumentCompressor")
        options = {"model": settings.rerank_model, "top_n": RERANK_DEPTH}
        known = {
            key: value
            for key, value in options.items()
            if key in compressor_class.model_fields and value is not None
        }
        try:
            return cls(compressor_class(**known))
        except Exception as error:  # its message may contain a key
            problem = f"cannot be created ({type(error).__name__})"
            raise ConfigurationError(
                f"{setting}: {problem}; check its API key and APIDESK_RERANK_MODEL"
            ) from None

    async def rank(
        self, question: str, passages: Sequence[str], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Return indexes of `passages` in the compressor's order, with its scores.

        Raises ModelTimeout, and the errors of the compressor.
        """
        documents = [
            Document(passage, metadata={_INDEX_KEY: index})
            for index, passage in enumerate(passages)
        ]
        try:
            async with deadline_timeout(config):
                ranked = await self._compressor.acompress_documents(
                    documents, question, config.get("callbacks")
                )
        except TimeoutError:
            name = type(self._compressor).__name__
            raise ModelTimeout(f"{name}: no answer in time; check APIDESK_RERANK_TIMEOUT") from None
        return {
            document.metadata[_INDEX_KEY]: finite_float(document.metadata.get(SCORE_KEY))
            for document in ranked
        }


def finite_float(value: object) -> float | None:
    """Return `value` as a finite float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond the range of floats
        return None
