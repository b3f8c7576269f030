"""Ingestion from the command line: by a job of its own, or by the server that holds the store."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import httpx

from app.cli.terminal.progress import ingestion_progress
from app.serving.local_server import LocalServer, local_server
from ingestion.job import IngestionJob, IngestionProgress, check_free, run_in_thread
from ingestion.platform_config import read_platform
from schemas.errors import (
    ApideskError,
    ConfigurationError,
    IngestionRunning,
    StoreLocked,
    StoreUnavailable,
)
from schemas.ingestion import IngestionOptions, IngestionRun, Trigger
from schemas.settings import Settings
from schemas.source import OpenApiSourceConfig

POLL_SECONDS = 0.2


class Ingester(Protocol):
    """Whoever does the runs."""

    async def run(
        self, trigger: Trigger, options: IngestionOptions, progress: IngestionProgress
    ) -> IngestionRun:
        """A run, to its end. Raises ApideskError."""


@asynccontextmanager
async def open_ingester(settings: Settings) -> AsyncIterator[Ingester]:
    """This process, or the server that holds the embedded store.

    Raises ConfigurationError, IngestionRunning when another run holds the store, StoreError.
    """
    try:
        job = await asyncio.to_thread(IngestionJob.connect, settings)
    except StoreLocked:
        server = local_server(settings)
        if server is None:
            check_free(settings)
            raise
        _check_platform(settings, server)
        async with server.client(timeout=30) as client:
            yield _ByServer(client)
        return
    try:
        yield _ByItself(job)
    finally:
        job.close()


async def ingest_once(settings: Settings, options: IngestionOptions) -> IngestionRun:
    """One run, its progress shown on stderr. Raises ApideskError."""
    async with open_ingester(settings) as ingester:
        with ingestion_progress(summary=False) as progress:
            return await ingester.run("command", options, progress)


async def ingest_and_watch(
    settings: Settings,
    options: IngestionOptions,
    report: Callable[[IngestionRun], None],
    complain: Callable[[str], None],
) -> None:
    """One run, and another after each change of a document, until cancelled.

    What a run fails with goes to `complain`; the next change is a new chance.
    """
    async with open_ingester(settings) as ingester:
        with ingestion_progress(summary=False) as progress:
            report(await ingester.run("command", options, progress))
        async for _ in _changes(settings):
            try:
                with ingestion_progress(summary=False) as progress:
                    report(await ingester.run("watch", IngestionOptions(), progress))
            except ApideskError as error:
                complain(str(error))


async def _changes(settings: Settings) -> AsyncIterator[None]:
    """One item for each change of platform.toml or of what it names."""
    from watchfiles import awatch

    while True:
        paths = _watched(settings)
        async for _ in awatch(*paths, debounce=400):
            yield
            if _watched(settings) != paths:
                break


def _watched(settings: Settings) -> set[Path]:
    """What there is of platform.toml and of the sources' files and folders."""
    paths: set[Path | None] = {settings.platform.resolve().parent}
    try:
        sources = read_platform(settings.platform).sources
    except ConfigurationError:  # it is being edited
        sources = ()
    for source in sources:
        paths.add(source.path)
        if isinstance(source, OpenApiSourceConfig) and source.root:
            paths.add(source.root)
    return {path for path in paths if path is not None and path.exists()}


def _check_platform(settings: Settings, server: LocalServer) -> None:
    """A server indexes its own platform, whatever this command was told."""
    if server.platform not in ("", str(settings.platform.resolve())):
        raise StoreLocked(
            f"the server at {server.url} holds the store and indexes {server.platform}: "
            "stop it to index another"
        )


class _ByItself:
    def __init__(self, job: IngestionJob) -> None:
        self._job = job

    async def run(
        self, trigger: Trigger, options: IngestionOptions, progress: IngestionProgress
    ) -> IngestionRun:
        run = self._job.new_run(trigger, options)
        return await run_in_thread(self._job, run, progress)


class _ByServer:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def run(
        self, trigger: Trigger, options: IngestionOptions, progress: IngestionProgress
    ) -> IngestionRun:
        run = await self._ask("POST", "/ingestions", options)
        while run.state == "running":
            progress(run)
            await asyncio.sleep(POLL_SECONDS)
            run = await self._ask("GET", f"/ingestions/{run.id}")
        progress(run)
        if run.state == "failed":
            raise ApideskError(run.error or "the run failed")
        return run

    async def _ask(
        self, method: str, path: str, options: IngestionOptions | None = None
    ) -> IngestionRun:
        body = options.model_dump(by_alias=True) if options else None
        try:
            response = await self._client.request(method, path, json=body)
            found = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise StoreUnavailable(
                f"the server at {self._client.base_url} does not answer"
            ) from error
        if response.status_code == httpx.codes.CONFLICT:
            raise IngestionRunning(found.get("detail", "another ingestion is under way"))
        if response.is_error:
            raise ApideskError(found.get("detail", response.reason_phrase))
        return IngestionRun.model_validate(found)
