"""The tool `open`: a document and a heading -> that section in full."""

import asyncio
from typing import Annotated

from langchain.tools import ToolException

from runnables.tools.bench import ToolContext, ToolContextRuntime, ToolResult
from runnables.tools.search import MOST_SCOPES, shown, under
from schemas.document import RetrievedChunk

MOST_LISTED_HEADINGS = 20
"""Headings that are offered instead of one that is not there."""


async def open_section(
    document: Annotated[str, "the document: its title, API name or path"],
    section: Annotated[str, "its heading or a part of that, as `outline` and passages show it"],
    runtime: ToolContextRuntime,
) -> ToolResult:
    """Read one section of a document in full."""
    return await asyncio.to_thread(_open, runtime.context, document, section)


def _open(bench: ToolContext, document: str, section: str) -> ToolResult:
    meant = bench.library.named(document, MOST_SCOPES, bench.asked.filters)
    chunks = [
        RetrievedChunk(chunk=chunk, score=0.0)
        for entry in meant
        for chunk in bench.library.collection.chunks_of(entry.document_id, entry.source)
        if bench.asked.filters.allow(chunk)
    ]
    if not chunks:
        return ToolResult(f"no document is called {document}")
    exact = [r for r in chunks if r.chunk.section.casefold() == section.strip().casefold()]
    if found := exact or [r for r in chunks if under(r, section)]:
        return shown(found)
    headings = list(dict.fromkeys(r.chunk.section for r in chunks if r.chunk.section))
    raise ToolException(f"no such section; there are: {', '.join(headings[:MOST_LISTED_HEADINGS])}")
