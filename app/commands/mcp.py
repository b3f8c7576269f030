"""`apidesk mcp`: the documentation as tools for a coding agent."""

from contextlib import suppress
from pathlib import Path

import click

from app.commands.command import one_line_errors, platform_option, run_to_signal, settings_with


@click.command()
@platform_option
@one_line_errors
def mcp(platform: Path | None) -> None:
    """Offer the documentation as tools of the Model Context Protocol, on stdin and stdout.

    A coding agent starts it. While `apidesk serve` holds the store, that server is asked.
    """
    from app.mcp.stdio import serve_stdio

    with suppress(KeyboardInterrupt):
        run_to_signal(serve_stdio(settings_with(platform)))
