"""Reads OpenAPI 3.0, OpenAPI 3.1 and Swagger 2.0 descriptions.

Each operation, webhook and callback becomes a document.
"""

from ingestion.sources.openapi.reader import READER

__all__ = ["READER"]
