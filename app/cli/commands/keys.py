"""`apidesk keys`: who may use the API."""

import json

import click

from app.cli.commands.base import EXIT_BAD_INPUT, fail, one_line_errors, settings_with
from schemas.choices import SCOPES, Scope

LONGEST_NAME = 100


@click.group()
def keys() -> None:
    """Make, list and revoke API keys."""


@keys.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    required=True,
    help="What the key may do; several times for several. admin includes the others.",
)
@click.option("--days", type=click.IntRange(1, 36_500), help="Days until the key expires.")
@click.option("--json", "as_json", is_flag=True, help="Print all there is to know of the key.")
@one_line_errors
def add(name: str, scopes: tuple[Scope, ...], days: int | None, as_json: bool) -> None:
    """Make a key for NAME and print it, this once."""
    from contextlib import closing

    from app.security.api_keys import ApiKeyStore

    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        fail(f"NAME: takes 1 to {LONGEST_NAME} printable characters", EXIT_BAD_INPUT)
    with closing(ApiKeyStore.open(settings_with(None))) as stored:
        key, text = stored.add(name, scopes, days)
    if as_json:
        known = key.model_dump(mode="json", by_alias=True, exclude_none=True)
        click.echo(json.dumps(known | {"key": text}, ensure_ascii=False))
        return
    until = f"until {key.expires_at:%Y-%m-%d}" if key.expires_at else "until it is revoked"
    may = ", ".join(key.scopes)
    click.echo(f"key {key.id} of {name}: {may}, {until}. It is shown this once:", err=True)
    click.echo(text)


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@one_line_errors
def list_keys(as_json: bool) -> None:
    """List every key there ever was."""
    from contextlib import closing

    from app.cli.terminal.printing import print_keys
    from app.security.api_keys import ApiKeyStore

    with closing(ApiKeyStore.open(settings_with(None))) as stored:
        print_keys(stored.all(), as_json)


@keys.command()
@click.argument("key_id", metavar="ID")
@one_line_errors
def revoke(key_id: str) -> None:
    """Let the key with this ID open nothing any more."""
    from contextlib import closing

    from app.security.api_keys import ApiKeyStore

    with closing(ApiKeyStore.open(settings_with(None))) as stored:
        if not stored.revoke(key_id):
            fail(f"there is no key {key_id}: see `apidesk keys list`", EXIT_BAD_INPUT)
    click.echo(f"key {key_id} is revoked", err=True)
