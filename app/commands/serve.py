"""`apidesk serve`: the HTTP service."""

import asyncio
from pathlib import Path

import click

from app.commands.command import one_line_errors, platform_option, settings_with


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
    from app.serving.garbage import importing

    settings = settings_with(platform, workers=workers)
    if settings.workers > 1:
        with importing():
            from app.serving.workers import run_workers

        run_workers(settings, host, port)
    else:
        with importing():
            from app.serving.server import run_server

        asyncio.run(run_server(settings, host, port))
