"""Keeps the vectors of an unfinished run, so that the next run does not embed their texts again."""

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from ingestion.store.client import batches
from ingestion.store.schema import Vector
from ingestion.store.snapshot import MAX_VARIABLES, placeholders, snapshot_errors
from schemas.settings import Settings


class PendingVectors:
    """Vectors by text, in a file that exists until a run succeeds. For use in one thread.

    `get` and `put` raise StoreUnavailable if the file cannot be used.
    """

    def __init__(self, path: Path, model: str) -> None:
        """`model` identifies the model; vectors of other models are not returned."""
        self._path = path
        self._model = model

    @classmethod
    def beside_snapshot(cls, settings: Settings) -> "PendingVectors | None":
        """Return the vectors next to the Milvus Lite file of `settings`; None with a Milvus server.

        An index on a server is usually updated in place, so the next run finds this run's vectors there.
        """
        if not settings.embedded:
            return None
        path = Path(f"{settings.milvus_uri}.{settings.collection}.vectors")
        return cls(path, f"{settings.embedding_model}\n{settings.embedding_base_url}")

    def get(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the stored vectors of `texts`, by text; texts without a vector are omitted."""
        if not self._path.exists():
            return {}
        keys = {self._key(text): text for text in texts}
        vectors: dict[str, Vector] = {}
        with snapshot_errors(self._path), closing(self._open()) as connection:
            for batch in batches(keys, MAX_VARIABLES):
                condition = f"key IN {placeholders(batch)}"
                for key, data in connection.execute(
                    f"SELECT * FROM vector WHERE {condition}", batch
                ):
                    vectors[keys[key]] = np.frombuffer(data, np.float32).tolist()
        return vectors

    def put(self, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Store the vector of each of `texts`."""
        rows = [
            (self._key(text), np.array(vector, np.float32).tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        with snapshot_errors(self._path), closing(self._open()) as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)

    def clear(self) -> None:
        """Delete all vectors."""
        self._path.unlink(missing_ok=True)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, components BLOB) WITHOUT ROWID"
        )
        return connection

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._model}\n{text}".encode()).digest()
