"""The tool `outline`: a name -> the documents that it stands for, as a tree.
The tool `search`: words -> the passages that are nearest in meaning, of all documents or of some.
The tool `open`: a document and a heading -> that section in full.
The tools by the names that the model calls them by: a line each.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Annotated

from langchain.tools import ToolException
from langchain_core.tools import StructuredTool

from runnables.retrieval.evidence import best_word_share
from runnables.retrieval.retriever import CANDIDATES
from runnables.tools.tool_context import (
    DocumentLibrary,
    ToolContext,
    ToolContextRuntime,
    ToolResult,
)
from schemas.document import CatalogueEntry, RetrievedChunk
from schemas.question import Question

MOST_MEANT = 10
"""Documents that a name may mean; they are listed with their headings."""

MOST_BESIDE = 30
"""Other documents of the same service; they are listed without."""

MOST_HEADINGS = 40


async def outline(
    name: Annotated[
        str, "a service, a guide or an API, as people call it; an id or a path will do"
    ],
    runtime: ToolContextRuntime,
) -> ToolResult:
    """List the documents of a service, a guide or an API with their headings: what is there to read."""
    return await asyncio.to_thread(_outline, runtime.context, name)


def _outline(bench: ToolContext, name: str) -> ToolResult:
    filters = bench.asked.filters
    meant = bench.library.named(name, MOST_MEANT, filters)
    if not meant:
        return ToolResult(f"nothing is called {name}")
    services = dict.fromkeys(entry.service_id for entry in meant if entry.service_id)
    of_services = (e for s in services for e in bench.library.of_service(s, filters))
    beside = [entry for entry in of_services if entry not in meant][:MOST_BESIDE]
    return ToolResult("\n".join(_tree(meant, beside)), [*meant, *beside])


def _tree(meant: Sequence[CatalogueEntry], beside: Sequence[CatalogueEntry]) -> Iterator[str]:
    """Services (or sources), below them their documents, below those that are meant their headings."""
    entries = [*meant, *beside]
    for group in dict.fromkeys(map(_group, entries)):
        yield group
        for entry in (e for e in entries if _group(e) == group):
            yield f"  {' · '.join(filter(None, [entry.title, entry.api_url]))}"
            if entry in meant:
                yield from (f"    {heading}" for heading in entry.outline[:MOST_HEADINGS])


def _group(entry: CatalogueEntry) -> str:
    return entry.service_id or entry.source


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


Tool = Callable[..., Awaitable[ToolResult]]
"""What its docstring says; its arguments are typed, and `runtime: OnBench` is one of them."""

TOOLS: dict[str, Tool] = {
    "outline": outline,
    "search": search,
    "open": open_section,
}


def langchain_tools(tools: Mapping[str, Tool]) -> list[StructuredTool]:
    """The tools as LangChain's agent takes them, with their arguments' schemas."""
    return [
        StructuredTool.from_function(
            coroutine=function, name=name, response_format="content_and_artifact"
        )
        for name, function in tools.items()
    ]
