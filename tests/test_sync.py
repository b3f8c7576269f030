"""Sync, on a real Milvus Lite, by both writers: whatever happened before, the end is the same."""

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
    """A collection, and folders of pages that it is to be in step with."""

    collection: Collection
    folder: Path
    sources: list[MarkdownSourceConfig | OpenApiSourceConfig] = field(default_factory=list)

    def source(self, name: str) -> Path:
        """A new source's folder."""
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
        """Every field of every chunk, by id; but what file it was read from, which may be an older one."""
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


@pytest.fixture(params=[False, True], ids=["beside", "in place"])
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


def assert_in_step(bench: Bench) -> None:
    """The collection is what a rebuild from the same documents would make it."""
    rows, words, manifest = bench.rows(), bench.words(), bench.collection.manifest
    catalogue = bench.collection.catalogue()
    bench.sync(rebuild=True, allow_deletes=True)
    assert rows == bench.rows()
    assert words == bench.words()
    assert catalogue == bench.collection.catalogue()
    assert manifest == bench.collection.manifest


def test_a_change_is_all_that_is_written(bench: Bench) -> None:
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
    assert report.written == 4  # the title stands in both chunks of page 3
    assert not bench.collection.chunks_of_document("004", "guides")
    assert bench.collection.search("退货怎么处理", 1, "full_text")[0].chunk.document_id == "003"
    assert_in_step(bench)


def test_a_section_that_is_gone_takes_its_chunk_along(bench: Bench) -> None:
    folder = bench.source("guides")
    write_pages(folder, 4)
    bench.sync()
    write_page(folder, 1, "# 订单发货 1\n\n订单发货的说明。")
    (report,) = bench.sync().values()
    assert (counts(report), report.written) == ((0, 1, 0, 3), 0)
    assert_in_step(bench)


def test_a_dry_run_counts_and_writes_nothing(bench: Bench) -> None:
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


def test_a_source_leaves_the_others_alone(bench: Bench) -> None:
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
def test_what_vanishes_in_numbers_is_kept(bench: Bench, vanished: int, deleted: int) -> None:
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
    assert_in_step(bench)


def test_a_source_that_is_named_no_more_is_kept_until_that_is_meant(bench: Bench) -> None:
    write_pages(bench.source("guides"), 2)
    write_pages(bench.source("news"), 2)
    bench.sync()
    bench.sources = bench.sources[:1]
    assert bench.sync()["news"].kept == 2
    assert bench.sync(allow_deletes=True)["news"].deleted == 2
    assert {row["source"] for row in bench.rows().values()} == {"guides"}
    assert_in_step(bench)


@pytest.mark.parametrize("allow_deletes", [False, True])
def test_a_source_that_fails_deletes_nothing(bench: Bench, allow_deletes: bool) -> None:
    """Neither when it is gone as a whole nor when one of its documents cannot be read."""
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


def test_a_rebuild_does_not_lose_what_could_not_be_read(bench: Bench) -> None:
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


def test_no_document_at_all_is_an_error(bench: Bench) -> None:
    folder = bench.source("guides")
    write_page(folder, 0)
    (folder / "001.md").write_text("# only a heading")
    bench.sync()
    (folder / "000.md").unlink()
    with pytest.raises(CollectionMissing, match="the sources hold no document"):
        bench.sync(allow_deletes=True)
    assert len(bench.rows()) == 2


def test_another_contract_wants_a_rebuild(bench: Bench) -> None:
    write_pages(bench.source("guides"), 3)
    bench.sync()
    bench.collection._expected = bench.collection._expected.model_copy(update={"chunker": "9/400"})
    with pytest.raises(CollectionMismatch, match="run `apidesk ingest --rebuild` to rebuild it"):
        bench.sync()
    (report,) = bench.sync(rebuild=True).values()
    assert report.written == 6


@pytest.mark.parametrize("name", ["000", "002"], ids=["before", "behind"])
def test_a_second_document_of_one_id_never_takes_the_place_of_the_first(
    bench: Bench, name: str
) -> None:
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
    assert_in_step(bench)


@dataclass(frozen=True)
class Change:
    """What may happen between two runs, and whether the source has to be compared then."""

    what: str
    make: Callable[[Bench], object]
    compared: bool


def rewrite(path: Path, old: str, new: str) -> None:
    """Other bytes, the same size, the same date."""
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


def die_while_writing(bench: Bench) -> None:
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
    Change("an unfinished run", die_while_writing, True),
    Change("another format", lambda b: write_property(b, SOURCES_PROPERTY, '{"sources": 3}'), True),
]


@pytest.mark.parametrize("bench", [True], indirect=True, ids=["in place"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.what)
def test_a_source_is_compared_when_anything_of_it_may_have_changed(
    bench: Bench, change: Change
) -> None:
    folder = bench.source("guides")
    write_pages(folder, 5)
    write_page(folder, 0, "---\nv: 1\n---\n# page\n\ntext\n\n## more\n\ntext")
    write_pages(bench.source("other"), 2)
    bench.sync()
    bench.collection._client.delete(bench.collection._alias, filter='document_id == "004"')

    change.make(bench)
    report = bench.sync()["guides"]  # who compares misses the page that was deleted behind its back
    assert ("004" in {row["document_id"] for row in bench.rows().values()}) is change.compared
    assert (report.added > 0) is change.compared
    assert change.compared or counts(report) == (0, 0, 0, 5)


def test_a_source_with_a_broken_page_is_compared_each_time(bench: Bench) -> None:
    folder = bench.source("guides")
    write_pages(folder, 3)
    (folder / "broken.md").write_bytes(b"\xff")
    for unchanged in (0, 3, 3):
        (report,) = bench.sync().values()
        assert (report.unchanged, report.refused) == (unchanged, ["broken.md: not UTF-8 (byte 0)"])


def test_what_is_passed_over_is_reported_as_what_is_compared(bench: Bench) -> None:
    folder = bench.source("guides")
    write_pages(folder, 3)
    (folder / "empty.md").write_text("")
    bench.sync()
    passed_over = bench.sync()
    assert passed_over == bench.sync(dry_run=True)
    write_as_another_version(bench)
    assert passed_over == bench.sync()


@pytest.mark.parametrize("bench", [True], indirect=True, ids=["in place"])
def test_a_reader_of_another_version_reads_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pages(bench.source("guides"), 3)
    bench.sync()
    bench.collection._client.delete(bench.collection._alias, filter='document_id == "002"')
    monkeypatch.setattr("ingestion.sources.folder.READER_VERSION", 0)
    assert bench.sync()["guides"].added == 1


def test_a_lost_collection_is_written_again(bench: Bench) -> None:
    write_pages(bench.source("guides"), 3)
    bench.sync()
    bench.collection._client.delete(bench.collection._alias, filter='id != ""')
    bench.collection._client.flush(bench.collection._alias)
    assert bench.sync()["guides"].added == 3


@pytest.mark.parametrize("bench", [True], indirect=True, ids=["in place"])
def test_a_description_is_read_with_what_it_refers_to(bench: Bench) -> None:
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


def test_why_nothing_could_be_indexed_is_said(bench: Bench) -> None:
    folder = bench.source("guides")
    for number in range(3):
        (folder / f"{number}.md").write_bytes(b"\xff")
    words = r"hold no document: guides: 0\.md: not UTF-8 \(byte 0\) \(and 2 more\)"
    with pytest.raises(CollectionMissing, match=words):
        bench.sync()


@pytest.mark.parametrize("seed", range(3))
def test_after_any_changes_the_end_is_the_same(bench: Bench, seed: int) -> None:
    """Adding, editing, deleting and stopping half way, at random."""
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
    assert_in_step(bench)


def stop_half_way(bench: Bench, steps: int) -> None:
    """A run that fails at its `steps`-th document, after what it had written by then."""
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


def test_questions_are_answered_throughout_a_rebuild(bench: Bench) -> None:
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


def test_what_a_dead_run_left_is_cleaned_up(bench: Bench) -> None:
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
