"""Tests of the snapshot of an embedded collection: readers, writers, postings and damaged files."""

import asyncio
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from ingestion.store.collection import Collection
from ingestion.store.embedded_collection import EmbeddedCollection
from ingestion.store.lite_copy import LiteCopy
from ingestion.store.manifest import RouteCalibration
from ingestion.store.schema import chunk_words, indexed_terms
from ingestion.store.snapshot import decode_chunk, snapshot_errors, snapshot_path
from schemas.errors import ConfigurationError, StoreLocked, StoreUnavailable
from schemas.question import Filters
from schemas.settings import Settings, read_settings
from tests.chunks import page
from tests.collections import holding_milvus_lite, record_rows, snapshot_rows, write

WRITE_ONE_PAGE = """
import sys
from schemas.settings import read_settings
from ingestion.store.collection import Collection
from tests.collections import write
from tests.chunks import page
collection = Collection.connect(read_settings(milvus_uri=sys.argv[1]))
write(collection, page(sys.argv[2], sys.argv[3]), rebuild=False)
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings(milvus_uri=str(tmp_path / "milvus.db"))


@pytest.fixture
def collection(settings: Settings) -> Iterator[Collection]:
    collection = Collection.connect(settings)
    yield collection
    collection.close()


def run_python(program: str, *args: str) -> None:
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", program, *args], cwd=root, check=True, timeout=60)


def connection_of(collection: Collection) -> sqlite3.Connection:
    assert isinstance(collection, EmbeddedCollection)
    return collection._connection


@pytest.mark.acceptance
def test_reader_sees_the_run_of_another_process(collection: Collection, settings: Settings) -> None:
    write(collection, page("old", "A horse."))
    version = collection.manifest.rows
    run_python(WRITE_ONE_PAGE, settings.milvus_uri, "new", "A zebra.")
    assert collection.manifest.rows == version + 1
    found = collection.search("zebra", 3)
    assert [hit.chunk.document_id for hit in found] == ["new"]
    assert collection.word_counts(["zebra", "horse"]) == {"zebra": 1, "horse": 1}
    assert [entry.document_id for entry in collection.catalogue()] == ["new", "old"]


def test_reader_sees_the_calibration_that_follows_a_run(
    collection: Collection, settings: Settings
) -> None:
    write(collection, page("old", "A horse."))
    reader = Collection.connect(settings)
    assert reader.manifest.calibration is None
    calibration = RouteCalibration(full_text=0.5, dense=0.25, rows=1)
    collection.save_calibration(calibration)
    assert reader.manifest.calibration == collection.manifest.calibration == calibration
    reader.close()


@pytest.mark.acceptance
def test_filters_take_bounded_memory(collection: Collection) -> None:
    write(collection, page("ship", "How to ship."))

    def search(number: int) -> None:
        collection.search_hits("ship", 1, filters=Filters(metadata={"version": str(number)}))

    search(0)
    tracemalloc.start()
    for number in range(2_000):
        search(number)
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert allocated < 200_000


@pytest.mark.acceptance
def test_reader_needs_no_milvus_lite(collection: Collection, settings: Settings) -> None:
    write(collection, page("a", "A horse."))
    with holding_milvus_lite(settings):
        reader = Collection.connect(settings)
        reader.load()
        assert [hit.chunk.body for hit in reader.search("horse", 1)] == ["A horse."]
        reader.close()


def test_readers_see_the_old_state_until_a_run_ends(
    collection: Collection, settings: Settings
) -> None:
    write(collection, page("old", "A horse."))
    reader = Collection.connect(settings)
    writer = collection.writer(rebuild=True)
    writer.put(page("new", "A zebra."), None)
    for reading in (reader, collection):
        assert [hit.chunk.document_id for hit in reading.search("horse zebra", 3)] == ["old"]
    writer.finish(set())
    for reading in (reader, collection):
        assert [hit.chunk.document_id for hit in reading.search("horse zebra", 3)] == ["new"]
    reader.close()


def test_abandoned_run_changes_nothing(collection: Collection) -> None:
    write(collection, page("old", "A horse."))
    writer = collection.writer(rebuild=False)
    writer.put(page("new", "A zebra."), None)
    writer.abandon()
    assert [entry.document_id for entry in collection.catalogue()] == ["old"]
    write(collection, page("newer", "A zebra."), rebuild=False)  # the transaction has ended


@pytest.mark.acceptance
def test_random_writes_leave_the_postings_of_a_rebuild(
    collection: Collection, settings: Settings
) -> None:
    """Chunks are added, replaced and deleted at random; numbers of deleted chunks are used again."""
    chance = random.Random(7)
    words = ["签名", "订单", "refund", "waybill", "库存", "webhook", "token", "limit"]
    largest = 0
    for _ in range(12):
        pages = [
            page(str(number), *(" ".join(chance.choices(words, k=9)) for _ in range(3)))
            for number in chance.sample(range(12), 4)
        ]
        stored = [chunk.id for chunk in collection.sample(100)] if collection.exists() else []
        written = {chunk.id for chunks in pages for chunk in chunks}
        dropped = set(chance.sample(stored, len(stored) // 3)) - written
        write(collection, chain.from_iterable(pages), rebuild=False, dropped=dropped)
        largest = max(largest, collection.manifest.rows)
    rows = connection_of(collection).execute("SELECT number, chunk FROM content").fetchall()
    expected: dict[str, dict[int, int]] = {}
    for number, data in rows:
        chunk = decode_chunk(data)
        for term in indexed_terms(chunk, chunk_words(chunk)):
            counts = expected.setdefault(term, {})
            counts[number] = counts.get(number, 0) + 1
    assert postings_of(collection) == expected
    assert max(number for number, _ in rows) < largest + 12  # a run deletes after it has written
    assert record_rows(settings) == snapshot_rows(settings)


def postings_of(collection: Collection) -> dict[str, dict[int, int]]:
    """The number of occurrences of each term by chunk number; numbers must ascend."""
    found = {}
    rows = connection_of(collection).execute("SELECT term, chunks, counts FROM posting")
    for term, chunks, counts in rows:
        numbers = np.frombuffer(chunks, "<u4").tolist()
        assert numbers == sorted(set(numbers))
        found[term] = dict(zip(numbers, np.frombuffer(counts, "<u2").tolist(), strict=True))
    return found


def test_numbers_of_deleted_chunks_are_used_again(collection: Collection) -> None:
    first = [*page("a", "一"), *page("b", "二"), *page("c", "三")]
    write(collection, first)
    write(collection, [], rebuild=False, dropped=[first[1].id])
    write(collection, page("d", "四", "五"), rebuild=False)
    numbers = dict(connection_of(collection).execute("SELECT document_id, number FROM chunk"))
    assert sorted(numbers.values()) == [0, 2, 3]
    found = collection.search("二", 3)
    assert found == []


def test_unreadable_snapshot_is_named_in_one_sentence(settings: Settings) -> None:
    snapshot_path(settings).write_bytes(b"this is not a database " * 500)
    with pytest.raises(StoreUnavailable) as raised:
        Collection.connect(settings)
    assert str(raised.value) == (
        f"{snapshot_path(settings)} cannot be used: it is damaged; delete it and run `apidesk ingest`"
    )


def test_damaged_snapshot_is_named_in_one_sentence(
    collection: Collection, settings: Settings
) -> None:
    write(collection, (chunk for n in range(200) for chunk in page(str(n), f"订单 {n} " * 30)))
    collection.close()
    path = snapshot_path(settings)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(random.Random(1).randbytes(size - 4096))
    damaged = Collection.connect(settings)
    with pytest.raises(StoreUnavailable, match=r"it is damaged; delete it and run") as raised:
        damaged.load()
    assert "\n" not in str(raised.value)
    damaged.close()


@contextmanager
def full_disk(path: Path) -> Iterator[None]:
    """Let no file of this process grow beyond the size of `path`."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_full_disk_is_named_and_keeps_the_previous_state(
    collection: Collection, settings: Settings
) -> None:
    write(collection, page("a", "退款"))
    chunks = [chunk for n in range(200) for chunk in page(str(n), f"订单 {n} " * 30)]
    with full_disk(snapshot_path(settings)), pytest.raises(StoreUnavailable) as raised:
        write(collection, chunks)
    assert str(raised.value) == (
        f"{snapshot_path(settings)} cannot be used: no space is left on its disk, or the disk is failing"
    )
    assert [hit.chunk.document_id for hit in collection.search("退款", 3)] == ["a"]
    write(collection, chunks)
    assert len(snapshot_rows(settings)) == 200


def test_read_only_snapshot_is_named(collection: Collection, settings: Settings) -> None:
    write(collection, page("a", "退款"))
    collection.close()
    with closing(sqlite3.connect(snapshot_path(settings))) as connection:
        connection.execute("PRAGMA query_only = 1")
        with (
            pytest.raises(
                StoreUnavailable, match="cannot be used: it cannot be written: check its"
            ),
            snapshot_errors(snapshot_path(settings)),
        ):
            connection.execute("DELETE FROM state")


def test_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = read_settings(milvus_uri=str(tmp_path / "file" / "milvus.db"))
    with pytest.raises(ConfigurationError, match=r"APIDESK_MILVUS_URI: .*file"):
        Collection.connect(settings)


def test_file_that_is_not_milvus_lite_is_named_by_a_run(settings: Settings) -> None:
    Path(settings.milvus_uri).write_text("not a store")
    collection = Collection.connect(settings)
    with pytest.raises(StoreLocked, match=r"milvus\.db is in use .* or is not a Milvus Lite file"):
        collection.recover(rebuild=False)
    collection.close()


def test_chunks_are_stored_as_plain_columns_and_json(collection: Collection) -> None:
    """The columns that filters use have the same values as the chunk."""
    chunks = page("a", "订单", metadata={"版本": "v'1\""}, api_name="下单", api_url="/order")
    write(collection, chunks)
    query = (
        "SELECT id, source, document_id, position, language, api_name, api_url, metadata FROM chunk"
    )
    rows = connection_of(collection).execute(query).fetchall()
    assert [(*row[:-1], json.loads(row[-1])) for row in rows] == [
        (c.id, c.source, c.document_id, c.position, c.language, c.api_name, c.api_url, c.metadata)
        for c in chunks
    ]


def test_state_of_the_record_is_not_read_by_questions(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(collection, page("a", "订单"), None)

    def refuse(self: LiteCopy) -> None:
        raise AssertionError("Milvus Lite was opened")

    monkeypatch.setattr(LiteCopy, "_open", refuse)
    collection.load()
    (chunk,) = collection.chunks_of_document("a", "guides")
    assert [hit.chunk for hit in collection.search("订单", 2)] == [chunk]


def test_event_loop_runs_while_a_thread_uses_the_collection(collection: Collection) -> None:
    write(collection, page("a", "text"))
    holding, release = Event(), Event()
    was_released: list[bool] = []

    def hold() -> None:
        assert isinstance(collection, EmbeddedCollection)
        with collection._lock:
            holding.set()
            was_released.append(release.wait(10))

    async def read() -> list[str]:
        thread = Thread(target=hold)
        thread.start()
        await asyncio.to_thread(holding.wait, 10)
        reading = asyncio.create_task(collection.run(lambda: collection.sample(1)))
        await asyncio.sleep(0)
        release.set()
        found = await reading
        await asyncio.to_thread(thread.join, 10)
        return [chunk.document_id for chunk in found]

    assert asyncio.run(read()) == ["a"]
    assert was_released == [True]


@pytest.mark.acceptance
def test_reads_return_what_another_process_wrote(
    collection: Collection, settings: Settings
) -> None:
    write(collection, page("a", "old text"))
    (before,) = collection.chunks_of_documents([("guides", "a")])
    run_python(WRITE_ONE_PAGE, settings.milvus_uri, "a", "new text")
    (after,) = collection.chunks_of_documents([("guides", "a")])
    assert (before.body, after.body) == ("old text", "new text")
