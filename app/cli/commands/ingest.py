"""`apidesk ingest`: one ingestion run, or one after the other."""

import sys
from contextlib import suppress
from pathlib import Path

import click

from app.cli.commands.base import (
    EXIT_FAILED,
    complain,
    one_line_errors,
    platform_option,
    run_to_signal,
    settings_with,
)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be added, changed and deleted.")
@click.option("--allow-deletes", is_flag=True, help="Delete also when much of a source vanished.")
@click.option("--rebuild", is_flag=True, help="Fill a new collection, then put it in place.")
@click.option("--watch", is_flag=True, help="Go on, and index again what changes.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the run as GET /ingestions/{id} would."
)
@platform_option
@one_line_errors
def ingest(
    dry_run: bool,
    allow_deletes: bool,
    rebuild: bool,
    watch: bool,
    as_json: bool,
    platform: Path | None,
) -> None:
    """Index what changed in the platform's documents."""
    from app.cli.terminal.ingest import ingest_and_watch, ingest_once
    from app.cli.terminal.printing import print_report
    from schemas.ingestion import IngestionOptions

    options = IngestionOptions(dry_run=dry_run, allow_deletes=allow_deletes, rebuild=rebuild)
    settings = settings_with(platform)
    if watch:
        with suppress(KeyboardInterrupt):
            run_to_signal(
                ingest_and_watch(
                    settings, options, lambda run: print_report(run, as_json), complain
                )
            )
        return
    run = run_to_signal(ingest_once(settings, options))
    print_report(run, as_json)
    if run.state != "succeeded":
        sys.exit(EXIT_FAILED)
