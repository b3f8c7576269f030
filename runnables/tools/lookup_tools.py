"""The tools that look up the documentation: `outline`, `search` and `open`, and their registry.

A tool is an asynchronous function. Its docstring and the annotations of its arguments are what the
model reads; its return type says whether it returns passages or lists documents.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Annotated

from langchain.tools import ToolException
from langchain_core.tools import StructuredTool

from runnables.retrieval.evidence import best_word_share
from runnables.retrieval.retriever import CANDIDATE_COUNT
from runnables.tools.tool_context import (
    DocumentLibrary,
    OutlineResult,
    ToolContext,
    ToolContextRuntime,
    ToolResult,
)
from schemas.document import CatalogueEntry, RetrievedChunk
from schemas.question import Question

MAX_MATCHES = 10
"""Documents that `outline` lists with their headings: those that the name may mean."""

MAX_SIBLINGS = 30
"""Other documents of the same services that `outline` lists, without their headings."""

MAX_HEADINGS = 40
"""Headings that `outline` lists of one document."""

MAX_SCOPES = 2
"""Documents that one name may restrict a search to: two versions of an API share a name."""

MAX_SUGGESTED_HEADINGS = 20
"""Headings that `open` suggests instead of one that does not exist."""

LookupTool = Callable[..., Awaitable[ToolResult | OutlineResult]]
"""A tool; `runtime: ToolContextRuntime` is one of its arguments."""


async def outline(
    name: Annotated[
        str, "a service, a guide or an API, as people call it; an id or a path will do"
    ],
    runtime: ToolContextRuntime,
) -> OutlineResult:
    """List the documents of a service, a guide or an API with their headings: what is there to read."""
    return await asyncio.to_thread(_outline, runtime.context, name)


async def search(
    query: Annotated[str, "what to look for, in the words of the documentation"],
    runtime: ToolContextRuntime,
    service: Annotated[str | None, "only this service: its id or name"] = None,
    document: Annotated[str | None, "only this document: its title, API name or path"] = None,
    section: Annotated[str | None, "only sections whose heading holds this"] = None,
) -> ToolResult:
    """Search the documentation by meaning, all of it or a part; gives the best passages in full."""
    library, asked = runtime.context.library, runtime.context.question
    question = asked.model_copy(update={"text": query})
    if service:
        service_id = await asyncio.to_thread(_find_service, library, service, asked)
        if service_id is None:
            return ToolResult(f"no service is called {service}")
        filters = asked.filters.model_copy(update={"service": service_id})
        question = question.model_copy(update={"filters": filters})
    if not document and not section:
        return passages_result(await library.search.retrieve(question, runtime.config))
    candidates = question.model_copy(update={"k": CANDIDATE_COUNT})
    chunks = await library.search.retrieve(candidates, runtime.config)
    if document:
        documents = await asyncio.to_thread(
            library.find_documents, document, MAX_SCOPES, question.filters
        )
        if not documents:
            return ToolResult(f"no document is called {document}")
        chunks = await asyncio.to_thread(_restrict_to, library, documents, question, chunks)
    return passages_result([r for r in chunks if is_under_heading(r, section)][: asked.k])


async def open_section(
    document: Annotated[str, "the document: its title, API name or path"],
    section: Annotated[str, "its heading or a part of that, as `outline` and passages show it"],
    runtime: ToolContextRuntime,
) -> ToolResult:
    """Read one section of a document in full."""
    return await asyncio.to_thread(_open_section, runtime.context, document, section)


TOOLS: dict[str, LookupTool] = {
    "outline": outline,
    "search": search,
    "open": open_section,
}
"""The tools by the names that the model calls them by."""


def langchain_tools(tools: Mapping[str, LookupTool]) -> list[StructuredTool]:
    """Return `tools` as LangChain's agent takes them, with their arguments' schemas."""
    return [
        StructuredTool.from_function(
            coroutine=function, name=name, response_format="content_and_artifact"
        )
        for name, function in tools.items()
    ]


def passages_result(chunks: Sequence[RetrievedChunk]) -> ToolResult:
    """Return `chunks` with their texts as the model reads them."""
    text = "\n\n".join(r.chunk.text.strip() for r in chunks)
    return ToolResult(text or "nothing was found", chunks)


def is_under_heading(retrieved: RetrievedChunk, heading: str | None) -> bool:
    """Whether the heading of the chunk's section contains `heading`."""
    return (heading or "").strip().casefold() in retrieved.chunk.section.casefold()


def _outline(context: ToolContext, name: str) -> OutlineResult:
    filters = context.question.filters
    matches = context.library.find_documents(name, MAX_MATCHES, filters)
    if not matches:
        return OutlineResult(f"nothing is called {name}")
    services = dict.fromkeys(entry.service_id for entry in matches if entry.service_id)
    of_services = (e for s in services for e in context.library.documents_of_service(s, filters))
    siblings = [entry for entry in of_services if entry not in matches][:MAX_SIBLINGS]
    return OutlineResult("\n".join(_outline_lines(matches, siblings)), [*matches, *siblings])


def _outline_lines(
    matches: Sequence[CatalogueEntry], siblings: Sequence[CatalogueEntry]
) -> Iterator[str]:
    """Services or sources; indented below them their documents; below matches their headings."""
    entries = [*matches, *siblings]
    for group in dict.fromkeys(map(_group_name, entries)):
        yield group
        for entry in (e for e in entries if _group_name(e) == group):
            yield f"  {' · '.join(filter(None, [entry.title, entry.api_url]))}"
            if entry in matches:
                yield from (f"    {heading}" for heading in entry.outline[:MAX_HEADINGS])


def _group_name(entry: CatalogueEntry) -> str:
    return entry.service_id or entry.source


def _find_service(library: DocumentLibrary, name: str, question: Question) -> str | None:
    """The id of the service that `name` means, within the caller's own filters."""
    documents = library.find_documents(name, CANDIDATE_COUNT, question.filters)
    ids = [entry.service_id for entry in documents if entry.service_id]
    return name if name in ids else next(iter(ids), None)


def _restrict_to(
    library: DocumentLibrary,
    documents: Sequence[CatalogueEntry],
    question: Question,
    retrieved: Sequence[RetrievedChunk],
) -> list[RetrievedChunk]:
    """The chunks of `documents`: the retrieved ones, then the others by their share of the words."""
    chunks = [
        c for d in documents for c in library.collection.chunks_of_document(d.document_id, d.source)
    ]
    ids = {chunk.id for chunk in chunks}
    first = [r for r in retrieved if r.chunk.id in ids]
    first_ids = {r.chunk.id for r in first}
    others = [
        RetrievedChunk(chunk=chunk, score=0.0)
        for chunk in chunks
        if chunk.id not in first_ids and question.filters.allow(chunk)
    ]
    return first + sorted(others, key=lambda r: -best_word_share(question.text, [r]))


def _open_section(context: ToolContext, document: str, section: str) -> ToolResult:
    library, filters = context.library, context.question.filters
    chunks = [
        RetrievedChunk(chunk=chunk, score=0.0)
        for entry in library.find_documents(document, MAX_SCOPES, filters)
        for chunk in library.collection.chunks_of_document(entry.document_id, entry.source)
        if filters.allow(chunk)
    ]
    if not chunks:
        return ToolResult(f"no document is called {document}")
    exact = [r for r in chunks if r.chunk.section.casefold() == section.strip().casefold()]
    if matches := exact or [r for r in chunks if is_under_heading(r, section)]:
        return passages_result(matches)
    headings = list(dict.fromkeys(r.chunk.section for r in chunks if r.chunk.section))
    raise ToolException(
        f"no such section; there are: {', '.join(headings[:MAX_SUGGESTED_HEADINGS])}"
    )
