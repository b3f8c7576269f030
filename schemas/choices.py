"""Sets of allowed values that the command line also offers as choices.

This module must not import pydantic, so that `apidesk --help` stays fast.
"""

from typing import Literal, get_args

Language = Literal["zh", "en"]
"""Language of a document, a question or an answer."""

LANGUAGES: tuple[Language, ...] = get_args(Language)

Scope = Literal["ask", "ingest", "admin"]
"""Permission of an API key."""

SCOPES: tuple[Scope, ...] = get_args(Scope)

TableName = Literal["byType", "byApi", "gaps", "errors", "feedback"]
"""A table of the insights report, by its name in the JSON."""

TABLES: tuple[TableName, ...] = get_args(TableName)
