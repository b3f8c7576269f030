"""Answers in the database, each with the state of the documents that it cites."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter
from sqlalchemy import Column, MetaData, String, Table, Text, select
from sqlalchemy.engine import Engine

from ingestion.columns import UtcDateTime
from ingestion.database import database_errors
from schemas.answer import Answer
from schemas.document import Chunk

Place = tuple[str, str]
"""A document: its source and its id."""

Digests = Mapping[Place, str]
"""What each document held, by place."""

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
    documents: Digests


def digests(chunks: Iterable[Chunk]) -> Digests:
    """What each of the documents holds that these are all the chunks of."""
    hashes: dict[Place, list[str]] = {}
    for chunk in chunks:
        hashes.setdefault((chunk.source, chunk.document_id), []).append(chunk.content_hash)
    return {
        place: hashlib.sha256("".join(sorted(of)).encode()).hexdigest()
        for place, of in hashes.items()
    }


class CachedAnswers:
    """Every method blocks, and raises StoreUnavailable when the database does not answer."""

    def __init__(self, engine: Engine, days: int) -> None:
        self._engine = engine
        self._days = timedelta(days=days)

    def get(self, key: str) -> CachedAnswer | None:
        """The answer under `key`, if one was kept and is not too old."""
        columns = answers_table.c
        young = columns.made_at > datetime.now(UTC) - self._days
        query = select(columns.answer, columns.documents).where(columns.key == key, young)
        with database_errors(), self._engine.connect() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        documents = _DIGESTS.validate_json(row.documents)
        return CachedAnswer(
            Answer.model_validate_json(row.answer),
            {(source, document_id): digest for source, document_id, digest in documents},
        )

    def put(self, key: str, cached: CachedAnswer) -> None:
        """Keep `cached` under `key`, instead of what was there; forget what is too old."""
        documents = [(*place, digest) for place, digest in cached.documents.items()]
        row = {
            "key": key,
            "made_at": datetime.now(UTC),
            "answer": cached.answer.model_dump_json(),
            "documents": _DIGESTS.dump_json(documents).decode(),
        }
        expired = answers_table.c.made_at < datetime.now(UTC) - self._days
        with database_errors(), self._engine.begin() as connection:
            connection.execute(answers_table.delete().where(expired))
            connection.execute(answers_table.delete().where(answers_table.c.key == key))
            connection.execute(answers_table.insert().values(row))

    def drop(self, key: str) -> None:
        """Forget what is under `key`."""
        with database_errors(), self._engine.begin() as connection:
            connection.execute(answers_table.delete().where(answers_table.c.key == key))
