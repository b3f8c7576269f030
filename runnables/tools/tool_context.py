"""What was called and found while a model looked things up, call by call: also when time ran out.
What tools work with, and what they give.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolCall

from ingestion.store.collection import Collection
from runnables.retrieval.name_index import NameIndex
from runnables.retrieval.query_analysis import Glossary
from runnables.retrieval.retriever import ChunkSearch
from schemas.answer import Round
from schemas.document import CatalogueEntry, RetrievedChunk
from schemas.question import Filters, Question

UNFINISHED = "not finished in time"


@dataclass
class _Entry:
    call: ToolCall
    results: Sequence[object] = ()
    milliseconds: int = 0
    error: str | None = UNFINISHED


class CallJournal:
    """The calls of one run, in the order in which the model asked for them."""

    def __init__(self, room: int) -> None:
        self.room = room
        """Tokens that the texts of tools may still take of the model's window."""
        self._entries: dict[str, _Entry] = {}
        self._round_ends = float("inf")

    def begin_round(self, seconds: float) -> None:
        """The clock of a round starts: the model's turn, and the calls that it asks for."""
        self._round_ends = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        """Of this round, not below 0."""
        return max(0.0, self._round_ends - time.monotonic())

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._entries

    def called(self, call: ToolCall) -> None:
        """The model asks for `call`; its id is not in the journal yet."""
        self._entries[call["id"] or ""] = _Entry(call)

    def gave(self, call_id: str, results: Sequence[object], milliseconds: int) -> None:
        """The call gave `results`."""
        entry = self._entries[call_id]
        entry.results, entry.milliseconds, entry.error = results, milliseconds, None

    def failed(self, call_id: str, error: str, milliseconds: int = 0) -> None:
        """The call gave nothing, for the reason that one sentence says."""
        entry = self._entries[call_id]
        entry.milliseconds, entry.error = milliseconds, error

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The calls as the caller sees them."""
        return tuple(
            Round(
                tool=entry.call["name"],
                arguments=entry.call["args"],
                results=len(entry.results),
                milliseconds=entry.milliseconds,
                error=entry.error,
            )
            for entry in self._entries.values()
        )

    @property
    def chunks(self) -> list[RetrievedChunk]:
        """What was found, each chunk once: the best of each call first, then the second best of each."""
        rows = zip_longest(*(entry.results for entry in self._entries.values()))
        return without_duplicates(result for row in rows for result in row)


def without_duplicates(found: Iterable[object]) -> list[RetrievedChunk]:
    """The chunks in `found` in their order, each where it comes first."""
    kept: dict[str, RetrievedChunk] = {}
    for result in found:
        if isinstance(result, RetrievedChunk):
            kept.setdefault(result.chunk.id, result)
    return list(kept.values())


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
