"""The tool `outline`: a name -> the documents that it stands for, as a tree."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated

from runnables.tools.bench import ToolContext, ToolContextRuntime, ToolResult
from schemas.catalogue import CatalogueEntry

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
