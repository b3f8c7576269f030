"""`apidesk serve`: the HTTP service.
`apidesk schedule`: ingestion at its times.
`apidesk mcp`: the documentation as tools for a coding agent.
"""

import asyncio
from contextlib import suppress
from pathlib import Path

import click

from app.cli.commands.base import one_line_errors, platform_option, run_to_signal, settings_with


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    help="Processes that answer; more than one needs a Milvus server.  [default: APIDESK_WORKERS, else 1]",
)
@platform_option
@one_line_errors
def serve(host: str, port: int, workers: int | None, platform: Path | None) -> None:
    """Answer questions over HTTP; index the platform first, if that was never done."""
    from app.serving.gc_tuning import importing

    settings = settings_with(platform, workers=workers)
    if settings.workers > 1:
        with importing():
            from app.serving.workers import run_workers

        run_workers(settings, host, port)
    else:
        with importing():
            from app.serving.server import run_server

        asyncio.run(run_server(settings, host, port))


@click.command()
@platform_option
@one_line_errors
def schedule(platform: Path | None) -> None:
    """Index when [ingestion] schedule says, as a process of its own."""
    from app.serving.scheduler import run_scheduler

    with suppress(KeyboardInterrupt):
        run_to_signal(run_scheduler(settings_with(platform)))


@click.command()
@platform_option
@one_line_errors
def mcp(platform: Path | None) -> None:
    """Offer the documentation as tools of the Model Context Protocol, on stdin and stdout.

    A coding agent starts it. While `apidesk serve` holds the store, that server is asked.
    """
    from app.api.mcp_stdio import serve_stdio

    with suppress(KeyboardInterrupt):
        run_to_signal(serve_stdio(settings_with(platform)))
