"""Runs ingestion for the command line, in this process, and explains how a single page is read.

A server may use the same store at the same time.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from sqlalchemy.engine import make_url

from app.analytics.report_text import count_of
from app.serving.local_server import find_running_server
from app.telemetry.progress import ingestion_progress, print_run_table
from ingestion.job import IngestionJob, run_in_thread
from ingestion.platform_config import read_platform
from ingestion.sources.registry import get_reader
from schemas.errors import ApideskError, ConfigurationError, SourceError
from schemas.ingestion import IngestionOptions, IngestionRun, Trigger
from schemas.platform import OpenApiSourceConfig, PageFolderConfig, SourceConfig, SourceLimits
from schemas.settings import Settings

if TYPE_CHECKING:
    from ingestion.sources.api_pages.operation import PageOperation
    from ingestion.sources.pages import PageContent, ParsedPage


async def run_ingestion(settings: Settings, options: IngestionOptions) -> IngestionRun:
    """Run one ingestion and show its progress on stderr.

    Raises ApideskError if the run fails, or if a running server uses the store for another platform.
    """
    async with _open_job(settings) as job:
        return await _run(job, "command", options)


async def run_ingestion_and_watch(
    settings: Settings,
    options: IngestionOptions,
    on_run: Callable[[IngestionRun], None],
    on_error: Callable[[str], None],
) -> None:
    """Run an ingestion now and after each change on disk, until cancelled.

    Raises the errors of `run_ingestion` if the first run fails.

    Arguments:
        settings: the settings of all runs
        options: the options of the first run; later runs ignore all of them except `dry_run`
        on_run: receives each finished run
        on_error: receives the message of an ApideskError in a later run
    """
    later_options = IngestionOptions(dry_run=options.dry_run)
    async with _open_job(settings) as job, aclosing(_changes(settings)) as changes:
        await anext(changes)
        on_run(await _run(job, "command", options))
        async for _ in changes:
            try:
                on_run(await _run(job, "watch", later_options))
            except ApideskError as error:
                on_error(str(error))


def print_ingestion_run(run: IngestionRun, as_json: bool) -> None:
    """Print a finished run on stdout, as a table or, if `as_json`, as the JSON of the HTTP API."""
    if as_json:
        print(run.model_dump_json(by_alias=True, indent=2))
    else:
        print_run_table(run, Console(highlight=False))


@asynccontextmanager
async def _open_job(settings: Settings) -> AsyncIterator[IngestionJob]:
    _check_platform(settings)
    job = await asyncio.to_thread(IngestionJob.connect, settings)
    try:
        yield job
    finally:
        job.close()


def _check_platform(settings: Settings) -> None:
    """Raise ConfigurationError if a running server uses the store for another platform."""
    server = find_running_server(settings)
    if server and server.platform != str(settings.platform.resolve()):
        raise ConfigurationError(
            f"the server at {server.url} uses this store and indexes {server.platform}: "
            "stop it to index another platform"
        )


async def _run(job: IngestionJob, trigger: Trigger, options: IngestionOptions) -> IngestionRun:
    with ingestion_progress(summary=False) as progress:
        return await run_in_thread(job, job.new_run(trigger, options), progress)


async def _changes(settings: Settings) -> AsyncGenerator[None]:
    """Yield once when watching begins, and then after each change in the watched paths.

    Watching continues while the caller processes a change. Changes in `_own_paths` are ignored. If the set
    of watched paths changes, for example because platform.toml has a new source, the new set is watched.
    """
    from watchfiles import Change, DefaultFilter, awatch

    default_filter, own_paths = DefaultFilter(), _own_paths(settings)

    def watch_filter(change: Change, path: str) -> bool:
        return default_filter(change, path) and not _is_own(Path(path), own_paths)

    while True:
        paths = _watched_paths(settings)
        changes = awatch(*paths, watch_filter=watch_filter, debounce=400)
        while _watched_paths(settings) == paths:
            next_change = asyncio.ensure_future(anext(changes))
            try:
                await asyncio.sleep(0)  # lets `awatch` begin
                yield
                await next_change
            finally:
                next_change.cancel()


def _watched_paths(settings: Settings) -> set[Path]:
    """Return the folder of platform.toml, and the existing files and folders of the sources."""
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


def _own_paths(settings: Settings) -> list[Path]:
    """Return the paths that apidesk itself writes, such as the database and the local index file."""
    paths = [settings.website_cache, settings.spool, settings.local_model_folder]
    database = make_url(settings.database_url)
    if database.get_backend_name() == "sqlite" and database.database:
        paths.append(Path(database.database))
    if settings.embedded:
        paths.append(Path(settings.milvus_uri))
    return [path.resolve() for path in paths]


def _is_own(path: Path, own_paths: list[Path]) -> bool:
    """Return whether `path` belongs to one of `own_paths`, as apidesk.db-journal belongs to apidesk.db."""
    return any(
        path.is_relative_to(own) or (path.parent == own.parent and path.name.startswith(own.name))
        for own in own_paths
    )


# --- explanation of one page ----------------------------------------------------------------------


def explain_lines(settings: Settings, page: Path) -> list[str]:
    """Return lines that say whether `page` is read as API operations or as prose, and why.

    Raises ConfigurationError or SourceError.
    """
    sources = read_platform(settings.platform).sources
    return explain_page(sources, SourceLimits.from_settings(settings), page)


def explain_page(sources: Sequence[SourceConfig], limits: SourceLimits, path: Path) -> list[str]:
    """Return lines that explain how the page at `path` is read, with the evidence.

    `path` is relative to the working directory or to the folder of a source. Raises SourceError if there is
    no such file, if none of `sources` reads it as a page, or if the reader refuses it. Raises
    ConfigurationError for a malformed `page_url`.
    """
    from ingestion.sources.pages import PageFolderReader

    page_sources = [source for source in sources if isinstance(source, PageFolderConfig)]
    descriptions = {
        source.path.resolve(): source.name
        for source in sources
        if isinstance(source, OpenApiSourceConfig) and source.path is not None
    }
    folders = [*(source.path for source in page_sources), *(file.parent for file in descriptions)]
    candidates = (path, *(folder / path for folder in folders))
    files = [candidate.resolve() for candidate in candidates if candidate.is_file()]
    if not files:
        raise SourceError(f"{path}: no such file, neither here nor in the folder of a source")
    for page_path, source in product(files, page_sources):
        reader = get_reader(source.kind)
        if not isinstance(reader, PageFolderReader):
            continue
        is_accepted = page_path.suffix.lower() in reader.suffixes(source)
        if is_accepted and page_path.is_relative_to(root := source.path.resolve()):
            path_in_source = source.path / page_path.relative_to(root)
            try:
                content = reader.read_content(source, limits, path_in_source)
            except SourceError as error:
                raise SourceError(f"{path}: {error}") from None
            return list(_explanation(path_in_source, source, content))
    if name := next((descriptions[file] for file in files if file in descriptions), ""):
        reads = f"the source {name} reads this file as an OpenAPI description"
        raise SourceError(f"{path}: {reads}; only pages can be explained")
    raise SourceError(f"{path}: no configured source reads this file as a page")


def _explanation(path: Path, source: PageFolderConfig, content: "PageContent") -> Iterator[str]:
    from ingestion.sources.pages import parse_page, reason_to_skip

    page = parse_page(source, path, content)
    name = f"{path.relative_to(source.path).as_posix()} in {source.name}"
    if page is None:
        reason = reason_to_skip(source, path, content) or "the page has no body"
        yield f"{name}: not indexed, because {reason}"
    elif page.api.operations:
        yield f"{name}: {count_of(len(page.api.operations), 'API operation')}"
        for operation in page.api.operations:
            yield from _operation_lines(operation)
    else:
        yield f"{name}: prose"
        yield from _reasons_for_prose(source, content, page)


def _operation_lines(operation: "PageOperation") -> Iterator[str]:
    yield f"{operation.method} {operation.url}  {operation.name}"
    yield from (f"  {line}" for line in operation.evidence)


def _reasons_for_prose(
    source: PageFolderConfig, content: "PageContent", page: "ParsedPage"
) -> Iterator[str]:
    if not source.api_pages:
        yield "  api_pages = false for this source"
    elif content.format == "text":
        yield "  only Markdown and HTML pages are read as API pages"
    elif not page.api.rejected:
        yield "  missing: an HTTP method with a URL"
    for operation in page.api.rejected:
        yield from _operation_lines(operation)
        if operation.is_stated:
            yield (
                "  missing: a table or list of parameters, responses or error codes, or a labelled "
                "JSON response"
            )
        else:
            yield (
                "  missing: a heading or label for parameters and, below it, a list of request parameters, "
                "or a table that says which of them are required"
            )
