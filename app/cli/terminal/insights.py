"""Insights from the command line: from the database, or by the server that holds the store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from langchain_core.embeddings import Embeddings

from app.analytics.insights.documentation import DocumentationTerms, documentation_of
from app.analytics.insights.report import report, takes_documentation
from app.service.records import RecordStore
from app.serving.local_server import LocalServer, local_server
from ingestion.database.engine import open_engine
from ingestion.platform_config import read_platform
from ingestion.providers import open_embeddings
from ingestion.store.collection import Collection
from runnables.models.chat_models import open_chat_models
from schemas.errors import (
    ApideskError,
    CollectionMismatch,
    StoreError,
    StoreLocked,
    StoreUnavailable,
)
from schemas.insights import Insights, Table
from schemas.platform import PlatformConfig
from schemas.settings import Settings

SERVER_SECONDS = 120.0
"""What a server may take: a report takes its turn there."""


async def insights_once(settings: Settings, days: int, table: Table | None) -> Insights:
    """What the questions of the last `days` tell, with what `table` takes.

    Raises ConfigurationError, StoreUnavailable.
    """
    if not takes_documentation(table):
        return await _from_database(settings, days, None)
    try:
        async with _documentation(settings) as documentation:
            return await _from_database(settings, days, documentation)
    except StoreLocked as error:
        if server := local_server(settings):
            return await _from_server(server, days, table)
        return await _from_database(settings, days, _missing(error))


@asynccontextmanager
async def _documentation(settings: Settings) -> AsyncIterator[DocumentationTerms]:
    """What can be known of the documentation. Raises ConfigurationError, StoreLocked."""
    platform = read_platform(settings.platform)
    embeddings = open_embeddings(settings)
    try:
        collection = await asyncio.to_thread(Collection.connect, settings)
    except StoreUnavailable as error:
        yield _missing(error)
        return
    try:
        yield await asyncio.to_thread(_loaded, collection, platform, embeddings, settings)
    finally:
        await asyncio.to_thread(collection.close)


def _loaded(
    collection: Collection,
    platform: PlatformConfig,
    embeddings: Embeddings | None,
    settings: Settings,
) -> DocumentationTerms:
    try:
        collection.load()
    except (StoreError, CollectionMismatch) as error:
        return _missing(error)
    models = open_chat_models(settings)
    return documentation_of(platform, collection, embeddings, models, settings)


def _missing(error: ApideskError) -> DocumentationTerms:
    return DocumentationTerms(
        notes=(f"the documents cannot be looked into, so only failed answers tell a gap: {error}",)
    )


async def _from_database(
    settings: Settings, days: int, documentation: DocumentationTerms | None
) -> Insights:
    engine = await asyncio.to_thread(open_engine, settings)
    try:
        return await report(RecordStore(engine).since, days, documentation)
    finally:
        await asyncio.to_thread(engine.dispose)


async def _from_server(server: LocalServer, days: int, table: Table | None) -> Insights:
    wanted = {"days": days} | ({"table": table} if table else {})
    try:
        async with server.client(SERVER_SECONDS) as client:
            response = await client.get("/insights", params=wanted)
        if response.is_error:
            raise ApideskError(response.json().get("detail", response.reason_phrase))
        return Insights.model_validate_json(response.content)
    except (httpx.HTTPError, ValueError) as error:
        raise StoreUnavailable(f"the server at {server.url} does not answer") from error
