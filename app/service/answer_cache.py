"""Caches answers in the database, with digests of the cited documents to detect changes."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as insert_in_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_in_sqlite
from sqlalchemy.engine import Engine

from ingestion.database.engine import database_errors
from ingestion.database.tables import cached_answers_table
from ingestion.store.catalogue import DocumentKey
from schemas.answer import Answer
from schemas.document import Chunk
from schemas.errors import StoreUnavailable

T = TypeVar("T")

DocumentDigests = Mapping[DocumentKey, str]
"""The SHA-256 digest of each document's content."""

DATABASE_TIMEOUT_S = 1.0
"""Maximum seconds that one cache operation waits for the database, and so delays an answer."""

MAX_THREADS = 4
"""Number of threads of the cache. It has its own, so that a slow database does not block other work."""

_DIGESTS = TypeAdapter(list[tuple[str, str, str]])


@dataclass(frozen=True)
class CachedAnswer:
    """An answer, and the digests that the cited documents had when it was made."""

    answer: Answer
    documents: DocumentDigests


def document_digests(chunks: Iterable[Chunk]) -> DocumentDigests:
    """Return the digest of each document in `chunks`, which must contain all its chunks."""
    hashes: dict[DocumentKey, list[str]] = {}
    for chunk in chunks:
        hashes.setdefault((chunk.source, chunk.document_id), []).append(chunk.content_hash)
    return {
        key: hashlib.sha256("".join(sorted(chunk_hashes)).encode()).hexdigest()
        for key, chunk_hashes in hashes.items()
    }


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
        self._closed = False

    async def get(self, key: str) -> CachedAnswer | None:
        """Return the answer under `key`, or None if there is no answer or it has expired."""
        return await self._in_thread(lambda: self._get(key))

    async def put(self, key: str, cached: CachedAnswer) -> None:
        """Insert or replace the answer under `key`, and delete expired answers."""
        await self._in_thread(lambda: self._put(key, cached))

    async def delete(self, key: str) -> None:
        """Delete the answer under `key`."""
        await self._in_thread(lambda: self._delete(key))

    def close(self) -> None:
        """Reject further calls, and cancel those that have not started."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        run_in_context = copy_context().run  # log lines of the thread include the request id
        if self._closed:
            raise StoreUnavailable("the server is stopping")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT_S):
                return await loop.run_in_executor(self._threads, run_in_context, work)
        except TimeoutError:
            raise StoreUnavailable("the database did not answer in time") from None

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
    """Return the answer, or None if it was written by a version of apidesk with other fields."""
    try:
        digests = {
            (source, document_id): digest
            for source, document_id, digest in _DIGESTS.validate_json(documents)
        }
        return CachedAnswer(Answer.model_validate_json(answer), digests)
    except ValidationError:
        return None
