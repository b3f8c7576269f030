"""Closed sets of values that the command line offers as well.

This module stays small: `apidesk --help` imports it and must not load pydantic.
"""

from typing import Literal, get_args

Language = Literal["zh", "en"]

LANGUAGES: tuple[Language, ...] = get_args(Language)

Scope = Literal["ask", "ingest", "admin"]
"""What an API key may do."""

SCOPES: tuple[Scope, ...] = get_args(Scope)
