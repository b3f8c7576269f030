"""`apidesk keys`: manages API keys."""

import json

import click

from app.cli.commands.base import EXIT_BAD_INPUT, fail, load_settings, report_errors
from schemas.choices import SCOPES, Scope

MAX_NAME_CHARS = 100


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
@click.option("--days", type=click.IntRange(1, 36_500), help="Days until the key expires.")
@click.option("--json", "as_json", is_flag=True, help="Print the key and its properties as JSON.")
@report_errors
def add(name: str, scopes: tuple[Scope, ...], days: int | None, as_json: bool) -> None:
    """Create a key called NAME and print it. It is not shown again."""
    from contextlib import closing

    from app.security.api_keys import ApiKeyStore

    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME_CHARS:
        fail(f"NAME: must be 1 to {MAX_NAME_CHARS} printable characters", EXIT_BAD_INPUT)
    with closing(ApiKeyStore.open(load_settings(None))) as store:
        key, secret = store.add(name, scopes, days)
    if as_json:
        properties = key.model_dump(mode="json", by_alias=True, exclude_none=True)
        click.echo(json.dumps(properties | {"key": secret}, ensure_ascii=False))
        return
    validity = f"until {key.expires_at:%Y-%m-%d}" if key.expires_at else "until it is revoked"
    granted = ", ".join(key.scopes)
    click.echo(
        f"key {key.id} of {name}: {granted}, {validity}. It is shown only this once:", err=True
    )
    click.echo(secret)


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@report_errors
def list_keys(as_json: bool) -> None:
    """List all keys, including expired and revoked ones."""
    from contextlib import closing

    from app.cli.terminal.tables import print_keys
    from app.security.api_keys import ApiKeyStore

    with closing(ApiKeyStore.open(load_settings(None))) as store:
        print_keys(store.all(), as_json)


@keys.command()
@click.argument("key_id", metavar="ID")
@report_errors
def revoke(key_id: str) -> None:
    """Revoke the key with this ID."""
    from contextlib import closing

    from app.security.api_keys import ApiKeyStore

    with closing(ApiKeyStore.open(load_settings(None))) as store:
        if not store.revoke(key_id):
            fail(f"there is no key {key_id}: see `apidesk keys list`", EXIT_BAD_INPUT)
    click.echo(f"key {key_id} is revoked", err=True)
