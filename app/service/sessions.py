"""What was asked and answered in each session, kept in the database: bounded, deletable, per owner."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Index,
    MetaData,
    Row,
    Select,
    Table,
    Text,
    select,
)
from sqlalchemy.engine import Engine

from ingestion.database.engine import BIG_ID, UtcDateTime, database_errors, open_engine
from ingestion.text.language import storable
from schemas.question import Turn
from schemas.settings import Settings

T = TypeVar("T")

THREADS = 8
"""Of their own, so that a database that hangs keeps no other work waiting."""

LONGEST_NAME = 200
"""Characters; an API's name or path that is longer is none, and is not kept."""

SWEEP_SECONDS = 3_600
"""How long what has expired may lie in sessions that nobody goes on with."""

SWEEP_ROWS = 1_000
"""Expired rows deleted at a time."""


metadata = MetaData()

turns_table = Table(
    "turns",
    metadata,
    Column("id", BIG_ID, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("asked_at", UtcDateTime, nullable=False, index=True),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("api_name", Text),
    Column("api_url", Text),
    Index("turns_of_a_session", "owner", "session", "asked_at"),
)

COLUMNS = [turns_table.c[name] for name in Turn.model_fields]


class SessionStore:
    """The sessions of every owner; an owner is the id of an API key, "" where there are none.

    The database is asked in worker threads, as the reports of ingestions are: one driver for each
    database, and SQLite has no other way.
    """

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._turns = settings.history_turns
        self._chars = settings.history_chars
        self._days = timedelta(days=settings.history_days)
        self._threads = ThreadPoolExecutor(THREADS, "history")
        self._sweep_at = time.monotonic()

    @classmethod
    def open(cls, settings: Settings) -> "SessionStore":
        """The history in the database of Settings. It blocks.

        Raises ConfigurationError for a url that is none, StoreUnavailable for a database that does
        not answer.
        """
        return cls(open_engine(settings), settings)

    async def read(self, owner: str, session: str) -> tuple[Turn, ...]:
        """What is remembered of the session, oldest first. Raises StoreUnavailable."""
        return await self._in_thread(lambda: self._read(owner, session))

    async def append(self, owner: str, session: str, turn: Turn) -> None:
        """Remember `turn`, and forget what is too much or too old. Raises StoreUnavailable."""
        await self._in_thread(lambda: self._append(owner, session, turn))

    async def delete(self, owner: str, session: str) -> bool:
        """Forget the session; whether there was anything. Raises StoreUnavailable."""
        return await self._in_thread(lambda: self._delete(owner, session))

    def close(self) -> None:
        """End what is under way and close every connection. It blocks."""
        self._threads.shutdown()
        self._engine.dispose()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        inside = copy_context().run  # so that what it logs names the request
        return await asyncio.get_running_loop().run_in_executor(self._threads, inside, work)

    def _read(self, owner: str, session: str) -> tuple[Turn, ...]:
        query = _newest_first(owner, session).limit(self._turns)
        with database_errors(), self._engine.connect() as connection:
            rows = connection.execute(query).all()
        return tuple(reversed(self._remembered(rows)))

    def _append(self, owner: str, session: str, turn: Turn) -> None:
        """The insert comes first: SQLite lets a transaction that begins by writing wait its turn."""
        row = fitted(_storable(turn), self._chars).model_dump()
        with database_errors(), self._engine.begin() as connection:
            if self._turns:
                connection.execute(turns_table.insert().values(owner=owner, session=session, **row))
            self._prune(connection, owner, session)
            self._sweep(connection)

    def _delete(self, owner: str, session: str) -> bool:
        with database_errors(), self._engine.begin() as connection:
            done = connection.execute(turns_table.delete().where(*_mine(owner, session)))
            return done.rowcount > 0

    def _remembered(self, newest_first: Sequence[Row[Any]]) -> list[Turn]:
        """The turns at the beginning of these rows that are within the bounds."""
        oldest = self._oldest()
        young = takewhile(lambda turn: turn.asked_at >= oldest, map(_turn, newest_first))
        return recent(young, self._turns, self._chars)

    def _prune(self, connection: Connection, owner: str, session: str) -> None:
        rows = connection.execute(_newest_first(owner, session)).all()
        beyond = [row.id for row in rows[len(self._remembered(rows)) :]]
        if beyond:
            _remove(connection, select(turns_table.c.id).where(turns_table.c.id.in_(beyond)))

    def _sweep(self, connection: Connection) -> None:
        """Now and then, delete what has expired in anybody's sessions; go on soon if it is much."""
        if time.monotonic() < self._sweep_at:
            return
        expired = select(turns_table.c.id).where(turns_table.c.asked_at < self._oldest())
        if _remove(connection, expired.limit(SWEEP_ROWS)) < SWEEP_ROWS:
            self._sweep_at = time.monotonic() + SWEEP_SECONDS

    def _oldest(self) -> datetime:
        return datetime.now(UTC) - self._days


def recent(newest_first: Iterable[Turn], turns: int, chars: int) -> list[Turn]:
    """The first of them: at most `turns`, each fitted into `chars` characters, and all of them too."""
    kept: list[Turn] = []
    left = chars
    for turn in islice(newest_first, turns):
        short = fitted(turn, chars)
        left -= _size(short)
        if left < 0:
            break
        kept.append(short)
    return kept


def fitted(turn: Turn, chars: int) -> Turn:
    """`turn` in at most `chars` characters: half are the question's, the answer has what is left."""
    names = {"api_name": _name(turn.api_name), "api_url": _name(turn.api_url)}
    question = _cut(turn.question, chars // 2)
    left = chars - len(question) - sum(len(name or "") for name in names.values())
    return turn.model_copy(
        update={"question": question, "answer": _cut(turn.answer, left), **names}
    )


def _name(text: str | None) -> str | None:
    return text if text and len(text) <= LONGEST_NAME else None


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _size(turn: Turn) -> int:
    return sum(len(text or "") for text in _texts(turn).values())


def _texts(turn: Turn) -> dict[str, str | None]:
    return turn.model_dump(exclude={"asked_at"})


def _storable(turn: Turn) -> Turn:
    return turn.model_copy(
        update={name: text and storable(text) for name, text in _texts(turn).items()}
    )


def _turn(row: Row[Any]) -> Turn:
    return Turn(**{column.name: getattr(row, column.name) for column in COLUMNS})


def _mine(owner: str, session: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return turns_table.c.owner == owner, turns_table.c.session == session


def _newest_first(owner: str, session: str) -> Select[Any]:
    latest = (turns_table.c.asked_at.desc(), turns_table.c.id.desc())
    return select(turns_table.c.id, *COLUMNS).where(*_mine(owner, session)).order_by(*latest)


def _remove(connection: Connection, ids: Select[tuple[int]]) -> int:
    """Delete these rows, but for those that somebody else is deleting: so nobody waits for anybody."""
    free = ids.with_for_update(skip_locked=True)
    return connection.execute(turns_table.delete().where(turns_table.c.id.in_(free))).rowcount
