"""The context that tools run in: the documents, the question, and the journal of the calls."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolCall

from ingestion.store.collection import Collection
from runnables.retrieval.chunk_search import ChunkSearch
from runnables.retrieval.name_index import NameIndex
from runnables.retrieval.query_analysis import Glossary
from schemas.answer import Round
from schemas.document import CatalogueEntry, RetrievedChunk
from schemas.question import Filters, Question

NOT_FINISHED = "not finished in time"


class ToolResult(NamedTuple):
    """The passages that a tool returns."""

    text: str
    """For the model: truncated if it is long, and shown as data."""
    chunks: Sequence[RetrievedChunk] = ()
    """The chunks in the text; the answer may cite them."""


class OutlineResult(NamedTuple):
    """The documents that a tool lists."""

    text: str
    """For the model: truncated if it is long, and shown as data."""
    documents: Sequence[CatalogueEntry] = ()


@dataclass
class _JournalEntry:
    call: ToolCall
    results: Sequence[object] = ()
    duration_ms: int = 0
    error: str | None = NOT_FINISHED


class CallJournal:
    """The tool calls of one run in the model's order; complete up to the moment when time runs out."""

    def __init__(self, token_budget: int) -> None:
        self.token_budget = token_budget
        """Tokens of the model's window that are left for the results of tools."""
        self._entries: dict[str, _JournalEntry] = {}
        self._round_deadline = float("inf")

    def begin_round(self, timeout_s: float) -> None:
        """Start the clock of a round: one call of the model and the tool calls that it asks for."""
        self._round_deadline = time.monotonic() + timeout_s

    @property
    def round_seconds_left(self) -> float:
        """Seconds until the round has to end, at least 0."""
        return max(0.0, self._round_deadline - time.monotonic())

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._entries

    def add_call(self, call: ToolCall) -> None:
        """Record that the model asks for `call`; its id must be new."""
        self._entries[call["id"] or ""] = _JournalEntry(call)

    def add_results(self, call_id: str, results: Sequence[object], duration_ms: int) -> None:
        """Record what the call returned: RetrievedChunk or CatalogueEntry objects."""
        entry = self._entries[call_id]
        entry.results, entry.duration_ms, entry.error = results, duration_ms, None

    def add_error(self, call_id: str, error: str, duration_ms: int = 0) -> None:
        """Record that the call failed; `error` is one sentence."""
        entry = self._entries[call_id]
        entry.duration_ms, entry.error = duration_ms, error

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The calls as the answer's JSON shows them."""
        return tuple(
            Round(
                tool=entry.call["name"],
                arguments=entry.call["args"],
                results=len(entry.results),
                milliseconds=entry.duration_ms,
                error=entry.error,
            )
            for entry in self._entries.values()
        )

    @property
    def chunks(self) -> list[RetrievedChunk]:
        """All chunks found, without duplicates: the best of each call, then the second best of each."""
        ranks = zip_longest(*(entry.results for entry in self._entries.values()))
        return without_duplicates(result for rank in ranks for result in rank)


def without_duplicates(results: Iterable[object]) -> list[RetrievedChunk]:
    """Return the chunks among `results` in their order, each at its first place."""
    chunks: dict[str, RetrievedChunk] = {}
    for result in results:
        if isinstance(result, RetrievedChunk):
            chunks.setdefault(result.chunk.id, result)
    return list(chunks.values())


class DocumentLibrary:
    """The indexed documents as tools look them up; its methods block, `search` does not."""

    def __init__(self, collection: Collection, search: ChunkSearch, glossary: Glossary) -> None:
        self.collection = collection
        self.search = search
        self._glossary = glossary
        self._name_index: tuple[Sequence[CatalogueEntry], NameIndex] | None = None

    def find_documents(self, name: str, limit: int, filters: Filters) -> list[CatalogueEntry]:
        """Return the documents that `name` may mean and `filters` allow, best first."""
        entries = self.collection.catalogue()
        # `catalogue` returns the same list until the documents change.
        if self._name_index is None or self._name_index[0] is not entries:
            self._name_index = entries, NameIndex(entries, self._glossary)
        matches = self._name_index[1].resolve(name, limit)
        return [entry for entry in matches if _is_allowed(entry, filters)]

    def documents_of_service(self, service_id: str, filters: Filters) -> list[CatalogueEntry]:
        """Return the documents of one service that `filters` allow."""
        entries = (e for e in self.collection.catalogue() if e.service_id == service_id)
        return [entry for entry in entries if _is_allowed(entry, filters)]


@dataclass(frozen=True)
class ToolContext:
    """What the tools of one run share."""

    library: DocumentLibrary
    question: Question
    journal: CallJournal


ToolContextRuntime = ToolRuntime[ToolContext, Any]
"""Type of the argument `runtime`: its `.context` is the ToolContext. The model does not see it."""


def _is_allowed(entry: CatalogueEntry, filters: Filters) -> bool:
    return filters.service in (None, entry.service_id) and filters.source in (None, entry.source)
