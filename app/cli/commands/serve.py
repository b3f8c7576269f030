"""Long-running commands: `apidesk serve`, `apidesk schedule` and `apidesk mcp`."""

import asyncio
from contextlib import suppress
from pathlib import Path

import click

from app.cli.commands.base import load_settings, platform_option, report_errors, run_until_signal


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    help="Number of processes.  [default: APIDESK_WORKERS, else 1]",
)
@platform_option
@report_errors
def serve(host: str, port: int, workers: int | None, platform: Path | None) -> None:
    """Serve the HTTP API. The platform is indexed first if it has never been indexed."""
    from app.serving.gc_tuning import pause_gc

    settings = load_settings(platform, workers=workers)
    if settings.workers > 1:
        with pause_gc():
            from app.serving.workers import run_workers

        run_workers(settings, host, port)
    else:
        with pause_gc():
            from app.serving.server import run_server

        asyncio.run(run_server(settings, host, port))


@click.command()
@platform_option
@report_errors
def schedule(platform: Path | None) -> None:
    """Run ingestion on a schedule.

    The schedule is in platform.toml. Use this command to run ingestion outside the server process.
    """
    from app.serving.scheduler import run_scheduler

    with suppress(KeyboardInterrupt):
        run_until_signal(run_scheduler(load_settings(platform)))


@click.command()
@platform_option
@report_errors
def mcp(platform: Path | None) -> None:
    """Serve the documentation to coding agents (MCP).

    Offers tools of the Model Context Protocol on stdin and stdout. Coding agents start this command.
    """
    from app.api.mcp.server import serve_stdio

    with suppress(KeyboardInterrupt):
        run_until_signal(serve_stdio(load_settings(platform)))
