"""Sync on every kind of store: the result never depends on earlier, interrupted or concurrent runs."""

import random
import threading

import pytest

from ingestion.source_reading import ReadOptions
from ingestion.store.client import BATCH_ROWS
from ingestion.store.milvus_writers import NextCollectionWriter
from ingestion.sync import Sync
from schemas.errors import ApideskError
from schemas.ingestion import IngestionOptions
from schemas.platform import SourceLimits
from tests.collections import collection_names, delete_chunks
from tests.sync_harness import (
    TOPICS,
    SyncHarness,
    assert_equals_rebuild,
    collections_of,
    counts,
    only_embedded,
    only_milvus,
    write_page,
    write_pages,
)

pytestmark = pytest.mark.acceptance


def test_removed_section_removes_its_chunk(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_pages(folder, 4)
    harness.sync()
    write_page(folder, 1, "# 订单发货 1\n\n订单发货的说明。")
    (report,) = harness.sync().values()
    assert (counts(report), report.written) == ((0, 1, 0, 3), 0)
    assert_equals_rebuild(harness)


@only_milvus
def test_lost_collection_is_rebuilt(harness: SyncHarness) -> None:
    write_pages(harness.source("guides"), 3)
    harness.sync()
    delete_chunks(harness.collection)
    assert harness.sync()["guides"].added == 3


@pytest.mark.parametrize(
    "seed",
    [0, *(pytest.param(seed, marks=pytest.mark.acceptance) for seed in (1, 2))],
)
def test_random_changes_give_the_same_result_as_a_rebuild(harness: SyncHarness, seed: int) -> None:
    """Documents are added, edited and deleted, and runs are interrupted, at random."""
    chance = random.Random(seed)
    folders = [harness.source("guides"), harness.source("news")]
    for folder in folders:
        write_pages(folder, 12)
    for _ in range(4):
        for folder in folders:
            for number in chance.sample(range(16), 5):
                path = folder / f"{number:03}.md"
                if path.exists() and chance.random() < 0.3:
                    path.unlink()
                else:
                    heads = "\n\n".join(
                        f"## {chance.choice(TOPICS)}\n\n{chance.random()}" for _ in range(3)
                    )
                    write_page(folder, number, f"# {chance.choice(TOPICS)}\n\n{heads}")
        if chance.random() < 0.5:
            stop_half_way(harness, chance.randrange(20))
        harness.sync(allow_deletes=True)
    assert_equals_rebuild(harness)


def stop_half_way(harness: SyncHarness, steps: int) -> None:
    """Run until the `steps`-th document, then fail."""
    left = [steps]

    def step() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise ApideskError("half way")

    sync = Sync(
        harness.collection, None, ReadOptions(SourceLimits(), 400), IngestionOptions(), step
    )
    try:
        sync.run(harness.sources)
    except ApideskError:
        if harness.collection.exists():
            harness.collection.load()


def test_searches_work_during_a_rebuild(harness: SyncHarness) -> None:
    write_pages(harness.source("guides"), 60)
    harness.sync()
    over, missed, asked = threading.Event(), list[object](), [0]

    def ask() -> None:
        while not over.is_set():
            try:
                found = harness.collection.search("`do_33` twice", 3)
                counted = harness.collection.word_counts(["twice"])
            except Exception as error:
                missed.append(error)
            else:
                if len(found) < 3 or counted != {"twice": 60}:
                    missed.append((found, counted))
            asked[0] += 1
            over.wait(0.01)

    asker = threading.Thread(target=ask)
    asker.start()
    for _ in range(3):
        harness.sync(rebuild=True)
    over.set()
    asker.join()
    assert not missed
    assert asked[0] > 10


@only_milvus
def test_next_run_drops_leftovers_of_a_dead_run(harness: SyncHarness) -> None:
    write_pages(harness.source("guides"), 3)
    harness.sync()
    collection = harness.milvus
    dead = NextCollectionWriter(collection._client, collection.alias, collection._expected, None)
    dead.put(collection.chunks_of_document("001", "guides") * BATCH_ROWS, None)
    assert len(collections_of(harness)) == 4
    harness.sync()
    assert len(collections_of(harness)) == 3


@only_embedded
def test_milvus_lite_keeps_one_collection(harness: SyncHarness) -> None:
    write_pages(harness.source("guides"), 3)
    harness.sync()
    (name,) = collection_names(harness.settings)
    write_pages(harness.folder / "guides", 1, first=3)
    harness.sync()
    assert collection_names(harness.settings) == [name]
    harness.sync(rebuild=True)
    (replaced,) = collection_names(harness.settings)
    assert replaced != name
