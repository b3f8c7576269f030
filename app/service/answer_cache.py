"""Caches answers in the database, and shares answers in progress between callers.

Each answer is stored with digests of the cited documents, so that changes to the documents are detected.
"""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite
from sqlalchemy.engine import Engine

from ingestion.database.engine import database_errors
from ingestion.database.tables import cached_answers_table
from ingestion.store.catalogue import DocumentKey
from ingestion.store.collection import Collection
from ingestion.text.markdown_blocks import strip_anchor
from schemas.answer import Answer, Event, EventSink
from schemas.document import CatalogueEntry, Chunk
from schemas.errors import StoreUnavailable

T = TypeVar("T")

DocumentDigests = Mapping[DocumentKey, str]
"""The SHA-256 digest of each document's content."""

DATABASE_TIMEOUT_S = 1.0
"""Maximum number of seconds that a caller waits for a cache operation."""

MAX_THREADS = 4
"""Number of threads of the cache. Nothing else uses them, so a slow database blocks only the cache."""

_DIGESTS = TypeAdapter(list[tuple[str, str, str]])
"""The format of digests in the database: the source, the id and the digest of each document."""

StartAnswer = Callable[[EventSink | None], Coroutine[Any, Any, Answer]]
"""Makes an answer. The argument, unless it is None, receives the events of the answer."""

StoreAnswer = Callable[[Answer], Coroutine[Any, Any, None]]
"""Stores a complete answer."""


@dataclass(frozen=True)
class CachedAnswer:
    """An answer, and the digests that the cited documents had when the answer was stored."""

    answer: Answer
    documents: DocumentDigests


def document_digests(chunks: Iterable[Chunk]) -> DocumentDigests:
    """Return the digest of each document in `chunks`, which must contain all chunks of these documents."""
    hashes: dict[DocumentKey, list[str]] = {}
    for chunk in chunks:
        hashes.setdefault(chunk.document_key, []).append(chunk.content_hash)
    return {
        key: hashlib.sha256("".join(sorted(chunk_hashes)).encode()).hexdigest()
        for key, chunk_hashes in hashes.items()
    }


class DocumentedPages:
    """The page URLs of the documents in a collection, read from its catalogue (the list of documents)."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._catalogue: list[CatalogueEntry] = []
        """The catalogue that `_known_urls` was built from.

        After an ingestion run, the collection returns a new list.
        """
        self._known_urls: frozenset[str] = frozenset()

    def has_all(self, urls: Iterable[str]) -> bool:
        """Return whether each of `urls` is the URL of a document, with or without an anchor.

        The result is true if the catalogue is empty, because an earlier version of apidesk may have created
        the collection without a catalogue. Blocks, and raises the errors of `Collection.catalogue`.
        """
        if (catalogue := self._collection.catalogue()) is not self._catalogue:
            page_urls = {entry.page_url for entry in catalogue}
            self._known_urls = frozenset(page_urls | set(map(strip_anchor, page_urls)))
            self._catalogue = catalogue
        return not catalogue or all(
            url in self._known_urls or strip_anchor(url) in self._known_urls for url in urls
        )


class AnswerCache:
    """Stores answers by key.

    Every method except `close` raises StoreUnavailable if the database fails, if it does not answer
    within DATABASE_TIMEOUT_S, or if the cache is closed.
    """

    def __init__(self, engine: Engine, max_age_days: int) -> None:
        self._engine = engine
        self._max_age = timedelta(days=max_age_days)
        self._insert = insert_in_sqlite if engine.dialect.name == "sqlite" else insert_in_postgresql
        self._threads = ThreadPoolExecutor(MAX_THREADS, "cache")
        self._is_closed = False

    async def get(self, key: str) -> CachedAnswer | None:
        """Return the answer under `key`; None if it is missing, has expired or cannot be parsed."""
        return await self._in_thread(lambda: self._get(key))

    async def put(self, key: str, cached: CachedAnswer) -> None:
        """Insert or replace the answer under `key`, and delete expired answers."""
        await self._in_thread(lambda: self._put(key, cached))

    async def delete(self, key: str) -> None:
        """Delete the answer under `key`."""
        await self._in_thread(lambda: self._delete(key))

    def close(self) -> None:
        """Reject further calls, and cancel those that have not started."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        run_in_context = copy_context().run  # log lines of the thread include the request id
        if self._is_closed:
            raise StoreUnavailable("the server is stopping")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT_S):
                return await loop.run_in_executor(self._threads, run_in_context, work)
        except TimeoutError:
            raise StoreUnavailable("the database did not answer in time") from None
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._is_closed and caller and not caller.cancelling():  # `close` cancelled the call
                raise StoreUnavailable("the server is stopping") from None
            raise

    def _get(self, key: str) -> CachedAnswer | None:
        columns = cached_answers_table.c
        is_recent = columns.made_at > datetime.now(UTC) - self._max_age
        query = select(columns.answer, columns.documents).where(columns.key == key, is_recent)
        with database_errors(), self._engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        return _parse_row(row.answer, row.documents) if row else None

    def _put(self, key: str, cached: CachedAnswer) -> None:
        documents = [(*document, digest) for document, digest in cached.documents.items()]
        values = {
            "made_at": datetime.now(UTC),
            "answer": cached.answer.model_dump_json(),
            "documents": _DIGESTS.dump_json(documents).decode(),
        }
        upsert = (
            self._insert(cached_answers_table)
            .values(key=key, **values)
            .on_conflict_do_update(index_elements=["key"], set_=values)
        )
        expired = cached_answers_table.c.made_at < datetime.now(UTC) - self._max_age
        with database_errors(), self._engine.begin() as connection:
            connection.execute(upsert)
            connection.execute(cached_answers_table.delete().where(expired))

    def _delete(self, key: str) -> None:
        with database_errors(), self._engine.begin() as connection:
            connection.execute(
                cached_answers_table.delete().where(cached_answers_table.c.key == key)
            )


def _parse_row(answer: str, documents: str) -> CachedAnswer | None:
    """Return the answer, or None if another version of apidesk stored it in another format."""
    try:
        digests = {
            (source, document_id): digest
            for source, document_id, digest in _DIGESTS.validate_json(documents)
        }
        return CachedAnswer(Answer.model_validate_json(answer), digests)
    except ValidationError:
        return None


class SingleFlight:
    """Shares the answers in progress in this process between callers with the same key."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}

    async def join(
        self, key: str, start: StartAnswer, store: StoreAnswer, on_event: EventSink | None
    ) -> tuple[Answer, bool]:
        """Return the answer, and whether an earlier caller started it.

        The first caller with a key runs `start`, and later callers wait for the answer. `store` then stores
        the answer. A caller that arrives while `store` runs waits until it has finished. That caller then
        runs its own `start`, which can find the stored answer.

        `on_event` receives all events of the answer, but no events if the first caller passed no
        `on_event`. If all waiting callers are cancelled, `start` is cancelled.

        Raises the errors of `start`.
        """
        while (flight := self._flights.get(key)) and flight.store_task:
            await asyncio.wait([flight.store_task])
        if flight is not None and not flight.has_failed:
            return await flight.wait(on_event), True
        flight = self._flights[key] = _Flight(start, streamed=on_event is not None)
        flight.task.add_done_callback(lambda _: self._finish(key, flight, store))
        return await flight.wait(on_event), False

    def _finish(self, key: str, flight: "_Flight", store: StoreAnswer) -> None:
        if flight.has_failed:
            self._remove(key, flight)
        else:
            flight.store_task = asyncio.create_task(store(flight.task.result()))
            flight.store_task.add_done_callback(lambda _: self._remove(key, flight))

    def _remove(self, key: str, flight: "_Flight") -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


class _Flight:
    """One answer in progress, and the callers that wait for it."""

    def __init__(self, start: StartAnswer, streamed: bool) -> None:
        self._events: list[Event] = []
        self._sinks: list[EventSink] = []
        self._waiting = 0
        self.task = asyncio.create_task(start(self._emit if streamed else None))
        self.store_task: asyncio.Task[None] | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the task has failed, was cancelled, or is being cancelled."""
        if self.task.done():
            return self.task.cancelled() or self.task.exception() is not None
        return bool(self.task.cancelling())

    async def wait(self, on_event: EventSink | None) -> Answer:
        """Wait for the answer and return it. If the last waiting caller is cancelled, cancel the task."""
        self._waiting += 1
        try:
            if on_event is not None:
                await self._replay_events(on_event)
                self._sinks.append(on_event)
            return await asyncio.shield(self.task)
        finally:
            self._waiting -= 1
            if on_event in self._sinks:
                self._sinks.remove(on_event)
            if not self._waiting:
                self.task.cancel()

    async def _emit(self, event: Event) -> None:
        self._events.append(event)
        for sink in list(self._sinks):
            await sink(event)

    async def _replay_events(self, on_event: EventSink) -> None:
        sent = 0
        while sent < len(self._events):  # more events may arrive while this one is sent
            await on_event(self._events[sent])
            sent += 1
