"""Stores the turns of sessions in the database. A turn is a question with its answer.

The number, size and age of the turns are limited.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, select
from sqlalchemy.engine import Engine

from ingestion.database.engine import database_errors
from ingestion.database.tables import turns_table
from ingestion.text.language import storable_text
from schemas.errors import StoreUnavailable
from schemas.question import Turn
from schemas.settings import Settings

T = TypeVar("T")

MAX_THREADS = 8
"""Number of threads of the store. Nothing else uses them, so a slow database blocks only the store."""

DATABASE_TIMEOUT_S = 2.0
"""Maximum seconds that a question waits for the database: once before its answer, and once after it."""

MAX_NAME_CHARS = 200
"""Maximum length of an API name or path, in characters; longer ones are not stored."""

SWEEP_INTERVAL_S = 3_600
"""Seconds between deletions of expired turns in all sessions."""

SWEEP_BATCH_SIZE = 1_000
"""Maximum number of expired turns that are deleted at a time."""

TURN_COLUMNS = [turns_table.c[name] for name in Turn.model_fields]


class SessionStore:
    """Stores the sessions of all owners. An owner is the id of a caller, or "" if no API key is required.

    Queries run in worker threads, because the database drivers are synchronous.
    """

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._max_turns = settings.history_turns
        self._max_chars = settings.history_chars
        self._max_age = timedelta(days=settings.history_days)
        self._threads = ThreadPoolExecutor(MAX_THREADS, "sessions")
        self._next_sweep = time.monotonic()

    async def read(self, owner: str, session: str) -> tuple[Turn, ...]:
        """Return the turns of the session within the limits, oldest first. Raises StoreUnavailable."""
        return await self._limit_time(lambda: self._read(owner, session))

    async def append(self, owner: str, session: str, turn: Turn) -> None:
        """Store `turn`, and delete turns that exceed the limits. Raises StoreUnavailable."""
        await self._limit_time(lambda: self._append(owner, session, turn))

    async def delete(self, owner: str, session: str) -> bool:
        """Delete the session, and return whether it had any turns. Raises StoreUnavailable."""
        return await self._in_thread(lambda: self._delete(owner, session))

    def close(self) -> None:
        """Wait for running queries. This method blocks. The database stays open."""
        self._threads.shutdown()

    async def _limit_time(self, work: Callable[[], T]) -> T:
        """Return the result of `work`. Raises StoreUnavailable if it fails or exceeds DATABASE_TIMEOUT_S.

        After a timeout, work that has already started continues in its thread.
        """
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT_S):
                return await self._in_thread(work)
        except TimeoutError:
            raise StoreUnavailable("the database did not answer in time: try again later") from None

    async def _in_thread(self, work: Callable[[], T]) -> T:
        run_in_context = copy_context().run  # log lines of the thread include the request id
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, run_in_context, work)

    def _read(self, owner: str, session: str) -> tuple[Turn, ...]:
        query = _newest_first(owner, session).limit(self._max_turns)
        with database_errors(), self._engine.connect() as connection:
            rows = connection.execute(query).all()
        return tuple(reversed(self._within_limits(rows)))

    def _append(self, owner: str, session: str, turn: Turn) -> None:
        """Insert `turn`, then delete turns that exceed the limits.

        The insert comes first. If a transaction begins with a read, SQLite does not let it wait for another
        process that is writing.
        """
        row = truncate_turn(_storable(turn), self._max_chars).model_dump()
        with database_errors(), self._engine.begin() as connection:
            if self._max_turns:
                connection.execute(turns_table.insert().values(owner=owner, session=session, **row))
            self._prune(connection, owner, session)
            self._sweep(connection)

    def _delete(self, owner: str, session: str) -> bool:
        delete = turns_table.delete().where(*_in_session(owner, session))
        with database_errors(), self._engine.begin() as connection:
            return connection.execute(delete).rowcount > 0

    def _within_limits(self, newest_first: Sequence[Row[Any]]) -> list[Turn]:
        oldest = self._oldest_allowed()
        unexpired = takewhile(lambda turn: turn.asked_at >= oldest, map(_parse_row, newest_first))
        return select_recent_turns(unexpired, self._max_turns, self._max_chars)

    def _prune(self, connection: Connection, owner: str, session: str) -> None:
        """Delete the turns of one session that exceed the limits."""
        rows = connection.execute(_newest_first(owner, session)).all()
        beyond = [row.id for row in rows[len(self._within_limits(rows)) :]]
        if beyond:
            _delete_rows(connection, select(turns_table.c.id).where(turns_table.c.id.in_(beyond)))

    def _sweep(self, connection: Connection) -> None:
        """Delete expired turns of all sessions, once per SWEEP_INTERVAL_S.

        One call deletes at most SWEEP_BATCH_SIZE turns. If there are more, the next call continues.
        """
        if time.monotonic() < self._next_sweep:
            return
        expired = select(turns_table.c.id).where(turns_table.c.asked_at < self._oldest_allowed())
        if _delete_rows(connection, expired.limit(SWEEP_BATCH_SIZE)) < SWEEP_BATCH_SIZE:
            self._next_sweep = time.monotonic() + SWEEP_INTERVAL_S

    def _oldest_allowed(self) -> datetime:
        return datetime.now(UTC) - self._max_age


def select_recent_turns(newest_first: Iterable[Turn], max_turns: int, max_chars: int) -> list[Turn]:
    """Return the newest turns, newest first, within the limits.

    There are at most `max_turns` turns, with at most `max_chars` characters in total. Each turn is first
    truncated to `max_chars` characters.
    """
    selected: list[Turn] = []
    remaining = max_chars
    for turn in islice(newest_first, max_turns):
        truncated = truncate_turn(turn, max_chars)
        remaining -= _count_chars(truncated)
        if remaining < 0:
            break
        selected.append(truncated)
    return selected


def truncate_turn(turn: Turn, max_chars: int) -> Turn:
    """Return `turn`, truncated to `max_chars` characters.

    The question may use half of the characters. The answer may use those that the question, the API name
    and the path do not use. An API name or path that is longer than MAX_NAME_CHARS is removed.
    """
    names = {"api_name": _short_name(turn.api_name), "api_url": _short_name(turn.api_url)}
    question = _truncate(turn.question, max_chars // 2)
    remaining = max_chars - len(question) - sum(len(name or "") for name in names.values())
    return turn.model_copy(
        update={"question": question, "answer": _truncate(turn.answer, remaining), **names}
    )


def _short_name(text: str | None) -> str | None:
    return text if text and len(text) <= MAX_NAME_CHARS else None


def _truncate(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _count_chars(turn: Turn) -> int:
    return sum(len(text or "") for text in _texts(turn).values())


def _texts(turn: Turn) -> dict[str, str | None]:
    return turn.model_dump(exclude={"asked_at"})


def _storable(turn: Turn) -> Turn:
    return turn.model_copy(
        update={name: text and storable_text(text) for name, text in _texts(turn).items()}
    )


def _parse_row(row: Row[Any]) -> Turn:
    return Turn(**{column.name: getattr(row, column.name) for column in TURN_COLUMNS})


def _in_session(owner: str, session: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return turns_table.c.owner == owner, turns_table.c.session == session


def _newest_first(owner: str, session: str) -> Select[Any]:
    """Return a query for the turns of a session, newest first.

    The query sorts by id, because ids do not depend on the clock.
    """
    query = select(turns_table.c.id, *TURN_COLUMNS).where(*_in_session(owner, session))
    return query.order_by(turns_table.c.id.desc())


def _delete_rows(connection: Connection, ids: Select[tuple[int]]) -> int:
    """Delete the rows with these ids that no other transaction has locked. Return their number."""
    unlocked = ids.with_for_update(skip_locked=True)
    return connection.execute(turns_table.delete().where(turns_table.c.id.in_(unlocked))).rowcount
