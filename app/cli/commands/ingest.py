"""`apidesk ingest`: runs ingestion once, or again after every change."""

import sys
from contextlib import suppress
from pathlib import Path

import click

from app.cli.commands.base import (
    EXIT_FAILED,
    load_settings,
    platform_option,
    print_error,
    report_errors,
    run_until_signal,
)


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be added, changed and deleted.")
@click.option("--allow-deletes", is_flag=True, help="Allow deleting a large part of a source.")
@click.option("--rebuild", is_flag=True, help="Build a new collection, then switch to it.")
@click.option("--watch", is_flag=True, help="Keep running and index changes as they happen.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, as GET /ingestions/{id} returns it."
)
@click.option(
    "--explain",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PAGE",
    help="With --dry-run: show only how this page is read, and why, without comparing it with the index.",
)
@platform_option
@report_errors
def ingest(
    dry_run: bool,
    allow_deletes: bool,
    rebuild: bool,
    watch: bool,
    as_json: bool,
    explain: Path | None,
    platform: Path | None,
) -> None:
    """Index new, changed and deleted documents of the platform."""
    if explain is not None:
        if not dry_run:
            raise click.UsageError("--explain needs --dry-run")
        from app.cli.terminal.ingest import explain_lines

        click.echo("\n".join(explain_lines(load_settings(platform), explain)))
        return
    from app.cli.terminal.ingest import run_ingestion, run_ingestion_and_watch
    from app.cli.terminal.tables import print_ingestion_run
    from schemas.ingestion import IngestionOptions

    options = IngestionOptions(dry_run=dry_run, allow_deletes=allow_deletes, rebuild=rebuild)
    settings = load_settings(platform)
    if watch:
        with suppress(KeyboardInterrupt):
            run_until_signal(
                run_ingestion_and_watch(
                    settings, options, lambda run: print_ingestion_run(run, as_json), print_error
                )
            )
        return
    run = run_until_signal(run_ingestion(settings, options))
    print_ingestion_run(run, as_json)
    if run.state != "succeeded":
        sys.exit(EXIT_FAILED)
