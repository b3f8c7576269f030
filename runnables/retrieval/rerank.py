"""The step that reranks retrieved chunks.

It uses an endpoint, the chat model, a local model or a LangChain document compressor.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TypedDict

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.runnables import RunnableConfig

from ingestion.local_models import LOCAL_PROVIDER
from ingestion.store.schema import searchable_text
from runnables.models.chat_models import ChatModels
from runnables.retrieval.compressors import RERANK_DEPTH, CompressorReranker, Reranker
from runnables.retrieval.rerankers import CrossEncoderReranker, EndpointReranker, ListwiseReranker
from runnables.run_context import NamedStep, child_config, with_deadline
from schemas.document import RetrievedChunk
from schemas.errors import ConfigurationError, ModelError
from schemas.platform import PlatformInfo
from schemas.settings import Settings

RUN_NAME = "retrieve/rerank"

log = logging.getLogger(__name__)


class RerankInput(TypedDict):
    """Input of the step, as traces show it."""

    question: str
    chunks: list[RetrievedChunk]


class RerankOutput(TypedDict):
    """Output of the step, as traces show it."""

    chunks: list[RetrievedChunk]
    skipped: str | None
    """Why the order is unchanged; None if the chunks were reranked."""


class RerankStep:
    """Reranks chunks, and keeps the retrieval order if the reranker fails or times out."""

    def __init__(self, reranker: Reranker, timeout_s: float) -> None:
        self._reranker = reranker
        self._timeout_s = timeout_s
        self._step = NamedStep(self._run, RUN_NAME)

    async def rerank(
        self, question: str, chunks: list[RetrievedChunk], config: RunnableConfig
    ) -> list[RetrievedChunk]:
        """Return `chunks`, best first; unchanged if the reranker fails or times out. Never raises.

        Chunks that the reranker scores get the new score, and all others keep their retrieval score. New
        and old scores are not comparable.
        """
        if len(chunks) < 2:
            return chunks
        step_input = RerankInput(question=question, chunks=chunks[:RERANK_DEPTH])
        output = await self._step.ainvoke(step_input, child_config(config, RUN_NAME))
        return output["chunks"] + chunks[RERANK_DEPTH:]

    async def _run(self, step_input: RerankInput, config: RunnableConfig) -> RerankOutput:
        chunks = step_input["chunks"]
        passages = [searchable_text(retrieved.chunk) for retrieved in chunks]
        try:
            ranks = await self._reranker.rank(
                step_input["question"], passages, with_deadline(config, self._timeout_s)
            )
            return RerankOutput(chunks=apply_ranks(chunks, ranks), skipped=None)
        except Exception as error:  # the retrieval order remains valid
            reason = str(error) if isinstance(error, ModelError) else type(error).__name__
            log.warning("%s: keeping the retrieval order: %s", RUN_NAME, reason)
            return RerankOutput(chunks=chunks, skipped=reason)


def build_rerank(
    settings: Settings,
    models: ChatModels | None,
    platform_info: PlatformInfo,
    compressor: BaseDocumentCompressor | None = None,
) -> RerankStep | None:
    """Return the rerank step with `compressor` or, if that is None, with the configured reranker.

    Returns None if no reranker is configured and there is no `compressor`. Raises ConfigurationError if the
    configured reranker cannot be created.
    """
    if compressor is None:
        reranker = _open_reranker(settings, models, platform_info)
    else:
        reranker = CompressorReranker(compressor)
    return RerankStep(reranker, settings.rerank_timeout) if reranker else None


def _open_reranker(
    settings: Settings, models: ChatModels | None, platform_info: PlatformInfo
) -> Reranker | None:
    if settings.rerank == "none":
        return None
    if settings.rerank == "endpoint":
        return EndpointReranker(settings)
    if settings.rerank.startswith(LOCAL_PROVIDER):
        return CrossEncoderReranker(settings)
    if settings.rerank != "model":
        return CompressorReranker.open(settings)
    if models is None:
        raise ConfigurationError("APIDESK_RERANK=model needs APIDESK_CHAT_MODEL")
    return ListwiseReranker(RUN_NAME, models.answer_models[0], platform_info)


def apply_ranks(
    chunks: Sequence[RetrievedChunk], ranks: Mapping[int, float | None]
) -> list[RetrievedChunk]:
    """Return the chunks whose indexes are in `ranks`, in the order of `ranks`, then all other chunks."""
    ranked = [_with_score(chunks[index], score) for index, score in ranks.items()]
    return ranked + [chunk for index, chunk in enumerate(chunks) if index not in ranks]


def _with_score(retrieved: RetrievedChunk, score: float | None) -> RetrievedChunk:
    return retrieved if score is None else retrieved.model_copy(update={"score": score})
