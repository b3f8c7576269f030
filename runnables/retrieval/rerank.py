"""Retrieved chunks -> the same chunks in a better order, by an endpoint or the chat model."""

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol, TypedDict

from langchain_core.runnables import RunnableConfig

from runnables.models.chat_models import ChatModels
from runnables.retrieval.rerankers import EndpointReranker, ListwiseReranker
from runnables.run_context import child_config, named_step, with_deadline
from schemas.document import RetrievedChunk
from schemas.errors import ConfigurationError, ModelError
from schemas.platform import PlatformInfo
from schemas.settings import Settings

NAME = "retrieve/rerank"

MOST = 30
"""Chunks that are put in order; those behind them keep their places."""

log = logging.getLogger(__name__)


class Reranker(Protocol):
    """A way to tell which chunks answer a question best."""

    async def rank(
        self, question: str, chunks: Sequence[RetrievedChunk], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Places in `chunks`, best first, each with its new score or None. Keeps the deadline.

        Raises ModelError.
        """


class RerankInput(TypedDict):
    """What a trace shows as the input."""

    question: str
    chunks: list[RetrievedChunk]


class RerankOutput(TypedDict):
    """What a trace shows as the output."""

    chunks: list[RetrievedChunk]
    skipped: str | None
    """Why the order is the old one; None when it is the new one."""


class RerankStep:
    """Puts the best of what was retrieved first, in the time that Settings allow."""

    def __init__(self, ranker: Reranker, seconds: float) -> None:
        self._ranker = ranker
        self._seconds = seconds
        self._step = named_step(NAME, self._rerank)

    async def rerank(
        self, question: str, found: list[RetrievedChunk], config: RunnableConfig
    ) -> list[RetrievedChunk]:
        """`found`, the best first; as it is, where the ranker fails or is late. Never raises.

        What the endpoint scores has its relevance for `score`, as sent; all else keeps the score of
        retrieval. So the order counts from here on: the scores are of two kinds.
        """
        if len(found) < 2:
            return found
        given = RerankInput(question=question, chunks=found[:MOST])
        reranked = await self._step.ainvoke(given, child_config(config, NAME))
        return reranked["chunks"] + found[MOST:]

    async def _rerank(self, given: RerankInput, config: RunnableConfig) -> RerankOutput:
        chunks = given["chunks"]
        try:
            ranks = await self._ranker.rank(
                given["question"], chunks, with_deadline(config, self._seconds)
            )
            return RerankOutput(chunks=reordered(chunks, ranks), skipped=None)
        except Exception as error:  # whatever it is, there is an order already
            reason = str(error) if isinstance(error, ModelError) else type(error).__name__
            log.warning("%s: the order stays as it is: %s", NAME, reason)
            return RerankOutput(chunks=chunks, skipped=reason)


def build_rerank(
    settings: Settings, models: ChatModels | None, platform_info: PlatformInfo
) -> RerankStep | None:
    """Reranking as Settings name it, or None for `none`.

    Raises ConfigurationError for an endpoint without its address, a model where there is none.
    """
    if settings.rerank == "none":
        return None
    if settings.rerank == "endpoint":
        return RerankStep(EndpointReranker(settings), settings.rerank_timeout)
    if models is None:
        raise ConfigurationError("APIDESK_RERANK=model needs APIDESK_CHAT_MODEL")
    ranker = ListwiseReranker(NAME, models.writers[0], platform_info)
    return RerankStep(ranker, settings.rerank_timeout)


def reordered(
    chunks: Sequence[RetrievedChunk], ranks: Mapping[int, float | None]
) -> list[RetrievedChunk]:
    """`chunks` at the places that `ranks` names, in its order; then the others in theirs."""
    named = [_scored(chunks[place], score) for place, score in ranks.items()]
    return named + [chunk for place, chunk in enumerate(chunks) if place not in ranks]


def _scored(retrieved: RetrievedChunk, score: float | None) -> RetrievedChunk:
    return retrieved if score is None else retrieved.model_copy(update={"score": score})
