"""The MCP resources: each document of the collection, as Markdown."""

from urllib.parse import quote, unquote

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ReadResourceResult,
    Resource,
    TextResourceContents,
)

from app.api.mcp.toolbox import Passage
from ingestion.store.collection import Collection
from schemas.document import CatalogueEntry

RESOURCES_PER_PAGE = 200
"""Maximum number of resources in one reply; the client asks for the next page with a cursor."""

_PREFIX = "apidesk://documents/"

_MARKDOWN = "text/markdown"


def list_resources(collection: Collection, cursor: str | None) -> ListResourcesResult:
    """Return a page of the documents; `cursor` is the number of documents before it.

    Blocks. Raises MCPError for an invalid cursor.
    """
    if cursor is not None and not cursor.isdecimal():
        raise MCPError(INVALID_PARAMS, "cursor: was not issued by this server")
    start = int(cursor or 0)
    entries = collection.catalogue()
    end = start + RESOURCES_PER_PAGE
    return ListResourcesResult(
        resources=list(map(_resource, entries[start:end])),
        next_cursor=str(end) if end < len(entries) else None,
    )


def read_resource(collection: Collection, uri: str) -> ReadResourceResult:
    """Return the sections of a document. Blocks. Raises MCPError if there is no such document."""
    source, _, document_id = uri.removeprefix(_PREFIX).partition("/")
    chunks = collection.chunks_of_document(unquote(document_id), unquote(source))
    if not uri.startswith(_PREFIX) or not chunks:
        raise MCPError(INVALID_PARAMS, f"no document has the URI {uri[:200]}")
    text = "\n\n".join(Passage.of(chunk).markdown for chunk in chunks)
    return ReadResourceResult(
        contents=[TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)]
    )


def _resource(entry: CatalogueEntry) -> Resource:
    return Resource(
        uri=f"{_PREFIX}{quote(entry.source, safe='')}/{quote(entry.document_id, safe='')}",
        name=entry.document_id,
        title=entry.title,
        description=" · ".join(filter(None, [entry.api_url, entry.page_url])) or None,
        mime_type=_MARKDOWN,
    )
