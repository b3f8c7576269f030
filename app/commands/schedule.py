"""`apidesk schedule`: ingestion at its times."""

from contextlib import suppress
from pathlib import Path

import click

from app.commands.command import one_line_errors, platform_option, run_to_signal, settings_with


@click.command()
@platform_option
@one_line_errors
def schedule(platform: Path | None) -> None:
    """Index when [ingestion] schedule says, as a process of its own."""
    from app.serving.scheduler import run_scheduler

    with suppress(KeyboardInterrupt):
        run_to_signal(run_scheduler(settings_with(platform)))
