"""Tests of Sync on Milvus Lite with both writers: the result never depends on earlier runs."""

import json
import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ingestion.store.aliases import words_name
from ingestion.store.client import BATCH_ROWS, open_milvus, row_pages
from ingestion.store.collection import Collection
from ingestion.store.manifest import (
    SOURCES_PROPERTY,
    expected_manifest,
    write_finished_manifest,
    write_manifest,
)
from ingestion.store.next_collection_writer import NextCollectionWriter
from ingestion.store.schema import CHUNK_FIELDS
from ingestion.sync import ReadOptions, Sync
from schemas.errors import ApideskError, CollectionMismatch, CollectionMissing, DeletionsRefused
from schemas.ingestion import IngestionOptions, SourceReport
from schemas.settings import Settings, read_settings
from schemas.source import MarkdownSourceConfig, OpenApiSourceConfig, SourceLimits

TOPICS = ["签名", "订单发货", "refund", "waybill", "库存", "webhook", "权限包", "rate limit"]

Rows = dict[str, dict[str, object]]


@dataclass
class Bench:
    """A collection and the folders of its sources."""

    collection: Collection
    folder: Path
    sources: list[MarkdownSourceConfig | OpenApiSourceConfig] = field(default_factory=list)

    def source(self, name: str) -> Path:
        """Create a source and return its folder."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        self.sources.append(MarkdownSourceConfig(kind="markdown", name=name, path=folder))
        return folder

    def sync(self, **options: bool) -> dict[str, SourceReport]:
        sync = Sync(
            self.collection,
            None,
            ReadOptions(SourceLimits(), 400),
            IngestionOptions.model_validate(options),
        )
        sync.run(self.sources)
        return {report.name: report for report in sync.reports}

    def rows(self) -> Rows:
        """Every field of every chunk by id, except the fingerprint, which may be of an older file."""
        client, alias = self.collection._client, self.collection._alias
        fields = [name for name in (*CHUNK_FIELDS, "search_text") if name != "fingerprint"]
        return {row["id"]: row for page in row_pages(client, alias, fields) for row in page}

    def words(self) -> dict[str, int]:
        client, alias = self.collection._client, words_name(self.collection._alias)
        pages = row_pages(client, alias, ["word", "occurrences"])
        return {row["word"]: row["occurrences"] for page in pages for row in page}


def open_collection(settings: Settings, in_place: bool) -> Collection:
    client, manifest = open_milvus(settings), expected_manifest(settings, lite=True)
    return Collection(client, settings.collection, manifest, in_place)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "milvus.db"


@pytest.fixture(params=[False, True], ids=["next collection", "in place"])
def bench(request: pytest.FixtureRequest, store: Path, tmp_path: Path) -> Iterator[Bench]:
    settings = read_settings(milvus_uri=str(store), collection=f"c{abs(hash(tmp_path))}")
    collection = open_collection(settings, request.param)
    yield Bench(collection, tmp_path)
    collection.close()


def write_pages(folder: Path, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        write_page(folder, number)


def write_page(folder: Path, number: int, text: str = "") -> None:
    topic = TOPICS[number % len(TOPICS)]
    text = (
        text or f"# {topic} {number}\n\n{topic}的说明。\n\n## Details\n\nCall `do_{number}` twice."
    )
    (folder / f"{number:03}.md").write_text(text, encoding="utf-8")


def counts(report: SourceReport) -> tuple[int, int, int, int]:
    return report.added, report.changed, report.deleted, report.unchanged


def assert_equals_rebuild(bench: Bench) -> None:
    """Assert that a rebuild from the same documents gives the same collection."""
    rows, words, manifest = bench.rows(), bench.words(), bench.collection.manifest
    catalogue = bench.collection.catalogue()
    bench.sync(rebuild=True, allow_deletes=True)
    assert rows == bench.rows()
    assert words == bench.words()
    assert catalogue == bench.collection.catalogue()
    assert manifest == bench.collection.manifest


def test_sync_writes_only_changed_chunks(bench: Bench) -> None:
    folder = bench.source("guides")
    write_pages(folder, 10)
    (report,) = bench.sync().values()
    assert (counts(report), report.written, report.chunks) == ((10, 0, 0, 0), 20, 20)

    (report,) = bench.sync().values()
    assert (counts(report), report.written) == ((0, 0, 0, 10), 0)

    write_page(folder, 3, "# 签名\n\n退货另行处理。\n\n## Details\n\nCall `do_3` twice.")
    write_pages(folder, 1, first=10)
    (folder / "004.md").unlink()
    (report,) = bench.sync().values()
    assert counts(report) == (1, 1, 1, 8)
    assert report.written == 4  # both chunks of page 3 contain the title
    assert not bench.collection.chunks_of_document("004", "guides")
    assert bench.collection.search("退货怎么处理", 1, "full_text")[0].chunk.document_id == "003"
    assert_equals_rebuild(bench)


def test_removed_section_removes_its_chunk(bench: Bench) -> None:
    folder = bench.source("guides")
    write_pages(folder, 4)
    bench.sync()
    write_page(folder, 1, "# 订单发货 1\n\n订单发货的说明。")
    (report,) = bench.sync().values()
    assert (counts(report), report.written) == ((0, 1, 0, 3), 0)
    assert_equals_rebuild(bench)


def test_dry_run_reports_and_writes_nothing(bench: Bench) -> None:
    folder = bench.source("guides")
    write_pages(folder, 10)
    assert counts(bench.sync(dry_run=True)["guides"]) == (10, 0, 0, 0)
    assert not bench.collection.exists()
    bench.sync()
    before = bench.rows(), bench.words()
    write_page(folder, 0, "# new")
    write_page(folder, 1, "new")
    (folder / "009.md").unlink()
    assert counts(bench.sync(dry_run=True)["guides"]) == (0, 1, 2, 7)
    assert (bench.rows(), bench.words()) == before


def test_sources_do_not_affect_each_other(bench: Bench) -> None:
    guides, news = bench.source("guides"), bench.source("news")
    write_pages(guides, 4)
    write_pages(news, 4)
    bench.sync()
    (news / "001.md").unlink()
    reports = bench.sync()
    assert counts(reports["guides"]) == (0, 0, 0, 4)
    assert counts(reports["news"]) == (0, 0, 1, 3)
    assert len(bench.collection.chunks_of_document("001", "guides")) == 2


@pytest.mark.parametrize(("vanished", "deleted"), [(1, 1), (3, 3), (4, 0), (9, 0)])
def test_many_vanished_documents_are_kept(bench: Bench, vanished: int, deleted: int) -> None:
    folder = bench.source("guides")
    write_pages(folder, 10)
    bench.sync()
    before = bench.rows()
    for number in range(vanished):
        (folder / f"{number:03}.md").unlink()

    (report,) = bench.sync().values()

    assert (report.deleted, report.kept) == (deleted, vanished - deleted)
    assert len(bench.rows()) == len(before) - 2 * deleted
    if not deleted:
        assert report.refused == [
            f"{vanished} of 10 documents have vanished and are kept: to delete them, run "
            "`apidesk ingest --allow-deletes`"
        ]
        assert bench.rows() == before
    (report,) = bench.sync(allow_deletes=True).values()
    assert (report.kept, report.refused) == (0, [])
    assert_equals_rebuild(bench)


def test_removed_source_is_kept_without_allow_deletes(bench: Bench) -> None:
    write_pages(bench.source("guides"), 2)
    write_pages(bench.source("news"), 2)
    bench.sync()
    bench.sources = bench.sources[:1]
    assert bench.sync()["news"].kept == 2
    assert bench.sync(allow_deletes=True)["news"].deleted == 2
    assert {row["source"] for row in bench.rows().values()} == {"guides"}
    assert_equals_rebuild(bench)


@pytest.mark.parametrize("allow_deletes", [False, True])
def test_failed_source_deletes_nothing(bench: Bench, allow_deletes: bool) -> None:
    """Whether the whole source is gone or one of its documents cannot be read."""
    folder = bench.source("guides")
    write_pages(folder, 6)
    bench.sync()
    (folder / "001.md").write_bytes(b"\xff")
    (folder / "002.md").unlink()
    write_page(folder, 3, "# 库存\n\n新的说明。")
    (report,) = bench.sync(allow_deletes=allow_deletes).values()
    assert (report.changed, report.deleted, report.kept) == (1, 0, 2)
    assert report.refused == ["001.md: not UTF-8 (byte 0)"]
    assert len(bench.collection.chunks_of_document("001", "guides")) == 2
    assert len(bench.collection.chunks_of_document("003", "guides")) == 1

    before = bench.rows()
    folder.rename(folder.with_name("moved"))
    (report,) = bench.sync(allow_deletes=allow_deletes).values()
    assert (report.deleted, report.kept) == (0, 6)
    assert report.refused == ["guides: no such folder"]
    assert bench.rows() == before


def test_rebuild_that_would_lose_unread_documents_is_refused(bench: Bench) -> None:
    folder = bench.source("guides")
    write_pages(folder, 6)
    bench.sync()
    before = bench.rows()
    (folder / "001.md").write_bytes(b"\xff")
    with pytest.raises(DeletionsRefused, match=r"\(1 of guides\); the collection is unchanged"):
        bench.sync(rebuild=True)
    assert bench.rows() == before
    bench.sync(rebuild=True, allow_deletes=True)
    assert len(bench.rows()) == 10


def test_sources_without_documents_are_an_error(bench: Bench) -> None:
    folder = bench.source("guides")
    write_page(folder, 0)
    (folder / "001.md").write_text("# only a heading")
    bench.sync()
    (folder / "000.md").unlink()
    with pytest.raises(CollectionMissing, match="the sources hold no document"):
        bench.sync(allow_deletes=True)
    assert len(bench.rows()) == 2


def test_manifest_mismatch_requires_a_rebuild(bench: Bench) -> None:
    write_pages(bench.source("guides"), 3)
    bench.sync()
    bench.collection._expected = bench.collection._expected.model_copy(update={"chunker": "9/400"})
    with pytest.raises(CollectionMismatch, match="run `apidesk ingest --rebuild` to rebuild it"):
        bench.sync()
    (report,) = bench.sync(rebuild=True).values()
    assert report.written == 6


@pytest.mark.parametrize("name", ["000", "002"], ids=["before", "behind"])
def test_duplicate_document_id_never_replaces_the_first(bench: Bench, name: str) -> None:
    folder = bench.source("guides")
    write_page(folder, 1)
    (folder / f"{name}.md").write_text("# other\n\nother")
    bench.sync()
    twin = folder / "001.mdx"
    twin.write_text("# twin\n\ntwin")
    for _ in range(2):
        (report,) = bench.sync().values()
        assert report.refused == ["duplicate document id 001: the first document is kept"]
        assert (report.unchanged, report.changed) == (2, 0)
    assert_equals_rebuild(bench)


@dataclass(frozen=True)
class Change:
    """A change between two runs, and whether the source must be read because of it."""

    what: str
    make: Callable[[Bench], object]
    compared: bool


def rewrite(path: Path, old: str, new: str) -> None:
    """Write other bytes of the same size with the same modification time."""
    date = path.stat().st_mtime_ns
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    os.utime(path, ns=(date, date))


def with_profile(bench: Bench, **fields: object) -> None:
    bench.sources[0] = bench.sources[0].model_copy(update=fields)


def write_property(bench: Bench, name: str, value: str) -> None:
    collection = bench.collection
    collection._client.alter_collection_properties(collection._alias, properties={name: value})


def write_as_another_version(bench: Bench) -> None:
    client, alias = bench.collection._client, bench.collection._alias
    write_finished_manifest(client, alias, bench.collection.manifest)


def interrupt_write(bench: Bench) -> None:
    client, alias = bench.collection._client, bench.collection._alias
    incomplete = bench.collection.manifest.model_copy(update={"incomplete": True})
    write_manifest(client, alias, incomplete)


CHANGES = [
    Change("nothing", lambda b: None, False),
    Change("a date", lambda b: os.utime(b.folder / "guides/001.md", (0, 0)), False),
    Change(
        "the folder",
        lambda b: with_profile(b, path=(b.folder / "guides").rename(b.folder / "moved")),
        False,
    ),
    Change("another source", lambda b: write_page(b.folder / "other", 7), False),
    Change("a byte", lambda b: rewrite(b.folder / "guides/001.md", "twice", "often"), True),
    Change("front matter", lambda b: rewrite(b.folder / "guides/000.md", "v: 1", "v: 2"), True),
    Change("a deletion", lambda b: (b.folder / "guides/001.md").unlink(), True),
    Change(
        "a name",
        lambda b: (b.folder / "guides/001.md").rename(b.folder / "guides/009.md"),
        True,
    ),
    Change("a page", lambda b: write_page(b.folder / "guides", 8), True),
    Change("an empty page", lambda b: (b.folder / "guides/8.md").write_text(""), True),
    Change("a broken page", lambda b: (b.folder / "guides/8.md").write_bytes(b"\xff"), True),
    Change("a template", lambda b: with_profile(b, page_url=("https://x.y/{path}",)), True),
    Change("metadata", lambda b: with_profile(b, metadata={"version": "v"}), True),
    Change("another writer", write_as_another_version, True),
    Change("an unfinished run", interrupt_write, True),
    Change("another format", lambda b: write_property(b, SOURCES_PROPERTY, '{"sources": 3}'), True),
]


@pytest.mark.parametrize("bench", [True], indirect=True, ids=["in place"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.what)
def test_source_is_read_if_it_may_have_changed(bench: Bench, change: Change) -> None:
    folder = bench.source("guides")
    write_pages(folder, 5)
    write_page(folder, 0, "---\nv: 1\n---\n# page\n\ntext\n\n## more\n\ntext")
    write_pages(bench.source("other"), 2)
    bench.sync()
    bench.collection._client.delete(bench.collection._alias, filter='document_id == "004"')

    change.make(bench)
    report = bench.sync()[
        "guides"
    ]  # a run that reads the source writes the chunk deleted from the store
    assert ("004" in {row["document_id"] for row in bench.rows().values()}) is change.compared
    assert (report.added > 0) is change.compared
    assert change.compared or counts(report) == (0, 0, 0, 5)


def test_source_with_a_refused_page_is_read_every_time(bench: Bench) -> None:
    folder = bench.source("guides")
    write_pages(folder, 3)
    (folder / "broken.md").write_bytes(b"\xff")
    for unchanged in (0, 3, 3):
        (report,) = bench.sync().values()
        assert (report.unchanged, report.refused) == (unchanged, ["broken.md: not UTF-8 (byte 0)"])


def test_skipped_source_has_the_same_report_as_a_read_one(bench: Bench) -> None:
    folder = bench.source("guides")
    write_pages(folder, 3)
    (folder / "empty.md").write_text("")
    bench.sync()
    passed_over = bench.sync()
    assert passed_over == bench.sync(dry_run=True)
    write_as_another_version(bench)
    assert passed_over == bench.sync()


@pytest.mark.parametrize("bench", [True], indirect=True, ids=["in place"])
def test_new_reader_version_reads_the_source_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pages(bench.source("guides"), 3)
    bench.sync()
    bench.collection._client.delete(bench.collection._alias, filter='document_id == "002"')
    monkeypatch.setattr("ingestion.sources.folder.READER_VERSION", 0)
    assert bench.sync()["guides"].added == 1


def test_lost_collection_is_rebuilt(bench: Bench) -> None:
    write_pages(bench.source("guides"), 3)
    bench.sync()
    bench.collection._client.delete(bench.collection._alias, filter='id != ""')
    bench.collection._client.flush(bench.collection._alias)
    assert bench.sync()["guides"].added == 3


@pytest.mark.parametrize("bench", [True], indirect=True, ids=["in place"])
def test_openapi_description_is_read_again_if_a_referenced_file_changes(bench: Bench) -> None:
    described = {"openapi": "3.1.0", "info": {"title": "A", "version": "1"}}
    operation = {"summary": "Pick up", "responses": {}}
    described["paths"] = {"/pickups": {"$ref": "pickups.json"}}
    (bench.folder / "openapi.json").write_text(json.dumps(described))
    bench.sources.append(
        OpenApiSourceConfig(kind="openapi", name="api", path=bench.folder / "openapi.json")
    )
    for summary, expected in (("Pick up", (1, 0)), ("Pick up", (0, 0)), ("Collect", (0, 1))):
        item = {"post": operation | {"summary": summary}}
        (bench.folder / "pickups.json").write_text(json.dumps(item))
        report = bench.sync()["api"]
        assert (report.added, report.changed) == expected


def test_error_names_the_reason_why_nothing_was_indexed(bench: Bench) -> None:
    folder = bench.source("guides")
    for number in range(3):
        (folder / f"{number}.md").write_bytes(b"\xff")
    words = r"hold no document: guides: 0\.md: not UTF-8 \(byte 0\) \(and 2 more\)"
    with pytest.raises(CollectionMissing, match=words):
        bench.sync()


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_give_the_same_result_as_a_rebuild(bench: Bench, seed: int) -> None:
    """Documents are added, edited and deleted, and runs are interrupted, at random."""
    chance = random.Random(seed)
    folders = [bench.source("guides"), bench.source("news")]
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
            stop_half_way(bench, chance.randrange(20))
        bench.sync(allow_deletes=True)
    assert_equals_rebuild(bench)


def stop_half_way(bench: Bench, steps: int) -> None:
    """Run until the `steps`-th document, then fail."""
    left = [steps]

    def step() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise ApideskError("half way")

    sync = Sync(bench.collection, None, ReadOptions(SourceLimits(), 400), IngestionOptions(), step)
    try:
        sync.run(bench.sources)
    except ApideskError:
        if bench.collection.exists():
            bench.collection.load()


def test_searches_work_during_a_rebuild(bench: Bench) -> None:
    write_pages(bench.source("guides"), 60)
    bench.sync()
    over, missed, asked = threading.Event(), list[object](), [0]

    def ask() -> None:
        while not over.is_set():
            try:
                found = bench.collection.search("`do_33` twice", 3, "full_text")
                counted = bench.collection.word_counts(["twice"])
            except Exception as error:
                missed.append(error)
            else:
                if len(found) < 3 or counted != {"twice": 60}:
                    missed.append((found, counted))
            asked[0] += 1

    asker = threading.Thread(target=ask)
    asker.start()
    for _ in range(3):
        bench.sync(rebuild=True)
    over.set()
    asker.join()
    assert not missed
    assert asked[0] > 10


def test_next_run_drops_leftovers_of_a_dead_run(bench: Bench) -> None:
    write_pages(bench.source("guides"), 3)
    bench.sync()
    collection = bench.collection
    dead = NextCollectionWriter(collection._client, collection._alias, collection._expected, None)
    dead.put(collection.chunks_of_document("001", "guides") * BATCH_ROWS, None)
    assert len(collections_of(bench)) == 4
    bench.sync()
    assert len(collections_of(bench)) == 3


def collections_of(bench: Bench) -> list[str]:
    collection = bench.collection
    return [n for n in collection._client.list_collections() if collection._alias in n]
