"""One route of retrieval, asked as the desk asks it, and timed."""

import time

from langchain_core.embeddings import Embeddings

from app.analytics.evaluation.dataset import EvaluationQuestion
from app.analytics.evaluation.scoring import ProbeResult
from app.service.answer_service import AnswerService
from ingestion.text.language import detect_language
from runnables.retrieval.retriever import RetrievalMode
from schemas.errors import ModelUnavailable
from schemas.question import Question

CHUNKS = 60
"""Chunks that are asked for, so that 20 documents are among them."""


class WatchedEmbeddings(Embeddings):
    """An embedding model that remembers its failure.

    The retriever hides it from users and searches full text alone; measured, that would be a lie.
    """

    def __init__(self, model: Embeddings) -> None:
        self.failure: BaseException | None = None
        self._model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """As the model does."""
        return self._model.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """As the model does."""
        return self._model.embed_query(text)

    async def aembed_query(self, text: str) -> list[float]:
        """As the model does; a failure, or being cancelled for slowness, is remembered and raised."""
        try:
            return await self._model.aembed_query(text)
        except BaseException as error:
            self.failure = error
            raise


def watch_embeddings(answer_service: AnswerService) -> WatchedEmbeddings | None:
    """Put a watch on the desk's embedding model, if it has one, for retrievers to come."""
    if answer_service.job.embeddings is None:
        return None
    watched = WatchedEmbeddings(answer_service.job.embeddings)
    answer_service.job.embeddings = watched
    return watched


class RetrievalProbe:
    """Retrieval by one route. Raises ConfigurationError for a route without its model."""

    def __init__(
        self, answer_service: AnswerService, mode: RetrievalMode, watched: WatchedEmbeddings | None
    ) -> None:
        self.mode = mode
        self._retrieve = answer_service.retriever(mode)
        self._watched = watched
        self._role = answer_service.collection.embedding_role

    async def ask(self, asked: EvaluationQuestion) -> ProbeResult:
        """The best chunks, and how long that took. Raises ModelError, StoreError."""
        language = detect_language(asked.question)
        question = Question(text=asked.question, k=CHUNKS, language=language)
        started = time.perf_counter()
        chunks = await self._retrieve.ainvoke(question)
        milliseconds = (time.perf_counter() - started) * 1000
        if self._watched and self._watched.failure:
            raise ModelUnavailable(
                f"{self._role.setting} fails ({type(self._watched.failure).__name__}), and full text "
                "alone would be measured: see `apidesk check`, or pass --mode full_text"
            )
        return ProbeResult(chunks, milliseconds)
