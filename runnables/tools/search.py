"""The tool `search`: words -> the passages that are nearest in meaning, of all documents or of some."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

from runnables.retrieval.retriever import CANDIDATES
from runnables.retrieval.widen import best_word_share
from runnables.tools.bench import DocumentLibrary, ToolContextRuntime, ToolResult
from schemas.catalogue import CatalogueEntry
from schemas.document import RetrievedChunk
from schemas.question import Question

MOST_SCOPES = 2
"""Documents that one name may mean: two versions of an API have the same."""


async def search(
    query: Annotated[str, "what to look for, in the words of the documentation"],
    runtime: ToolContextRuntime,
    service: Annotated[str | None, "only this service: its id or name"] = None,
    document: Annotated[str | None, "only this document: its title, API name or path"] = None,
    section: Annotated[str | None, "only sections whose heading holds this"] = None,
) -> ToolResult:
    """Search the documentation by meaning, all of it or a part; gives the best passages in full."""
    library, asked = runtime.context.library, runtime.context.asked
    question = asked.model_copy(update={"text": query})
    if service:
        wanted = await asyncio.to_thread(_service, library, service, asked)
        if wanted is None:
            return ToolResult(f"no service is called {service}")
        filters = asked.filters.model_copy(update={"service": wanted})
        question = question.model_copy(update={"filters": filters})
    if not document and not section:
        return shown(await library.finder.find(question, runtime.config))
    wide = question.model_copy(update={"k": CANDIDATES})
    found = await library.finder.find(wide, runtime.config)
    if document:
        meant = await asyncio.to_thread(library.named, document, MOST_SCOPES, question.filters)
        if not meant:
            return ToolResult(f"no document is called {document}")
        found = await asyncio.to_thread(_within, library, meant, question, found)
    return shown([r for r in found if under(r, section)][: asked.k])


def shown(found: Sequence[RetrievedChunk]) -> ToolResult:
    """Passages as the model reads them."""
    return ToolResult(
        "\n\n".join(r.chunk.text.strip() for r in found) or "nothing was found", found
    )


def under(retrieved: RetrievedChunk, section: str | None) -> bool:
    """Whether the chunk stands under a heading that holds `section`."""
    return (section or "").strip().casefold() in retrieved.chunk.section.casefold()


def _service(library: DocumentLibrary, name: str, asked: Question) -> str | None:
    """The id of the service that `name` means; the caller's own filter stays what it is."""
    found = library.named(name, CANDIDATES, asked.filters)
    ids = [entry.service_id for entry in found if entry.service_id]
    return name if name in ids else next(iter(ids), None)


def _within(
    library: DocumentLibrary,
    documents: Sequence[CatalogueEntry],
    question: Question,
    found: Sequence[RetrievedChunk],
) -> list[RetrievedChunk]:
    """The chunks of `documents`: those that were found, then the others by the words that they hold."""
    chunks = [c for d in documents for c in library.collection.chunks_of(d.document_id, d.source)]
    ids = {chunk.id for chunk in chunks}
    first = [r for r in found if r.chunk.id in ids]
    known = {r.chunk.id for r in first}
    others = [
        RetrievedChunk(chunk=chunk, score=0.0)
        for chunk in chunks
        if chunk.id not in known and question.filters.allow(chunk)
    ]
    return first + sorted(others, key=lambda r: -best_word_share(question.text, [r]))
