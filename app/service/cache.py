"""Questions that are asked while the same one is being answered: they wait for that answer.
Answers in the database, each with the state of the documents that it cites.
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
from sqlalchemy import Column, MetaData, String, Table, Text, select
from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite
from sqlalchemy.engine import Engine

from ingestion.database.engine import UtcDateTime, database_errors
from schemas.answer import Answer, Event, EventSink
from schemas.document import Chunk
from schemas.errors import StoreUnavailable

StartAnswer = Callable[[EventSink | None], Coroutine[Any, Any, Answer]]
KeepAnswer = Callable[[Answer], Coroutine[Any, Any, None]]


class SingleFlight:
    """Answers under way in this process, by key."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}

    async def join(
        self, key: str, start: StartAnswer, keep: KeepAnswer, listener: EventSink | None
    ) -> tuple[Answer, bool]:
        """The answer of `start`, or of the one that is under way under `key`, and whether it was.

        Nobody waits until the answer is kept but who comes meanwhile, and then begins anew.

        `listener` is told everything, from the beginning; nothing where the one who began it does not
        listen, since following a model's reply costs more than all the rest. Raises what `start` raises.
        The work is cancelled when everybody who waits for it has left.
        """
        while (flight := self._flights.get(key)) and flight.keeping:
            await asyncio.wait([flight.keeping])
        if flight is not None and not flight.over:
            return await flight.wait(listener), True
        flight = self._flights[key] = _Flight(start, listener is not None)
        flight.task.add_done_callback(lambda _: self._arrived(key, flight, keep))
        return await flight.wait(listener), False

    def _arrived(self, key: str, flight: "_Flight", keep: KeepAnswer) -> None:
        if flight.over:
            self._land(key, flight)
        else:
            flight.keeping = asyncio.create_task(keep(flight.task.result()))
            flight.keeping.add_done_callback(lambda _: self._land(key, flight))

    def _land(self, key: str, flight: "_Flight") -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


class _Flight:
    def __init__(self, start: StartAnswer, followed: bool) -> None:
        self._events: list[Event] = []
        self._listeners: list[EventSink] = []
        self._waiting = 0
        self.task = asyncio.create_task(start(self._tell if followed else None))
        self.keeping: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether it has no answer and will have none."""
        if self.task.done():
            return self.task.cancelled() or self.task.exception() is not None
        return bool(self.task.cancelling())

    async def wait(self, listener: EventSink | None) -> Answer:
        self._waiting += 1
        try:
            if listener is not None:
                await self._catch_up(listener)
                self._listeners.append(listener)
            return await asyncio.shield(self.task)
        finally:
            self._waiting -= 1
            if listener in self._listeners:
                self._listeners.remove(listener)
            if not self._waiting:
                self.task.cancel()

    async def _tell(self, event: Event) -> None:
        self._events.append(event)
        for listener in list(self._listeners):
            await listener(event)

    async def _catch_up(self, listener: EventSink) -> None:
        told = 0
        while told < len(self._events):  # more may come meanwhile
            await listener(self._events[told])
            told += 1


T = TypeVar("T")

DocumentPlace = tuple[str, str]
"""A document: its source and its id."""

DigestsByPlace = Mapping[DocumentPlace, str]
"""What each document held, by place."""

PATIENCE_SECONDS = 1.0
"""How long an answer may wait for the database: without a cache it would not have to."""

THREADS = 4
"""Of their own, so that a database that hangs keeps no other work waiting."""

_DIGESTS = TypeAdapter(list[tuple[str, str, str]])

metadata = MetaData()

answers_table = Table(
    "cached_answers",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("made_at", UtcDateTime, nullable=False, index=True),
    Column("answer", Text, nullable=False),
    Column("documents", Text, nullable=False),
)


@dataclass(frozen=True)
class CachedAnswer:
    """An answer, and what the documents that it cites held when it was given."""

    answer: Answer
    documents: DigestsByPlace


def digests(chunks: Iterable[Chunk]) -> DigestsByPlace:
    """What each of the documents holds that these are all the chunks of."""
    hashes: dict[DocumentPlace, list[str]] = {}
    for chunk in chunks:
        hashes.setdefault((chunk.source, chunk.document_id), []).append(chunk.content_hash)
    return {
        place: hashlib.sha256("".join(sorted(of)).encode()).hexdigest()
        for place, of in hashes.items()
    }


class AnswerCache:
    """Every method raises StoreUnavailable when the database does not answer in time."""

    def __init__(self, engine: Engine, days: int) -> None:
        self._engine = engine
        self._days = timedelta(days=days)
        self._insert = insert_in_sqlite if engine.dialect.name == "sqlite" else insert_in_postgresql
        self._threads = ThreadPoolExecutor(THREADS, "cache")
        self._closed = False

    async def get(self, key: str) -> CachedAnswer | None:
        """The answer under `key`, if one was kept and is not too old."""
        return await self._in_thread(lambda: self._get(key))

    async def put(self, key: str, cached: CachedAnswer) -> None:
        """Keep `cached` under `key`, instead of what was there; forget what is too old."""
        await self._in_thread(lambda: self._put(key, cached))

    async def drop(self, key: str) -> None:
        """Forget what is under `key`."""
        await self._in_thread(lambda: self._drop(key))

    def close(self) -> None:
        """Begin nothing more: what is asked for now raises StoreUnavailable."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        inside = copy_context().run  # so that what it logs names the request
        if self._closed:
            raise StoreUnavailable("the server is stopping")
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._threads, inside, work)
        except TimeoutError:
            raise StoreUnavailable("the database takes too long") from None

    def _get(self, key: str) -> CachedAnswer | None:
        columns = answers_table.c
        young = columns.made_at > datetime.now(UTC) - self._days
        query = select(columns.answer, columns.documents).where(columns.key == key, young)
        with database_errors(), self._engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        return _cached(row.answer, row.documents) if row else None

    def _put(self, key: str, cached: CachedAnswer) -> None:
        documents = [(*place, digest) for place, digest in cached.documents.items()]
        kept = {
            "made_at": datetime.now(UTC),
            "answer": cached.answer.model_dump_json(),
            "documents": _DIGESTS.dump_json(documents).decode(),
        }
        put = self._insert(answers_table).values(key=key, **kept)
        expired = answers_table.c.made_at < datetime.now(UTC) - self._days
        with database_errors(), self._engine.begin() as connection:
            connection.execute(put.on_conflict_do_update(index_elements=["key"], set_=kept))
            connection.execute(answers_table.delete().where(expired))

    def _drop(self, key: str) -> None:
        with database_errors(), self._engine.begin() as connection:
            connection.execute(answers_table.delete().where(answers_table.c.key == key))


def _cached(answer: str, documents: str) -> CachedAnswer | None:
    """None for an answer of another version of this program, which had other fields."""
    try:
        held = {
            (source, name): digest for source, name, digest in _DIGESTS.validate_json(documents)
        }
        return CachedAnswer(Answer.model_validate_json(answer), held)
    except ValidationError:
        return None
