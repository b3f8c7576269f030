"""Opens collections of each kind of store, reads what they contain, and writes them without sources."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from ingestion.store.catalogue import words_name
from ingestion.store.client import batches, open_milvus, row_pages
from ingestion.store.collection import Collection
from ingestion.store.embedded_collection import EmbeddedCollection
from ingestion.store.manifest import CollectionManifest, expected_manifest
from ingestion.store.milvus_collection import MilvusCollection
from ingestion.store.schema import CHUNK_FIELDS, Vector, searchable_text
from ingestion.store.snapshot import decode_chunk, snapshot_path
from schemas.document import Chunk
from schemas.settings import Settings

Embed = Callable[[list[str]], list[Vector]]

StoreKind = Literal["embedded", "next collection", "in place"]
"""An embedded collection, or a Milvus collection that is written by one of the two Milvus writers."""

Rows = dict[str, dict[str, Any]]
"""Chunks by id."""

HOLD_MILVUS_LITE = """
import sys
from ingestion.store.client import open_milvus
from schemas.settings import read_settings
client = open_milvus(read_settings(milvus_uri=sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""
"""A program that keeps a Milvus Lite file open until its input ends."""


def open_collection(settings: Settings, kind: StoreKind) -> Collection:
    """Open the collection in `settings`. Milvus is Milvus Lite in this process."""
    if kind == "embedded":
        return Collection.connect(settings)
    return MilvusCollection(
        open_milvus(settings),
        settings.collection,
        expected_manifest(settings, "standard"),
        in_place=kind == "in place",
    )


def stored_rows(collection: Collection) -> Rows:
    """Return all fields of every chunk by id, without the fingerprint, which may be that of an older file."""
    if isinstance(collection, EmbeddedCollection):
        with collection._reading() as (connection, _):
            stored = connection.execute("SELECT chunk FROM content").fetchall()
        chunks = [decode_chunk(data) for (data,) in stored]
        return {chunk.id: chunk.model_dump(exclude={"fingerprint"}) for chunk in chunks}
    fields = [name for name in (*CHUNK_FIELDS, "search_text") if name != "fingerprint"]
    return _milvus_rows(collection, collection.alias, fields, "id")


def stored_words(collection: Collection) -> dict[str, int]:
    """Return the vocabulary."""
    if isinstance(collection, EmbeddedCollection):
        with collection._reading() as (connection, _):
            return dict(connection.execute("SELECT word, occurrences FROM word").fetchall())
    fields = ["word", "occurrences"]
    rows = _milvus_rows(collection, words_name(collection.alias), fields, "word")
    return {word: row["occurrences"] for word, row in rows.items()}


def delete_chunks(collection: Collection, *document_ids: str) -> None:
    """Delete the chunks of these documents, or all chunks if none are given, without an ingestion run."""
    if isinstance(collection, EmbeddedCollection):
        for table in ("content", "chunk"):
            condition = (
                f"number IN (SELECT number FROM chunk WHERE {_document_filter(document_ids)})"
            )
            with collection._writing() as connection:
                connection.execute(f"DELETE FROM {table} WHERE {condition}", document_ids)
        return
    assert isinstance(collection, MilvusCollection)
    expression = " or ".join(f'document_id == "{name}"' for name in document_ids)
    collection._client.delete(collection.alias, filter=expression or 'id != ""')
    collection._client.flush(collection.alias)


def collection_names(settings: Settings) -> list[str]:
    """Return the sorted names of the Milvus collections of `settings`; Milvus Lite must be closed."""
    names: list[str] = []
    use_milvus(settings, lambda client: names.extend(client.list_collections()))
    return sorted(name for name in names if name.startswith(settings.collection))


def use_milvus(settings: Settings, use: Callable[[Any], object]) -> None:
    """Call `use` with a client of Milvus Lite."""
    client = open_milvus(settings)
    try:
        use(client)
    finally:
        client.close()
        release_milvus(settings)


@contextmanager
def holding_milvus_lite(settings: Settings) -> Iterator[None]:
    """Keep the Milvus Lite file open in another process within the block."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_MILVUS_LITE, settings.milvus_uri],
        cwd=Path(__file__).resolve().parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "open\n"
        yield
        process.communicate()


def release_milvus(settings: Settings) -> None:
    """Close the file of Milvus Lite, which stays open when a client is closed."""
    from milvus_lite.server_manager import server_manager_instance  # type: ignore[import-untyped]

    server_manager_instance.release_server(settings.milvus_uri)


def record_rows(settings: Settings) -> Rows:
    """Return all fields of every chunk that Milvus Lite has, with its vector if it has one."""
    rows: Rows = {}

    def read(client: Any) -> None:
        if client.has_collection(settings.collection):
            client.load_collection(settings.collection)
            fields = [*CHUNK_FIELDS, *(["dense"] if settings.embedding_model else [])]
            for page in row_pages(client, settings.collection, fields):
                rows.update({row["id"]: dict(row) for row in page})

    use_milvus(settings, read)
    return rows


def snapshot_rows(settings: Settings) -> Rows:
    """Return the rows that Milvus Lite should have according to the snapshot."""
    import numpy as np

    from ingestion.store.snapshot import open_snapshot

    connection = open_snapshot(snapshot_path(settings))
    stored = connection.execute(
        "SELECT chunk, components FROM content LEFT JOIN vector USING (number)"
    ).fetchall()
    connection.close()
    rows: Rows = {}
    for data, components in stored:
        chunk = decode_chunk(data)
        rows[chunk.id] = chunk.model_dump()
        if components is not None:
            rows[chunk.id]["dense"] = np.frombuffer(components, np.float32).tolist()
    return rows


def write(
    collection: Collection,
    chunks: Iterable[Chunk],
    embed: Embed | None = None,
    rebuild: bool = True,
    dropped: Iterable[str] = (),
) -> CollectionManifest:
    """Write `chunks` with the vectors of `embed`. If `rebuild` is true, the collection then has no others."""
    writer = collection.writer(rebuild)
    try:
        for batch in batches(chunks):
            writer.put(batch, embed([searchable_text(chunk) for chunk in batch]) if embed else None)
        manifest = writer.finish(set(dropped))
    except BaseException:
        writer.abandon()
        raise
    collection.load()
    return manifest


def _document_filter(document_ids: tuple[str, ...]) -> str:
    return f"document_id IN ({', '.join('?' * len(document_ids))})" if document_ids else "1"


def _milvus_rows(collection: Collection, name: str, fields: list[str], key: str) -> Rows:
    assert isinstance(collection, MilvusCollection)
    pages = row_pages(collection._client, name, fields)
    return {row[key]: dict(row) for page in pages for row in page}
