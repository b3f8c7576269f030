"""Commands that run servers (`serve`, `mcp`), run ingestion (`schedule`) and manage API keys (`keys`)."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.commands.base import (
    EXIT_BAD_INPUT,
    fail,
    load_settings,
    platform_option,
    report_errors,
    run_until_signal,
)
from schemas.choices import SCOPES, Scope

if TYPE_CHECKING:
    from app.security.api_keys import ApiKey

MAX_KEY_NAME_CHARS = 100

KEYS_WIDTH = 1_000
"""Width of the console for the list of keys, in characters. It is wide enough for every row."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 picks a free port.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    help="Number of processes.  [default: APIDESK_WORKERS, or 1]",
)
@platform_option
@report_errors
def serve(host: str, port: int, workers: int | None, platform: Path | None) -> None:
    """Serve the HTTP API and the web page. A platform that has never been indexed is indexed first."""
    from app.serving.gc_tuning import pause_gc

    settings = load_settings(platform, workers=workers)
    if settings.workers > 1:
        with pause_gc():
            from app.serving.workers import run_workers

        run_workers(settings, host, port)
    else:
        with pause_gc():
            from uvicorn.loops.auto import auto_loop_factory

            from app.serving.server import run_server

        with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
            runner.run(run_server(settings, host, port))


@click.command()
@platform_option
@report_errors
def schedule(platform: Path | None) -> None:
    """Run ingestion on a schedule.

    The schedule is in platform.toml. Use this command to run ingestion outside the server process.
    """
    from app.service.ingestion_service import run_scheduler

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


@click.group()
def keys() -> None:
    """Create, list and revoke API keys."""


@keys.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    required=True,
    help="Scope of the key; can be repeated. admin includes all others.",
)
@click.option(
    "--days", type=click.IntRange(1, 36_500), help="Days until the key expires.  [default: never]"
)
@click.option("--json", "as_json", is_flag=True, help="Print the key and its properties as JSON.")
@report_errors
def add(name: str, scopes: tuple[Scope, ...], days: int | None, as_json: bool) -> None:
    """Create a key called NAME and print it. It is not shown again."""
    from app.security.api_keys import ApiKeyStore

    if not name.strip() or not name.isprintable() or len(name) > MAX_KEY_NAME_CHARS:
        fail(
            f"NAME: must be 1 to {MAX_KEY_NAME_CHARS} printable characters, not only spaces",
            EXIT_BAD_INPUT,
        )
    with closing(ApiKeyStore.open(load_settings(None))) as store:
        key, secret = store.add(name, scopes, days)
    if as_json:
        properties = key.model_dump(mode="json", by_alias=True, exclude_none=True)
        click.echo(json.dumps(properties | {"key": secret}, ensure_ascii=False))
        return
    validity = f"until {key.expires_at:%Y-%m-%d}" if key.expires_at else "until it is revoked"
    granted = ", ".join(key.scopes)
    click.echo(
        f"created key {key.id} ({name}): {granted}, valid {validity}. "
        "The full key is shown only once:",
        err=True,
    )
    click.echo(secret)


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@report_errors
def list_keys(as_json: bool) -> None:
    """List all keys, including expired and revoked ones."""
    from app.security.api_keys import ApiKeyStore

    with closing(ApiKeyStore.open(load_settings(None))) as store:
        _print_keys(store.all(), as_json)


@keys.command()
@click.argument("key_id", metavar="ID")
@report_errors
def revoke(key_id: str) -> None:
    """Revoke the key with this ID."""
    from app.security.api_keys import ApiKeyStore

    with closing(ApiKeyStore.open(load_settings(None))) as store:
        if not store.revoke(key_id):
            fail(f"there is no key {key_id}: see `apidesk keys list`", EXIT_BAD_INPUT)
    click.echo(f"key {key_id} is revoked", err=True)


def _print_keys(keys: "Sequence[ApiKey]", as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if as_json:
        items = [key.model_dump(mode="json", by_alias=True) | {"state": key.state} for key in keys]
        click.echo(json.dumps(items, ensure_ascii=False, indent=2))
        return
    headings = ("id", "name", "scopes", "state", "created", "expires", "last used")
    table = Table(*headings, box=None, header_style="bold", pad_edge=False)
    for key in keys:
        times = (key.created_at, key.expires_at, key.last_used_at)
        dates = [f"{time:%Y-%m-%d}" if time else "never" for time in times]
        table.add_row(key.id, Text(key.name), " ".join(key.scopes), key.state, *dates)
    # Ignore the width of the terminal, because rich would shorten ids to fit a row into it.
    console = Console(highlight=False, width=KEYS_WIDTH)
    console.print(table if keys else "there are no keys yet")
