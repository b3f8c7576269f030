"""Copies a collection in local files to Milvus Lite: one row per chunk, with the chunk's vector.

Searches read the snapshot of the collection (snapshot.py), not the copy. Each run copies its changes to
Milvus Lite, and a missing snapshot is restored from the copy. Milvus Lite locks its file while it is open,
so it is closed after each use.

Milvus Lite and its client take about 190 MB of memory, which is not freed when they are closed. A
long-lived process, such as the apidesk server, therefore uses them in a child process.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import numpy as np

from ingestion.child_processes import run_in_child
from ingestion.store.catalogue import drop_leftovers, move_alias
from ingestion.store.client import batches, milvus_errors, open_milvus, row_pages
from ingestion.store.manifest import (
    CollectionManifest,
    check_manifest,
    read_manifest,
    write_manifest,
)
from ingestion.store.schema import (
    CHUNK_FIELDS,
    Vector,
    chunk_from_row,
    create_backup,
)
from ingestion.store.snapshot import (
    MAX_VARIABLES,
    REPLACED_KEY,
    decode_chunk,
    get_state,
    open_snapshot,
    placeholders,
    set_state,
    snapshot_path,
    transaction,
    vector_dimension,
)
from schemas.document import Chunk
from schemas.errors import StoreUnavailable
from schemas.settings import Settings

if TYPE_CHECKING:
    from pymilvus import MilvusClient


P = ParamSpec("P")

FLUSH_ROWS = 5_000
"""Maximum number of new rows that Milvus Lite keeps in memory before it writes them to its files."""


class LiteCopy:
    """The rows of a collection in the Milvus Lite file of `settings`."""

    def __init__(self, settings: Settings) -> None:
        self.alias = settings.collection
        self._settings = settings

    def replay_journal(self, connection: sqlite3.Connection, manifest: CollectionManifest) -> None:
        """Copy the changes in the snapshot's table `journal` to Milvus Lite, then empty this table.

        The table lists the chunks that were written or deleted since the last copy. After a rebuild, or if
        Milvus Lite does not contain the collection, all chunks are copied.

        `connection` must not have an open transaction. Raises StoreLocked if another process has the Milvus
        Lite file open or if it is a file of another kind, and StoreUnavailable if Milvus Lite fails for
        another reason. After an error, the next run copies the changes.
        """
        with self._open() as client:
            exists = client.has_collection(self.alias)
            if exists and not get_state(connection, REPLACED_KEY):
                ids = [chunk_id for (chunk_id,) in connection.execute("SELECT id FROM journal")]
                for flushed in batches(ids, FLUSH_ROWS):
                    for batch in batches(flushed, MAX_VARIABLES):
                        _replace_rows(client, self.alias, connection, batch)
                    client.flush(self.alias)
                write_manifest(client, self.alias, manifest)
            else:
                name = self._write_next_collection(client, connection, manifest)
                move_alias(client, self.alias, name)
                drop_leftovers(client, self.alias)
        with transaction(connection, "IMMEDIATE"):
            connection.execute("DELETE FROM journal")
            set_state(connection, REPLACED_KEY, "")

    def check_manifest(self, expected: CollectionManifest | None) -> None:
        """Raise CollectionMismatch if the collection exists, but apidesk did not create it.

        With `expected`, also raise it if the settings in the stored manifest differ from those in
        `expected`.
        """
        with self._open_existing() as client:
            if client is not None:
                manifest = read_manifest(client, self.alias)
                if expected is not None:
                    check_manifest(self.alias, manifest, expected)

    def stored_rows(self, with_vectors: bool) -> Iterator[tuple[list[Chunk], list[Vector] | None]]:
        """Yield all chunks in batches, to restore a missing snapshot.

        With `with_vectors`, each batch has one vector per chunk; otherwise, it has None instead of vectors.
        """
        with self._open_existing() as client:
            if client is None:
                return
            client.load_collection(self.alias)
            fields = [*CHUNK_FIELDS, "dense"] if with_vectors else CHUNK_FIELDS
            for page in row_pages(client, self.alias, fields):
                for rows in batches(page):
                    vectors = [row["dense"] for row in rows] if with_vectors else None
                    yield [chunk_from_row(row) for row in rows], vectors

    def _write_next_collection(
        self, client: "MilvusClient", connection: sqlite3.Connection, manifest: CollectionManifest
    ) -> str:
        """Write all chunks into a new collection; return its name."""
        name = f"{self.alias}_{time.time_ns()}"
        create_backup(client, name, vector_dimension(connection))
        ids = [chunk_id for (chunk_id,) in connection.execute("SELECT id FROM chunk")]
        for flushed in batches(ids, FLUSH_ROWS):
            for batch in batches(flushed, MAX_VARIABLES):
                client.insert(name, _rows(connection, batch))
            client.flush(name)
        write_manifest(client, name, manifest)
        return name

    @contextmanager
    def _open_existing(self) -> Iterator["MilvusClient | None"]:
        """Open Milvus Lite for the block. Yields None if it does not contain the collection."""
        if not Path(self._settings.milvus_uri).exists():
            yield None
            return
        with self._open() as client:
            yield client if client.has_collection(self.alias) else None

    @contextmanager
    def _open(self) -> Iterator["MilvusClient"]:
        """Open Milvus Lite for the block, and close it afterwards so that other processes can open it."""
        client = open_milvus(self._settings)
        try:
            with milvus_errors():
                yield client
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"{self._settings.milvus_uri} cannot be used ({error}); if it is damaged, delete it: "
                "the next run that changes anything writes it again"
            ) from error
        finally:
            client.close()
            # Closing the client does not close the file.
            from milvus_lite.server_manager import (  # type: ignore[import-untyped]
                server_manager_instance,
            )

            server_manager_instance.release_server(self._settings.milvus_uri)


class ChildLiteCopy(LiteCopy):
    """A LiteCopy that uses Milvus Lite in a child process, except to restore a snapshot."""

    def replay_journal(self, connection: sqlite3.Connection, manifest: CollectionManifest) -> None:
        """Replay the journal as LiteCopy does. The child process opens a connection of its own."""
        self._run_in_child(_replay_journal, self._settings, manifest)

    def check_manifest(self, expected: CollectionManifest | None) -> None:
        """Check the collection as LiteCopy does."""
        if Path(self._settings.milvus_uri).exists():
            self._run_in_child(LiteCopy(self._settings).check_manifest, expected)

    def _run_in_child(self, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            run_in_child(function, *args, **kwargs)
        except BrokenProcessPool:
            raise StoreUnavailable(
                f"{self._settings.milvus_uri}: the process that uses it has ended unexpectedly"
            ) from None


def _replay_journal(settings: Settings, manifest: CollectionManifest) -> None:
    with closing(open_snapshot(snapshot_path(settings))) as connection:
        LiteCopy(settings).replay_journal(connection, manifest)


def _replace_rows(
    client: "MilvusClient", name: str, connection: sqlite3.Connection, ids: list[str]
) -> None:
    """Copy the chunks with these ids to Milvus Lite; delete those that are no longer in the snapshot."""
    rows = _rows(connection, ids)
    if rows:
        client.upsert(name, rows)
    if deleted := sorted(set(ids) - {str(row["id"]) for row in rows}):
        client.delete(name, ids=deleted)


def _rows(connection: sqlite3.Connection, ids: list[str]) -> list[dict[str, object]]:
    """Return the rows of the chunks with these ids; unknown ids are skipped."""
    stored = connection.execute(
        "SELECT content.chunk, components FROM chunk JOIN content USING (number) "
        f"LEFT JOIN vector USING (number) WHERE id IN {placeholders(ids)}",
        ids,
    )
    rows: list[dict[str, object]] = []
    for data, components in stored:
        vector = np.frombuffer(components, np.float32).tolist() if components else None
        row = decode_chunk(data).model_dump()
        # A collection without embeddings requires a value for its vector field `unused`.
        rows.append(row | ({"dense": vector} if vector else {"unused": [0.0, 0.0]}))
    return rows
