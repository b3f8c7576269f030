"""`apidesk insights`: what the kept questions tell."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.command import complain, one_line_errors, platform_option, settings_with

if TYPE_CHECKING:
    from schemas.insights import Table

TABLES: tuple["Table", ...] = ("byType", "byApi", "gaps", "errors", "feedback")
"""Those of `schemas.insights`, which would take a tenth of a second to import."""


@click.command()
@click.option(
    "--days", default=30, show_default=True, type=click.IntRange(1, 36_500), help="How far back."
)
@click.option("--table", type=click.Choice(TABLES), help="This part of the report alone.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the --table as CSV.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the body that GET /insights would give."
)
@platform_option
@one_line_errors
def insights(
    days: int, table: "Table | None", as_csv: bool, as_json: bool, platform: Path | None
) -> None:
    """Show what the questions of the last days tell about the documentation."""
    if as_csv and as_json:
        raise click.UsageError("--csv and --json are two formats: name one")
    if as_csv and table is None:
        raise click.UsageError("--csv takes a --table")

    from app.insights.csv_tables import csv_of
    from app.terminal.insights_once import insights_once
    from app.terminal.insights_report import print_insights

    found = asyncio.run(insights_once(settings_with(platform), days, table))
    if as_csv:
        assert table is not None, "it was asked for above"
        for note in found.notes:
            complain(note)
        click.echo(csv_of(found, table), nl=False)
    elif as_json:
        click.echo(json.dumps(found.as_json(table), ensure_ascii=False, indent=2))
    else:
        print_insights(found, table)
