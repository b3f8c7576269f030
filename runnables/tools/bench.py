"""What tools work with, and what they give."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain.tools import ToolRuntime

from ingestion.collection import Collection
from runnables.retrieval.glossary import Glossary
from runnables.retrieval.names import NameIndex
from runnables.retrieval.retriever import ChunkSearch
from runnables.tools.journal import CallJournal
from schemas.catalogue import CatalogueEntry
from schemas.question import Filters, Question


class ToolResult(NamedTuple):
    """What a tool gives."""

    text: str
    """For the model: it is cut where it is long, and shown as data."""
    results: Sequence[object] = ()
    """Documents or chunks; a RetrievedChunk among them may be cited."""


class DocumentLibrary:
    """What there is to look into; its methods block."""

    def __init__(self, collection: Collection, finder: ChunkSearch, glossary: Glossary) -> None:
        self.collection = collection
        self.finder = finder
        self._glossary = glossary
        self._names: tuple[Sequence[CatalogueEntry], NameIndex] | None = None

    def named(self, name: str, limit: int, filters: Filters) -> list[CatalogueEntry]:
        """The documents that `name` may mean, best first, of those that `filters` let through."""
        entries = self.collection.catalogue()
        if self._names is None or self._names[0] is not entries:  # the same list until it changes
            self._names = entries, NameIndex(entries, self._glossary)
        found = self._names[1].resolve(name, limit)
        return [entry for entry in found if _listed(entry, filters)]

    def of_service(self, service_id: str, filters: Filters) -> list[CatalogueEntry]:
        """The documents of one service, of those that `filters` let through."""
        entries = (e for e in self.collection.catalogue() if e.service_id == service_id)
        return [entry for entry in entries if _listed(entry, filters)]


@dataclass(frozen=True)
class ToolContext:
    """The place where tools work on one question."""

    library: DocumentLibrary
    asked: Question
    journal: CallJournal


ToolContextRuntime = ToolRuntime[ToolContext, Any]
"""The argument by which a tool gets its bench, as `.context`; the model does not see it."""


def _listed(entry: CatalogueEntry, filters: Filters) -> bool:
    return filters.service in (None, entry.service_id) and filters.source in (None, entry.source)
