"""The reranker that runs a cross-encoder in this process."""

import asyncio
import math
from collections.abc import Sequence

from langchain_core.runnables import RunnableConfig

from ingestion.local_models import open_local_reranker
from ingestion.store.client import batches
from ingestion.store.schema import embedded_text
from ingestion.text.language import truncate_to_tokens
from runnables.run_context import deadline_timeout
from schemas.document import RetrievedChunk
from schemas.errors import ModelTimeout, ModelUnavailable
from schemas.settings import PREFIX, Settings

MAX_QUESTION_TOKENS = 100
"""Maximum length of the question, in tokens; longer ones are truncated, so that the passage fits too."""

MAX_PASSAGE_TOKENS = 300
"""Maximum length of a passage, in tokens. Many cross-encoders read 512 tokens; the time grows with them."""

BATCH_SIZE = 4
"""Passages per run of the model. When the time is over, only the current run is completed."""


class CrossEncoderReranker:
    """Reranks with a cross-encoder, which reads the question together with each passage."""

    def __init__(self, settings: Settings) -> None:
        """Load the model that `settings` names. Raises ConfigurationError."""
        self._model = open_local_reranker(settings)
        self._setting = f"{PREFIX}RERANK={settings.rerank}"

    async def rank(
        self, question: str, chunks: Sequence[RetrievedChunk], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Return indexes of `chunks`, most relevant first, with scores from 0 to 1. Raises ModelError."""
        question = truncate_to_tokens(question, MAX_QUESTION_TOKENS)
        passages = [
            truncate_to_tokens(embedded_text(retrieved.chunk), MAX_PASSAGE_TOKENS)
            for retrieved in chunks
        ]
        try:
            async with deadline_timeout(config):
                logits = await self._score(question, passages)
        except TimeoutError:
            raise ModelTimeout(f"{self._setting}: not ready in time") from None
        except Exception as error:  # onnxruntime raises its own errors
            name = type(error).__name__
            raise ModelUnavailable(f"{self._setting}: the model fails ({name})") from error
        order = sorted(range(len(chunks)), key=lambda index: -logits[index])
        return {index: _sigmoid(logits[index]) for index in order}

    async def _score(self, question: str, passages: list[str]) -> list[float]:
        """Return the score of each passage, unbounded; cancelling it stops after the current batch."""
        logits: list[float] = []
        for batch in batches(passages, BATCH_SIZE):
            logits += await asyncio.to_thread(self._score_batch, question, batch)
        return logits

    def _score_batch(self, question: str, passages: list[str]) -> list[float]:
        return list(self._model.rerank(question, passages, batch_size=BATCH_SIZE))


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-500.0, min(logit, 500.0))))
