"""Prints ingestion runs, model checks and API keys as tables, or as JSON."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.telemetry.progress import print_run_table
from schemas.ingestion import IngestionRun

if TYPE_CHECKING:
    from app.cli.setup.model_check import ModelCheck
    from app.security.api_keys import ApiKey


def print_ingestion_run(run: IngestionRun, as_json: bool) -> None:
    """Print a finished run on stdout, as text or as the JSON of the HTTP API."""
    if as_json:
        print(run.model_dump_json(by_alias=True, indent=2))
    else:
        print_run_table(run, Console(highlight=False))


def print_checks(checks: "list[ModelCheck]") -> None:
    """Print a table of models with the result of each check, on stdout."""
    console = Console(highlight=False)
    if not checks:
        console.print("no model is configured: questions are answered from the documents alone")
        return
    table = Table("for", "model", "ms", "result", box=None, header_style="bold")
    for check in checks:
        purpose = check.role.prefix.lower().replace("_", " ")
        result = Text(check.problem, style="red") if check.problem else Text("ok", style="green")
        table.add_row(purpose, check.role.model, str(check.milliseconds), result)
    console.print(table)


def print_keys(keys: "Sequence[ApiKey]", as_json: bool) -> None:
    """Print API keys on stdout, as a table or a JSON list."""
    if as_json:
        items = [key.model_dump(mode="json", by_alias=True) | {"state": key.state} for key in keys]
        print(json.dumps(items, ensure_ascii=False, indent=2))
        return
    headings = ("id", "name", "scopes", "state", "created", "expires", "last used")
    table = Table(*headings, box=None, header_style="bold", pad_edge=False)
    for key in keys:
        times = (key.created_at, key.expires_at, key.last_used_at)
        days = [f"{time:%Y-%m-%d}" if time else "never" for time in times]
        table.add_row(key.id, Text(key.name), " ".join(key.scopes), key.state, *days)
    console = Console(highlight=False)
    console.print(table if keys else "there are no keys yet")
