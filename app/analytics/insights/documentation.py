"""What a report knows of the documentation: less of it makes a poorer report, but a report."""

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

WORDS_AT_ONCE = 1_000
"""Words that are looked up by one query of the store."""

Vectors = Sequence[Sequence[float]]

Embed = Callable[[Sequence[str]], Awaitable[Vectors]]
"""The vectors of some texts. Raises ModelError."""


@dataclass(frozen=True)
class DocumentationTerms:
    """Its words, what they mean in other words, and the models that see meaning."""

    words: WordShares | None = None
    glossary: Glossary | None = None
    embed: Embed | None = None
    same_topic: QuestionGrouper | None = None
    """A chat model that joins what words keep apart."""
    notes: tuple[str, ...] = ()
    """Why something of it is missing."""


def documentation_of(
    platform: PlatformConfig,
    collection: Collection,
    embeddings: Embeddings | None,
    models: ChatModels | None,
    settings: Settings,
) -> DocumentationTerms:
    """What there is to know, by a collection that may be searched."""
    return DocumentationTerms(
        words=_word_shares(collection),
        glossary=Glossary(platform.glossary),
        embed=_embedder(embeddings, settings) if embeddings else None,
        same_topic=QuestionGrouper(models, platform.platform) if models else None,
    )


def _word_shares(collection: Collection) -> WordShares:
    def shares(words: Iterable[str]) -> Mapping[str, float]:
        total = max(collection.contract.words, 1)
        return {
            word: count / total
            for batch in batches(words, WORDS_AT_ONCE)
            for word, count in collection.word_counts(batch).items()
        }

    return shares


def _embedder(model: Embeddings, settings: Settings) -> Embed:
    role = ModelRole("EMBEDDING", settings.embedding_model or "")

    async def embed(texts: Sequence[str]) -> Vectors:
        found: list[list[float]] = []
        with model_errors(role):
            async with asyncio.timeout(settings.request_timeout):
                requests = batches(texts, settings.embedding_batch)
                for some in batches(requests, settings.embedding_requests):
                    for vectors in await asyncio.gather(*map(model.aembed_documents, some)):
                        found += vectors
        if len(found) != len(texts) or len(set(map(len, found))) > 1:
            raise ModelOutputInvalid(f"{role.setting}: not one vector of one length for each text")
        return found

    return embed
