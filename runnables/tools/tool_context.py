"""The context in which tools run, the journal of their calls, and the types of their results."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolCall

from ingestion.store.collection import Collection
from runnables.question.query_analysis import Glossary
from runnables.retrieval.chunk_search import ChunkSearch
from runnables.retrieval.name_index import NameIndex, is_title_of
from runnables.retrieval.ranking import interleave
from schemas.answer import Round
from schemas.document import CatalogueEntry, RetrievedChunk
from schemas.question import Filters, Question

NOT_FINISHED = "not finished in time"
"""Error of a call until it returns. The call keeps this error if the run ends first."""


class PassagesResult(NamedTuple):
    """Result of a tool that returns passages."""

    text: str
    """Text for the model. It is truncated if it is long, and marked as data, before the model reads it."""
    chunks: Sequence[RetrievedChunk] = ()
    """The chunks in the text, which the answer may cite."""


def passages_result(chunks: Sequence[RetrievedChunk]) -> PassagesResult:
    """Return `chunks` as a result, with the text that the model reads."""
    text = "\n\n".join(retrieved.chunk.text.strip() for retrieved in chunks)
    return PassagesResult(text or "nothing was found", chunks)


class OutlineResult(NamedTuple):
    """Result of a tool that lists documents. Answers cannot cite an outline."""

    text: str
    """Text for the model. It is truncated if it is long, and marked as data, before the model reads it."""
    documents: Sequence[CatalogueEntry] = ()


@dataclass
class _JournalEntry:
    call: ToolCall
    results: Sequence[object] = ()
    duration_ms: int = 0
    error: str | None = NOT_FINISHED


class CallJournal:
    """The tool calls of one run, in the order in which the model requested them, finished or not.

    A round is one call of the model and the tool calls in its reply.
    """

    def __init__(self, token_budget: int) -> None:
        self.token_budget = token_budget
        """Number of tokens of the model's window that remain for the results of tools."""
        self._entries: dict[str, _JournalEntry] = {}
        self._round_deadline = float("inf")

    def begin_round(self, timeout_s: float) -> None:
        """Begin a round, which has to end within `timeout_s` seconds."""
        self._round_deadline = time.monotonic() + timeout_s

    @property
    def round_seconds_left(self) -> float:
        """Seconds until the round has to end, at least 0."""
        return max(0.0, self._round_deadline - time.monotonic())

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._entries

    def add_call(self, call: ToolCall) -> None:
        """Record `call`, which the model requests; its id must be new."""
        self._entries[call["id"] or ""] = _JournalEntry(call)

    def add_results(self, call_id: str, results: Sequence[object], duration_ms: int) -> None:
        """Record the RetrievedChunk or CatalogueEntry objects that the call returned."""
        entry = self._entries[call_id]
        entry.results, entry.duration_ms, entry.error = results, duration_ms, None

    def add_error(self, call_id: str, error: str, duration_ms: int = 0) -> None:
        """Record that the call failed with the message `error`."""
        entry = self._entries[call_id]
        entry.duration_ms, entry.error = duration_ms, error

    @property
    def calls(self) -> tuple[Round, ...]:
        """The calls for the field `rounds` of the answer. Despite its name, a Round is a single call."""
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
        """All chunks found, without duplicates: the first of each call, then the second of each."""
        return interleave([entry.results for entry in self._entries.values()])


class DocumentLibrary:
    """Lookup of the indexed documents for tools. All methods block: call them in a worker thread."""

    def __init__(self, collection: Collection, search: ChunkSearch, glossary: Glossary) -> None:
        self.collection = collection
        self.search = search
        self._glossary = glossary
        self._name_index: tuple[Sequence[CatalogueEntry], NameIndex] | None = None

    def find_documents(self, name: str, limit: int, filters: Filters) -> list[CatalogueEntry]:
        """Return the best matches of `name` that `filters` allow, at most `limit`, best first."""
        entries = self.collection.catalogue()
        # `catalogue` returns the same list until the documents change.
        if self._name_index is None or self._name_index[0] is not entries:
            self._name_index = entries, NameIndex(entries, self._glossary)
        matches = self._name_index[1].resolve(name, len(entries))
        return list(islice((e for e in matches if self._is_allowed(e, filters)), limit))

    def documents_called(self, name: str, limit: int, filters: Filters) -> list[CatalogueEntry]:
        """Return the documents with exactly the title or API name `name`, or else its best matches.

        Only documents that `filters` allow are returned, at most `limit`, best first.
        """
        matches = self.find_documents(name, limit, filters)
        return [entry for entry in matches if is_title_of(name, entry)] or matches

    def documents_of_service(self, service_id: str, filters: Filters) -> Iterator[CatalogueEntry]:
        """Yield the documents of one service that `filters` allow."""
        for entry in self.collection.catalogue():
            if entry.service_id == service_id and self._is_allowed(entry, filters):
                yield entry

    def _is_allowed(self, entry: CatalogueEntry, filters: Filters) -> bool:
        """Return whether `filters` allow at least one chunk of the document."""
        if filters.service not in (None, entry.service_id):
            return False
        if filters.source not in (None, entry.source):
            return False
        if not filters.metadata:
            return True
        chunks = self.collection.chunks_of_document(entry.document_id, entry.source)
        return any(map(filters.allow, chunks))


@dataclass(frozen=True)
class ToolContext:
    """The documents, question and journal that all tools of one run share."""

    library: DocumentLibrary
    question: Question
    journal: CallJournal


ToolContextRuntime = ToolRuntime[ToolContext, Any]
"""Type of the argument `runtime`, which the model does not see. `runtime.context` is the ToolContext."""
