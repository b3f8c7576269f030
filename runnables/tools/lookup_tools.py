"""The tools that look up the documentation: `outline`, `search` and `open`, and their registry.

A tool is an asynchronous function that returns passages or a list of documents. The model reads its
docstring and the annotations of its arguments.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Annotated, Any

from langchain.tools import ToolException, ToolRuntime
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool

from ingestion.text.words import index_words, query_words
from runnables.question.extract_details import details_of
from runnables.retrieval.retriever import CANDIDATE_COUNT
from runnables.tools.tool_context import (
    CallJournal,
    DocumentLibrary,
    OutlineResult,
    PassagesResult,
    ToolContext,
    ToolContextRuntime,
    passages_result,
)
from schemas.document import CatalogueEntry, RetrievedChunk
from schemas.question import Filters, Question

MAX_MATCHES = 10
"""Maximum number of matching documents that `outline` lists with their headings."""

MAX_SIBLINGS = 30
"""Maximum number of other documents of the same services that `outline` lists, without headings."""

MAX_HEADINGS = 40
"""Maximum number of headings that `outline` lists for one document."""

MAX_DOCUMENTS_OF_NAME = 2
"""Maximum number of documents that a name selects in `search` and `open`.

The limit is two, because versions of an API may share a name.
"""

MAX_SUGGESTED_HEADINGS = 20
"""Maximum number of headings that `open` and `search` suggest if the requested one does not exist."""

LookupTool = Callable[..., Awaitable[PassagesResult | OutlineResult]]
"""A tool; one of its arguments is `runtime: ToolContextRuntime`."""


async def outline(
    name: Annotated[str, "a service, a guide or an API: its usual name, id or path"],
    runtime: ToolContextRuntime,
) -> OutlineResult:
    """List the documents of a service, a guide or an API with the headings that can be read."""
    return await asyncio.to_thread(_outline, runtime.context, name)


async def search(
    query: Annotated[str, "what to look for, in the words of the documentation"],
    runtime: ToolContextRuntime,
    service: Annotated[str | None, "only this service: its id or name"] = None,
    document: Annotated[str | None, "only this document: its title, API name or path"] = None,
    section: Annotated[str | None, "only sections whose heading contains this"] = None,
) -> PassagesResult:
    """Search the whole documentation or a part of it; return the best passages in full."""
    library, original = runtime.context.library, runtime.context.question
    question = original.model_copy(update={"text": query})
    if service:
        service_id = await asyncio.to_thread(_find_service, library, service, original.filters)
        if service_id is None:
            return PassagesResult(f"no service is called {service}")
        filters = original.filters.model_copy(update={"service": service_id})
        question = question.model_copy(update={"filters": filters})
    if not document and not section:
        return passages_result(await library.search.retrieve(question, runtime.config))
    candidates = question.model_copy(update={"k": CANDIDATE_COUNT})
    chunks = await library.search.retrieve(candidates, runtime.config)
    if document:
        documents = await asyncio.to_thread(
            library.documents_called, document, MAX_DOCUMENTS_OF_NAME, question.filters
        )
        if not documents:
            return PassagesResult(f"no document is called {document}")
        chunks = await asyncio.to_thread(_rank_chunks_of, library, documents, question, chunks)
    found = [retrieved for retrieved in chunks if is_under_heading(retrieved, section)]
    if not found and section:
        message = f"no passage was found under a heading that contains {section}"
        return PassagesResult(_no_such_section(chunks) if document else message)
    return passages_result(found[: original.k])


async def open_section(
    document: Annotated[str, "the document: its title, API name or path"],
    runtime: ToolContextRuntime,
    section: Annotated[
        str,
        "the heading of the section or a part of it, as in `outline` and passages; "
        "if empty, all sections are listed",
    ] = "",
) -> PassagesResult | OutlineResult:
    """Read one section of a document in full, or list its sections."""
    return await asyncio.to_thread(_open_section, runtime.context, document, section)


TOOLS: dict[str, LookupTool] = {
    "outline": outline,
    "search": search,
    "open": open_section,
}
"""The tools by name; the model calls them by these names."""


def langchain_tools(tools: Mapping[str, LookupTool]) -> list[StructuredTool]:
    """Return `tools` as LangChain tools, with schemas of their arguments."""
    return [_langchain_tool(name, function) for name, function in tools.items()]


@cache  # the agents of all answer models have the same tools, and creating three schemas takes 30 ms
def _langchain_tool(name: str, function: LookupTool) -> StructuredTool:
    return StructuredTool.from_function(
        coroutine=function, name=name, response_format="content_and_artifact"
    )


async def look_up(
    name: str,
    arguments: Mapping[str, Any],
    library: DocumentLibrary,
    question: Question,
    config: RunnableConfig,
) -> PassagesResult | OutlineResult:
    """Call the tool `name` without the research agent, and return its result.

    The filters and `k` of `question` apply to the lookup. Raises ToolException if `open` does not find the
    document or the section.
    """
    runtime: ToolContextRuntime = ToolRuntime(
        state={},
        context=ToolContext(library, question, CallJournal(0)),
        config=config,
        stream_writer=lambda _: None,
        tool_call_id=None,
        store=None,
    )
    return await TOOLS[name](**arguments, runtime=runtime)


def is_under_heading(retrieved: RetrievedChunk, heading: str | None) -> bool:
    """Return whether the heading path of the chunk contains `heading`; true if `heading` is empty."""
    return (heading or "").strip().casefold() in retrieved.chunk.section.casefold()


def _outline(context: ToolContext, name: str) -> OutlineResult:
    filters = context.question.filters
    matches = context.library.find_documents(name, MAX_MATCHES, filters)
    if not matches:
        return OutlineResult(f"no service or document is called {name}")
    services = dict.fromkeys(entry.service_id for entry in matches if entry.service_id)
    of_services = (
        entry
        for service_id in services
        for entry in context.library.documents_of_service(service_id, filters)
    )
    siblings = list(islice((e for e in of_services if e not in matches), MAX_SIBLINGS))
    return OutlineResult("\n".join(_outline_lines(matches, siblings)), [*matches, *siblings])


def _outline_lines(
    matches: Sequence[CatalogueEntry], siblings: Sequence[CatalogueEntry]
) -> Iterator[str]:
    """Yield each service or source, its documents indented below it, and the headings of `matches`."""
    entries = [*matches, *siblings]
    for group in dict.fromkeys(map(_group_name, entries)):
        yield group
        for entry in (entry for entry in entries if _group_name(entry) == group):
            yield f"  {' · '.join(filter(None, [entry.title, entry.api_url]))}"
            if entry in matches:
                yield from (f"    {heading}" for heading in entry.outline[:MAX_HEADINGS])


def _group_name(entry: CatalogueEntry) -> str:
    return entry.service_id or entry.source


def _find_service(library: DocumentLibrary, name: str, filters: Filters) -> str | None:
    """Return `name` if it is a service id, otherwise the service id of the best-matching document.

    Returns None if no matching document has a service id.
    """
    documents = library.find_documents(name, CANDIDATE_COUNT, filters)
    ids = [entry.service_id for entry in documents if entry.service_id]
    return name if name in ids else next(iter(ids), None)


def _rank_chunks_of(
    library: DocumentLibrary,
    documents: Sequence[CatalogueEntry],
    question: Question,
    retrieved: Sequence[RetrievedChunk],
) -> list[RetrievedChunk]:
    """Return all chunks of `documents` that the question's filters allow.

    Those in `retrieved` come first, then the others. The others are sorted by the number of words of the
    question that a chunk contains, largest first. Common words such as "the" do not count.
    """
    words = set(query_words(details_of(question).search_query))
    chunks = _chunks_of(library, documents, question.filters)
    ids = {r.chunk.id for r in chunks}
    first = [r for r in retrieved if r.chunk.id in ids]
    first_ids = {r.chunk.id for r in first}
    others = [r for r in chunks if r.chunk.id not in first_ids]
    return first + sorted(others, key=lambda r: -len(words & index_words(r.chunk.text)))


def _chunks_of(
    library: DocumentLibrary, documents: Sequence[CatalogueEntry], filters: Filters
) -> list[RetrievedChunk]:
    """Return the chunks of `documents` that `filters` allow, in order and without scores."""
    return [
        RetrievedChunk(chunk=chunk, score=0.0)
        for entry in documents
        for chunk in library.collection.chunks_of_document(entry.document_id, entry.source)
        if filters.allow(chunk)
    ]


def _open_section(
    context: ToolContext, document: str, section: str
) -> PassagesResult | OutlineResult:
    library, filters = context.library, context.question.filters
    documents = library.documents_called(document, MAX_DOCUMENTS_OF_NAME, filters)
    if not section.strip() and any(entry.outline for entry in documents):
        return OutlineResult("\n".join(_outline_lines(documents, ())), documents)
    chunks = _chunks_of(library, documents, filters)
    if not chunks:
        raise ToolException(
            f"no document is called {document}; find its name with search or outline"
        )
    exact = [
        retrieved
        for retrieved in chunks
        if retrieved.chunk.section.casefold() == section.strip().casefold()
    ]
    if matches := exact or [r for r in chunks if is_under_heading(r, section)]:
        return passages_result(matches)
    raise ToolException(_no_such_section(chunks))


def _no_such_section(chunks: Sequence[RetrievedChunk]) -> str:
    """Return a message that lists the headings of `chunks`, the chunks of the documents that were named."""
    headings = list(dict.fromkeys(r.chunk.section for r in chunks if r.chunk.section))
    return f"no such section; the document has: {', '.join(headings[:MAX_SUGGESTED_HEADINGS])}"
