"""`apidesk serve`: the HTTP service."""

import asyncio
from pathlib import Path

import click

from app.commands.command import one_line_errors, platform_option, settings_with


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@platform_option
@one_line_errors
def serve(host: str, port: int, platform: Path | None) -> None:
    """Answer questions over HTTP; index the platform first, if that was never done."""
    from app.serving.server import run_server

    asyncio.run(run_server(settings_with(platform), host, port))
