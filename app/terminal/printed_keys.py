"""API keys, printed for a person or a program."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.security.keys import ApiKey


def print_keys(keys: Sequence[ApiKey], as_json: bool) -> None:
    """A table of API keys on stdout, or a JSON list of them."""
    if as_json:
        known = [key.model_dump(mode="json", by_alias=True) | {"state": key.state} for key in keys]
        print(json.dumps(known, ensure_ascii=False, indent=2))
        return
    headings = ("id", "name", "scopes", "state", "made", "expires", "last used")
    table = Table(*headings, box=None, header_style="bold", pad_edge=False)
    for key in keys:
        moments = (key.created_at, key.expires_at, key.last_used_at)
        days = [f"{moment:%Y-%m-%d}" if moment else "never" for moment in moments]
        table.add_row(key.id, Text(key.name), " ".join(key.scopes), key.state, *days)
    console = Console(highlight=False)
    console.print(table if keys else "no key was made yet")
