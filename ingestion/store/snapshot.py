"""The snapshot of a collection in local files: one SQLite file that any number of processes can read.

Milvus Lite lets only one process open its file, and reads every row for each search. Therefore, searches
use the snapshot instead. It contains the chunks, their full-text index, their vectors, the vocabulary (how
often each word occurs) and the catalogue (an entry per document). An ingestion run changes the chunks and
their indexes in one transaction. Readers see the previous state until the commit, and a run that dies
before the commit changes no chunks. After the commit, `lite_copy.py` copies the changes to Milvus Lite.

The file is in SQLite's WAL mode and is memory-mapped. docs/decisions/0014-embedded-snapshot.md compares
the alternatives.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ingestion.database.sqlite_errors import is_damaged, sqlite_problem
from ingestion.store.client import make_folder
from ingestion.store.manifest import CollectionManifest
from schemas.document import Chunk
from schemas.errors import StoreUnavailable
from schemas.settings import Settings

FORMAT_VERSION = 2
"""Version of the tables below, stored as SQLite's `user_version`. Increment it with every change."""

MMAP_BYTES = 4 * 2**30
"""Maximum size of the memory-mapped part of the file."""

LOCK_TIMEOUT_S = 30
"""Seconds to wait for another process that writes the file."""

MAX_VARIABLES = 500
"""Maximum number of variables in one statement; SQLite allows 32,766."""

MANIFEST_KEY, VERSION_KEY, SOURCES_KEY, REPLACED_KEY = "manifest", "version", "sources", "replaced"
"""Keys of the table `state`.

`version` changes whenever a run writes chunks or the manifest. `sources` is the state of the sources after
the last run. A run that changes chunks deletes `sources` in its transaction, and stores a new value after
the transaction. If `replaced` is set, the whole Milvus Lite collection must be rebuilt from the snapshot.
"""

_TABLES = """
CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- `number` identifies the chunk in posting lists, and is the chunk's index in the arrays that are kept in
-- memory. `words` is the number of terms in the chunk.
CREATE TABLE chunk (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source TEXT NOT NULL,
    document_id TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL, language TEXT NOT NULL,
    service_id TEXT NOT NULL, api_name TEXT NOT NULL, api_url TEXT NOT NULL,
    metadata TEXT NOT NULL, content_hash TEXT NOT NULL, fingerprint TEXT NOT NULL,
    words INTEGER NOT NULL
);
CREATE INDEX chunk_document ON chunk (source, document_id, position);
CREATE INDEX chunk_api_name ON chunk (api_name) WHERE api_name <> '';
CREATE INDEX chunk_api_url ON chunk (api_url) WHERE api_url <> '';

CREATE TABLE content (number INTEGER PRIMARY KEY, chunk BLOB NOT NULL);
CREATE TABLE vector (number INTEGER PRIMARY KEY, components BLOB NOT NULL);

-- `chunks` are the numbers of the chunks that contain the term (uint32, ascending), and `counts` are the
-- occurrences of the term in each chunk (uint16).
CREATE TABLE posting (term TEXT PRIMARY KEY, chunks BLOB NOT NULL, counts BLOB NOT NULL);
CREATE TABLE word (word TEXT PRIMARY KEY, occurrences INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE document (
    source TEXT, document_id TEXT, entry TEXT NOT NULL, PRIMARY KEY (source, document_id)
) WITHOUT ROWID;

-- Ids of chunks whose writing or deletion has not reached Milvus Lite yet.
CREATE TABLE journal (id TEXT PRIMARY KEY) WITHOUT ROWID;
"""


def snapshot_path(settings: Settings) -> Path:
    """Return the path of the snapshot, which is next to the Milvus Lite file of `settings`."""
    return Path(f"{settings.milvus_uri}.{settings.collection}.sqlite")


def with_existing_snapshot(settings: Settings) -> Settings:
    """Return `settings`, or a copy that names the default collection of earlier versions.

    The copy is returned if the default collection of earlier versions has a snapshot, but the configured
    collection has none.
    """
    if settings.former_collection is None or snapshot_path(settings).exists():
        return settings
    former = settings.model_copy(update={"collection": settings.former_collection})
    return former if snapshot_path(former).exists() else settings


def open_snapshot(path: Path) -> sqlite3.Connection:
    """Open the snapshot at `path`; create an empty one if it is missing or has another format.

    The connection is in autocommit mode, and only one thread at a time may use it. Raises
    ConfigurationError if the folder cannot be created, and StoreUnavailable if the file cannot be used.
    """
    make_folder(path.parent)
    with snapshot_errors(path):
        connection = sqlite3.connect(
            path, timeout=LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if _format_version(connection) != FORMAT_VERSION:
            _create_tables(connection)
    return connection


@contextmanager
def snapshot_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite in the block as StoreUnavailable."""
    try:
        yield
    except sqlite3.Error as error:
        advice = "; delete it and run `apidesk ingest`" if is_damaged(error) else ""
        problem = sqlite_problem(error) or str(error)
        raise StoreUnavailable(f"{path} cannot be used: {problem}{advice}") from error


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "DEFERRED") -> Iterator[None]:
    """Run the block in a transaction, which is rolled back if the block raises an error."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def get_state(connection: sqlite3.Connection, key: str) -> str:
    """Return a value of the table `state`; empty if it is not set."""
    row = connection.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
    return row[0] if row else ""


def set_state(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Set a value of the table `state`; an empty value removes it."""
    if value:
        connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (key, value))
    else:
        connection.execute("DELETE FROM state WHERE key = ?", (key,))


def get_manifest(connection: sqlite3.Connection) -> CollectionManifest | None:
    """Return the manifest of the snapshot; None if nothing has been indexed."""
    text = get_state(connection, MANIFEST_KEY)
    return CollectionManifest.model_validate_json(text) if text else None


def set_manifest(connection: sqlite3.Connection, manifest: CollectionManifest) -> None:
    """Store the manifest of the snapshot."""
    set_state(connection, MANIFEST_KEY, manifest.model_dump_json(by_alias=True))


def encode_chunk(chunk: Chunk) -> bytes:
    """Return `chunk` as compressed JSON."""
    return zlib.compress(chunk.model_dump_json(by_alias=False).encode(), 1)


def decode_chunk(data: bytes) -> Chunk:
    """Return the chunk that `encode_chunk` encoded."""
    return Chunk.model_validate_json(zlib.decompress(data), by_name=True)


def vector_dimension(connection: sqlite3.Connection) -> int | None:
    """Return the length of the stored vectors; None if there are none."""
    # Each component is a float32, which has 4 bytes.
    row = connection.execute("SELECT length(components) / 4 FROM vector LIMIT 1").fetchone()
    return row[0] if row else None


def select_chunks(
    connection: sqlite3.Connection, condition: str, values: Sequence[object]
) -> list[tuple[int, Chunk]]:
    """Return the chunks that match `condition` with their numbers, sorted by document and position."""
    rows = connection.execute(
        f"SELECT number, content.chunk FROM chunk JOIN content USING (number) WHERE {condition} "
        "ORDER BY source, document_id, position",
        values,
    )
    return [(number, decode_chunk(data)) for number, data in rows.fetchall()]


def placeholders(values: Iterable[object]) -> str:
    """Return `(?, ?, ...)` for `values`."""
    return f"({', '.join('?' for _ in values)})"


def _format_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables. Tables of another version are dropped first.

    The next run then restores the chunks from Milvus Lite.
    """
    with transaction(connection, "IMMEDIATE"):
        if _format_version(connection) == FORMAT_VERSION:
            return  # another process has just created them
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (name,) in tables.fetchall():
            connection.execute(f'DROP TABLE "{name}"')
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
