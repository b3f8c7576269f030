"""Runs ingestion for the command line, in this process or through a local server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import httpx

from app.serving.local_server import LocalServer, read_local_server
from app.telemetry.progress import ingestion_progress
from ingestion.job import IngestionJob, ProgressCallback, check_not_running, run_in_thread
from ingestion.platform_config import read_platform
from schemas.errors import (
    ApideskError,
    ConfigurationError,
    IngestionRunning,
    StoreLocked,
    StoreUnavailable,
)
from schemas.ingestion import IngestionOptions, IngestionRun, Trigger
from schemas.platform import OpenApiSourceConfig, SourceLimits
from schemas.settings import Settings

POLL_INTERVAL_S = 0.2
"""Seconds between requests for the state of a run on a server."""


class IngestionRunner(Protocol):
    """Runs ingestions."""

    async def run(
        self, trigger: Trigger, options: IngestionOptions, progress: ProgressCallback
    ) -> IngestionRun:
        """Run an ingestion to its end. Raises ApideskError."""


@asynccontextmanager
async def open_ingestion_runner(settings: Settings) -> AsyncIterator[IngestionRunner]:
    """Open a runner in this process, or a runner for the server that has the embedded store open.

    Raises ConfigurationError for invalid settings, StoreError if the store cannot be opened,
    IngestionRunning if another run has it open, and StoreLocked if a server has another platform.
    """
    try:
        job = await asyncio.to_thread(IngestionJob.connect, settings)
    except StoreLocked:
        server = read_local_server(settings)
        if server is None:
            check_not_running(settings)
            raise
        _check_platform(settings, server)
        async with server.client(timeout=30) as client:
            yield _RemoteRunner(client)
        return
    try:
        yield _LocalRunner(job)
    finally:
        job.close()


def explain_lines(settings: Settings, page: Path) -> list[str]:
    """Return how `page` is read, and why, line by line. Raises ConfigurationError and SourceError."""
    from ingestion.sources.explain import explain_page

    sources = read_platform(settings.platform).sources
    return explain_page(sources, SourceLimits.from_settings(settings), page)


async def run_ingestion(settings: Settings, options: IngestionOptions) -> IngestionRun:
    """Run one ingestion and show its progress on stderr. Raises ApideskError."""
    async with open_ingestion_runner(settings) as runner:
        with ingestion_progress(summary=False) as progress:
            return await runner.run("command", options, progress)


async def run_ingestion_and_watch(
    settings: Settings,
    options: IngestionOptions,
    on_run: Callable[[IngestionRun], None],
    on_error: Callable[[str], None],
) -> None:
    """Run an ingestion now and after each change of a document, until cancelled.

    `on_run` receives each finished run, and `on_error` receives the error of a run after a change. Raises
    ApideskError if the first run fails.
    """
    async with open_ingestion_runner(settings) as runner:
        with ingestion_progress(summary=False) as progress:
            on_run(await runner.run("command", options, progress))
        async for _ in _changes(settings):
            try:
                with ingestion_progress(summary=False) as progress:
                    on_run(await runner.run("watch", IngestionOptions(), progress))
            except ApideskError as error:
                on_error(str(error))


async def _changes(settings: Settings) -> AsyncIterator[None]:
    """Yield after each change in the folder of platform.toml, or in a file or folder of a source."""
    from watchfiles import awatch

    while True:
        paths = _watched_paths(settings)
        async for _ in awatch(*paths, debounce=400):
            yield
            if _watched_paths(settings) != paths:
                break


def _watched_paths(settings: Settings) -> set[Path]:
    """Return the folder of platform.toml, and the files and folders of the sources that exist."""
    paths: set[Path | None] = {settings.platform.resolve().parent}
    try:
        sources = read_platform(settings.platform).sources
    except ConfigurationError:  # platform.toml is being edited
        sources = ()
    for source in sources:
        paths.add(source.path)
        if isinstance(source, OpenApiSourceConfig) and source.root:
            paths.add(source.root)
    return {path for path in paths if path is not None and path.exists()}


def _check_platform(settings: Settings, server: LocalServer) -> None:
    """Raise StoreLocked if the server has another platform, because it would index that platform."""
    if server.platform not in ("", str(settings.platform.resolve())):
        raise StoreLocked(
            f"the server at {server.url} holds the store and indexes {server.platform}: "
            "stop it to index another"
        )


class _LocalRunner:
    def __init__(self, job: IngestionJob) -> None:
        self._job = job

    async def run(
        self, trigger: Trigger, options: IngestionOptions, progress: ProgressCallback
    ) -> IngestionRun:
        run = self._job.new_run(trigger, options)
        return await run_in_thread(self._job, run, progress)


class _RemoteRunner:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def run(
        self, trigger: Trigger, options: IngestionOptions, progress: ProgressCallback
    ) -> IngestionRun:
        run = await self._request("POST", "/ingestions", options)
        while run.state == "running":
            progress(run)
            await asyncio.sleep(POLL_INTERVAL_S)
            run = await self._request("GET", f"/ingestions/{run.id}")
        progress(run)
        if run.state == "failed":
            raise ApideskError(run.error or "the run failed")
        return run

    async def _request(
        self, method: str, path: str, options: IngestionOptions | None = None
    ) -> IngestionRun:
        body = options.model_dump(by_alias=True) if options else None
        try:
            response = await self._client.request(method, path, json=body)
            content = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise StoreUnavailable(
                f"the server at {self._client.base_url} does not answer"
            ) from error
        if response.status_code == httpx.codes.CONFLICT:
            raise IngestionRunning(content.get("detail", "another ingestion is running"))
        if response.is_error:
            raise ApideskError(content.get("detail", response.reason_phrase))
        return IngestionRun.model_validate(content)
