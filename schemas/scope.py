"""What an API key may do."""

from typing import Literal, get_args

Scope = Literal["ask", "ingest", "admin"]

SCOPES: tuple[Scope, ...] = get_args(Scope)
