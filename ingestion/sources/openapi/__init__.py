"""Reads OpenAPI 3.0, OpenAPI 3.1 and Swagger 2.0 descriptions.

Each operation, webhook and callback becomes a document.

If a docstring in this package only says "Raises SourceError.", the error means that a `$ref` cannot be
resolved, or that the description exceeds a limit such as APIDESK_MAX_VALUES.
"""

from ingestion.sources.openapi.reader import READER

__all__ = ["READER"]
