"""Builds the insights report for the command line.

The report is built from the records in the database. Gaps also need the documents.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langchain_core.embeddings import Embeddings

from app.analytics.insights.documentation import DocumentationContext, build_documentation_context
from app.analytics.insights.report import build_report, needs_documentation
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from ingestion.embeddings import open_embeddings
from ingestion.platform_config import read_platform
from ingestion.store.collection import Collection
from runnables.models.chat_models import open_chat_models
from schemas.errors import ApideskError, CollectionMismatch, StoreError, StoreUnavailable
from schemas.insights import Insights, Table
from schemas.platform import PlatformConfig
from schemas.settings import Settings


async def load_insights(settings: Settings, days: int, table: Table | None) -> Insights:
    """Build the report on the last `days` days, with gaps only if `table` needs them.

    Raises ConfigurationError for invalid settings, and StoreUnavailable if the database does not answer.
    """
    if not needs_documentation(table):
        return await _from_database(settings, days, None)
    async with _documentation(settings) as documentation:
        return await _from_database(settings, days, documentation)


@asynccontextmanager
async def _documentation(settings: Settings) -> AsyncIterator[DocumentationContext]:
    """Open the available parts of the documentation. Raises ConfigurationError."""
    platform = read_platform(settings.platform)
    embeddings = open_embeddings(settings)
    try:
        collection = await asyncio.to_thread(Collection.connect, settings)
    except StoreUnavailable as error:
        yield _unavailable(error)
        return
    try:
        yield await asyncio.to_thread(_load_context, collection, platform, embeddings, settings)
    finally:
        await asyncio.to_thread(collection.close)


def _load_context(
    collection: Collection,
    platform: PlatformConfig,
    embeddings: Embeddings | None,
    settings: Settings,
) -> DocumentationContext:
    try:
        collection.load()
    except (StoreError, CollectionMismatch) as error:
        return _unavailable(error)
    models = open_chat_models(settings)
    return build_documentation_context(platform, collection, embeddings, models, settings)


def _unavailable(error: ApideskError) -> DocumentationContext:
    return DocumentationContext(
        notes=(f"the documents are not available, so only failed answers reveal a gap: {error}",)
    )


async def _from_database(
    settings: Settings, days: int, documentation: DocumentationContext | None
) -> Insights:
    engine = await asyncio.to_thread(open_engine, settings)
    try:
        return await build_report(RecordStore(engine).since, days, documentation)
    finally:
        await asyncio.to_thread(engine.dispose)
