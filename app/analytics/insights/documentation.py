"""Provides the word frequencies, glossary and models of the documentation for gap detection."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.embeddings import Embeddings

from app.analytics.insights.gap_naming import QuestionGrouper
from app.analytics.insights.terms import WordShares
from ingestion.providers import ModelRole, model_errors
from ingestion.store.client import batches
from ingestion.store.collection import Collection
from runnables.models.chat_models import ChatModels
from runnables.retrieval.query_analysis import Glossary
from schemas.errors import ModelOutputInvalid
from schemas.platform import PlatformConfig
from schemas.settings import Settings

WORD_BATCH = 1_000
"""Maximum number of words in one query to the store."""

Vectors = Sequence[Sequence[float]]

EmbedTexts = Callable[[Sequence[str]], Awaitable[Vectors]]
"""Embeds texts, one vector per text. Raises ModelError."""


@dataclass(frozen=True)
class DocumentationContext:
    """The word frequencies, glossary and models that gap detection uses.

    Every part is optional; it is None if it is not available.
    """

    words: WordShares | None = None
    glossary: Glossary | None = None
    embed: EmbedTexts | None = None
    grouper: QuestionGrouper | None = None
    """Joins groups that have the same topic, with a chat model."""
    notes: tuple[str, ...] = ()
    """Reasons why parts are not available."""


def build_documentation_context(
    platform: PlatformConfig,
    collection: Collection,
    embeddings: Embeddings | None,
    models: ChatModels | None,
    settings: Settings,
) -> DocumentationContext:
    """Build the context from a loaded collection and the configured models."""
    return DocumentationContext(
        words=_word_shares(collection),
        glossary=Glossary(platform.glossary),
        embed=_embedder(embeddings, settings) if embeddings else None,
        grouper=QuestionGrouper(models, platform.platform) if models else None,
    )


def _word_shares(collection: Collection) -> WordShares:
    def shares(words: Iterable[str]) -> Mapping[str, float]:
        total = max(collection.manifest.words, 1)
        return {
            word: count / total
            for batch in batches(words, WORD_BATCH)
            for word, count in collection.word_counts(batch).items()
        }

    return shares


def _embedder(model: Embeddings, settings: Settings) -> EmbedTexts:
    role = ModelRole("EMBEDDING", settings.embedding_model or "")

    async def embed(texts: Sequence[str]) -> Vectors:
        vectors: list[list[float]] = []
        with model_errors(role):
            async with asyncio.timeout(settings.request_timeout):
                requests = batches(texts, settings.embedding_batch)
                for concurrent in batches(requests, settings.embedding_requests):
                    for batch in await asyncio.gather(*map(model.aembed_documents, concurrent)):
                        vectors += batch
        if len(vectors) != len(texts) or len(set(map(len, vectors))) > 1:
            raise ModelOutputInvalid(
                f"{role.setting}: the model must return one vector per text, all of the same length"
            )
        return vectors

    return embed
