"""Runs one retrieval route as the service does, and measures its time."""

import time

from langchain_core.embeddings import Embeddings

from app.analytics.evaluation.dataset import EvaluationQuestion
from app.analytics.evaluation.scoring import ProbeResult
from app.service.answer_service import AnswerService
from ingestion.text.language import detect_language
from runnables.retrieval.retriever import RetrievalMode
from schemas.errors import ModelUnavailable
from schemas.question import Question

PROBE_CHUNKS = 60
"""Number of chunks to retrieve per question, so that they contain 20 distinct documents."""


class FailureTrackingEmbeddings(Embeddings):
    """Wraps an embedding model and records its last failure.

    The retriever falls back to full text when embedding fails. An evaluation must report the failure
    instead of measuring the fallback.
    """

    def __init__(self, model: Embeddings) -> None:
        self.failure: BaseException | None = None
        self._model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Delegate to the model."""
        return self._model.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """Delegate to the model."""
        return self._model.embed_query(text)

    async def aembed_query(self, text: str) -> list[float]:
        """Delegate to the model. Record a failure, including a cancellation, and raise it again."""
        try:
            return await self._model.aembed_query(text)
        except BaseException as error:
            self.failure = error
            raise


class RetrievalProbe:
    """Retrieves with one route.

    The constructor raises ConfigurationError if the route needs a model that is not configured.
    """

    def __init__(self, answer_service: AnswerService, mode: RetrievalMode) -> None:
        self.mode = mode
        model = answer_service.job.embeddings
        self._embeddings = FailureTrackingEmbeddings(model) if model else None
        self._retrieve = answer_service.retriever(mode, self._embeddings)
        self._role = answer_service.collection.embedding_role

    async def run(self, question: EvaluationQuestion) -> ProbeResult:
        """Return the best chunks and the time to retrieve them. Raises ModelError or StoreError."""
        text = question.question
        query = Question(text=text, k=PROBE_CHUNKS, language=detect_language(text))
        started = time.perf_counter()
        chunks = await self._retrieve.ainvoke(query)
        milliseconds = (time.perf_counter() - started) * 1000
        if self._embeddings and self._embeddings.failure:
            raise ModelUnavailable(
                f"{self._role.setting} fails ({type(self._embeddings.failure).__name__}), so only full "
                "text would be measured: see `apidesk check`, or pass --mode full_text"
            )
        return ProbeResult(chunks, milliseconds)
