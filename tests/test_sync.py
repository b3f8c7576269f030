"""Tests of Sync on every kind of store: the result never depends on earlier runs."""

import json
import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from ingestion import worker_processes
from ingestion.chunking import chunk_document
from ingestion.embeddings import ChunkEmbedder, open_embeddings
from ingestion.sources.markdown import READER
from ingestion.store.client import BATCH_ROWS
from ingestion.store.collection import Collection
from ingestion.store.embedded_collection import EmbeddedCollection
from ingestion.store.manifest import SOURCES_PROPERTY, write_finished_manifest, write_manifest
from ingestion.store.milvus_collection import MilvusCollection
from ingestion.store.milvus_writers import NextCollectionWriter
from ingestion.store.snapshot import SOURCES_KEY, set_state
from ingestion.sync import ReadOptions, Sync
from schemas.errors import ApideskError, CollectionMismatch, CollectionMissing, DeletionsRefused
from schemas.ingestion import IngestionOptions, SourceReport
from schemas.platform import MarkdownSourceConfig, OpenApiSourceConfig, SourceLimits
from schemas.settings import Settings, read_settings
from tests.collections import (
    STORE_KINDS,
    Rows,
    StoreKind,
    collection_names,
    delete_chunks,
    open_collection,
    record_rows,
    snapshot_rows,
    stored_rows,
    stored_words,
)
from tests.model_server import ModelServer
from tests.test_api_pages import SEVERAL

TOPICS = ["签名", "订单发货", "refund", "waybill", "库存", "webhook", "权限包", "rate limit"]


@dataclass
class SyncHarness:
    """A collection and the folders of its sources."""

    collection: Collection
    folder: Path
    settings: Settings
    sources: list[MarkdownSourceConfig | OpenApiSourceConfig] = field(default_factory=list)
    limits: SourceLimits = field(default_factory=SourceLimits)
    embedder: ChunkEmbedder | None = None

    def source(self, name: str) -> Path:
        """Create a source and return its folder."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        self.sources.append(MarkdownSourceConfig(kind="markdown", name=name, path=folder))
        return folder

    def sync(self, **options: bool) -> dict[str, SourceReport]:
        sync = Sync(
            self.collection,
            self.embedder,
            ReadOptions(self.limits, 400),
            IngestionOptions.model_validate(options),
        )
        sync.run(self.sources)
        return {report.name: report for report in sync.reports}

    def rows(self) -> Rows:
        return stored_rows(self.collection)

    def words(self) -> dict[str, int]:
        return stored_words(self.collection)

    @property
    def milvus(self) -> MilvusCollection:
        assert isinstance(self.collection, MilvusCollection)
        return self.collection


def open_harness(folder: Path, kind: StoreKind, milvus_uri: Path) -> SyncHarness:
    """A harness whose sources are in `folder`.

    `milvus_uri` is a Milvus Lite file that tests share. Embedded collections have their own files.
    """
    uri = folder / "milvus.db" if kind == "embedded" else milvus_uri
    settings = read_settings(milvus_uri=str(uri), collection=f"c{abs(hash(folder))}")
    return SyncHarness(open_collection(settings, kind), folder, settings)


@pytest.fixture(scope="module")
def milvus_uri(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "milvus.db"


@pytest.fixture(params=STORE_KINDS)
def harness(
    request: pytest.FixtureRequest, milvus_uri: Path, tmp_path: Path
) -> Iterator[SyncHarness]:
    harness = open_harness(tmp_path, request.param, milvus_uri)
    yield harness
    harness.collection.close()


only_in_place = pytest.mark.parametrize("harness", ["in place"], indirect=True)
only_milvus = pytest.mark.parametrize("harness", STORE_KINDS[1:], indirect=True)
only_embedded = pytest.mark.parametrize("harness", ["embedded"], indirect=True)
# Milvus is written in place here because deleted rows stay deleted until the run ends.
embedded_and_in_place = pytest.mark.parametrize("harness", ["embedded", "in place"], indirect=True)


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


def assert_equals_rebuild(harness: SyncHarness) -> None:
    """Assert that a rebuild from the same documents gives the same collection."""
    rows, words, manifest = harness.rows(), harness.words(), harness.collection.manifest
    catalogue = harness.collection.catalogue()
    harness.sync(rebuild=True, allow_deletes=True)
    assert rows == harness.rows()
    assert words == harness.words()
    assert catalogue == harness.collection.catalogue()
    assert manifest == harness.collection.manifest
    if isinstance(harness.collection, EmbeddedCollection):
        assert record_rows(harness.settings) == snapshot_rows(harness.settings)


def test_sync_writes_only_changed_chunks(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_pages(folder, 10)
    (report,) = harness.sync().values()
    assert (counts(report), report.written, report.chunks) == ((10, 0, 0, 0), 20, 20)

    (report,) = harness.sync().values()
    assert (counts(report), report.written) == ((0, 0, 0, 10), 0)

    write_page(folder, 3, "# 签名\n\n退货另行处理。\n\n## Details\n\nCall `do_3` twice.")
    write_pages(folder, 1, first=10)
    (folder / "004.md").unlink()
    (report,) = harness.sync().values()
    assert counts(report) == (1, 1, 1, 8)
    assert report.written == 4  # both chunks of page 3 contain the title
    assert not harness.collection.chunks_of_document("004", "guides")
    assert harness.collection.search("退货怎么处理", 1, "full_text")[0].chunk.document_id == "003"
    assert_equals_rebuild(harness)


def test_removed_section_removes_its_chunk(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_pages(folder, 4)
    harness.sync()
    write_page(folder, 1, "# 订单发货 1\n\n订单发货的说明。")
    (report,) = harness.sync().values()
    assert (counts(report), report.written) == ((0, 1, 0, 3), 0)
    assert_equals_rebuild(harness)


def test_dry_run_reports_and_writes_nothing(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_pages(folder, 10)
    assert counts(harness.sync(dry_run=True)["guides"]) == (10, 0, 0, 0)
    assert not harness.collection.exists()
    harness.sync()
    before = harness.rows(), harness.words()
    write_page(folder, 0, "# new")
    write_page(folder, 1, "new")
    (folder / "009.md").unlink()
    assert counts(harness.sync(dry_run=True)["guides"]) == (0, 1, 2, 7)
    assert (harness.rows(), harness.words()) == before


def test_sources_do_not_affect_each_other(harness: SyncHarness) -> None:
    guides, news = harness.source("guides"), harness.source("news")
    write_pages(guides, 4)
    write_pages(news, 4)
    harness.sync()
    (news / "001.md").unlink()
    reports = harness.sync()
    assert counts(reports["guides"]) == (0, 0, 0, 4)
    assert counts(reports["news"]) == (0, 0, 1, 3)
    assert len(harness.collection.chunks_of_document("001", "guides")) == 2


@pytest.mark.parametrize(("vanished", "deleted"), [(3, 3), (4, 0)])
def test_many_vanished_documents_are_kept(
    harness: SyncHarness, vanished: int, deleted: int
) -> None:
    folder = harness.source("guides")
    write_pages(folder, 10)
    harness.sync()
    before = harness.rows()
    for number in range(vanished):
        (folder / f"{number:03}.md").unlink()

    (report,) = harness.sync().values()

    assert (report.deleted, report.kept) == (deleted, vanished - deleted)
    assert len(harness.rows()) == len(before) - 2 * deleted
    if not deleted:
        assert report.refused == [
            f"{vanished} of 10 documents have vanished and are kept: to delete them, run "
            "`apidesk ingest --allow-deletes`"
        ]
        assert harness.rows() == before
    (report,) = harness.sync(allow_deletes=True).values()
    assert (report.kept, report.refused) == (0, [])
    assert_equals_rebuild(harness)


def test_removed_source_is_kept_without_allow_deletes(harness: SyncHarness) -> None:
    write_pages(harness.source("guides"), 2)
    write_pages(harness.source("news"), 2)
    harness.sync()
    harness.sources = harness.sources[:1]
    assert harness.sync()["news"].kept == 2
    assert harness.sync(allow_deletes=True)["news"].deleted == 2
    assert {row["source"] for row in harness.rows().values()} == {"guides"}
    assert_equals_rebuild(harness)


@pytest.mark.parametrize("allow_deletes", [False, True])
def test_failed_source_deletes_nothing(harness: SyncHarness, allow_deletes: bool) -> None:
    """Whether the whole source is gone or one of its documents cannot be read."""
    folder = harness.source("guides")
    write_pages(folder, 6)
    harness.sync()
    (folder / "001.md").write_bytes(b"\xff")
    (folder / "002.md").unlink()
    write_page(folder, 3, "# 库存\n\n新的说明。")
    (report,) = harness.sync(allow_deletes=allow_deletes).values()
    assert (report.changed, report.deleted, report.kept) == (1, 0, 2)
    assert report.refused == ["001.md: not UTF-8 (byte 0)"]
    assert len(harness.collection.chunks_of_document("001", "guides")) == 2
    assert len(harness.collection.chunks_of_document("003", "guides")) == 1

    before = harness.rows()
    folder.rename(folder.with_name("moved"))
    (report,) = harness.sync(allow_deletes=allow_deletes).values()
    assert (report.deleted, report.kept) == (0, 6)
    assert report.refused == ["guides: no such folder"]
    assert harness.rows() == before


def test_rebuild_that_would_lose_unread_documents_is_refused(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_pages(folder, 6)
    harness.sync()
    before = harness.rows()
    (folder / "001.md").write_bytes(b"\xff")
    with pytest.raises(DeletionsRefused, match=r"\(1 of guides\); the collection is unchanged"):
        harness.sync(rebuild=True)
    assert harness.rows() == before
    harness.sync(rebuild=True, allow_deletes=True)
    assert len(harness.rows()) == 10


def test_sources_without_documents_are_an_error(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_page(folder, 0)
    (folder / "001.md").write_text("# only a heading")
    harness.sync()
    (folder / "000.md").unlink()
    with pytest.raises(CollectionMissing, match="the sources hold no document"):
        harness.sync(allow_deletes=True)
    assert len(harness.rows()) == 2


def test_manifest_mismatch_requires_a_rebuild(harness: SyncHarness) -> None:
    write_pages(harness.source("guides"), 3)
    harness.sync()
    harness.collection._expected = harness.collection._expected.model_copy(
        update={"chunker": "9/400"}
    )
    with pytest.raises(CollectionMismatch, match="run `apidesk ingest --rebuild` to rebuild it"):
        harness.sync()
    (report,) = harness.sync(rebuild=True).values()
    assert report.written == 6


@pytest.mark.parametrize("name", ["000", "002"], ids=["before", "behind"])
def test_duplicate_document_id_never_replaces_the_first(harness: SyncHarness, name: str) -> None:
    folder = harness.source("guides")
    write_page(folder, 1)
    (folder / f"{name}.md").write_text("# other\n\nother")
    harness.sync()
    twin = folder / "001.mdx"
    twin.write_text("# twin\n\ntwin")
    for _ in range(2):
        (report,) = harness.sync().values()
        assert report.refused == ["duplicate document id 001: the first document is kept"]
        assert (report.unchanged, report.changed) == (2, 0)
    assert_equals_rebuild(harness)


@dataclass(frozen=True)
class Change:
    """A change between two runs, and whether the source must be read because of it."""

    what: str
    make: Callable[[SyncHarness], object]
    compared: bool


def rewrite(path: Path, old: str, new: str) -> None:
    """Write other bytes of the same size with the same modification time."""
    date = path.stat().st_mtime_ns
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    os.utime(path, ns=(date, date))


def with_profile(harness: SyncHarness, **fields: object) -> None:
    harness.sources[0] = harness.sources[0].model_copy(update=fields)


def write_sources(harness: SyncHarness, value: str) -> None:
    """Store another value than the state of the sources."""
    collection = harness.collection
    if isinstance(collection, EmbeddedCollection):
        with collection._writing() as connection:
            set_state(connection, SOURCES_KEY, value)
    else:
        properties = {SOURCES_PROPERTY: value}
        harness.milvus._client.alter_collection_properties(collection._alias, properties=properties)


def write_as_another_version(harness: SyncHarness) -> None:
    """Write the collection as a version of apidesk that does not store the state of the sources."""
    if isinstance(harness.collection, EmbeddedCollection):
        write_sources(harness, "")
    else:
        client, alias = harness.milvus._client, harness.collection._alias
        write_finished_manifest(client, alias, harness.collection.manifest)


def interrupt_write(harness: SyncHarness) -> None:
    incomplete = harness.collection.manifest.model_copy(update={"incomplete": True})
    write_manifest(harness.milvus._client, harness.collection._alias, incomplete)


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
    Change("another format", lambda b: write_sources(b, '{"sources": 3}'), True),
]

CHANGES_OF_THE_STORE = [
    *(change for change in CHANGES if change.what in ("nothing", "a byte")),
    *CHANGES[-2:],
    Change("an unfinished run", interrupt_write, True),
]
"""What Milvus and the snapshot store differently; the files are compared before either is asked."""


@only_embedded
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.what)
def test_source_is_read_if_it_may_have_changed(harness: SyncHarness, change: Change) -> None:
    check_source_is_read(harness, change)


@only_in_place
@pytest.mark.parametrize("change", CHANGES_OF_THE_STORE, ids=lambda change: change.what)
def test_source_is_read_if_milvus_may_have_changed(harness: SyncHarness, change: Change) -> None:
    check_source_is_read(harness, change)


def check_source_is_read(harness: SyncHarness, change: Change) -> None:
    folder = harness.source("guides")
    write_pages(folder, 5)
    write_page(folder, 0, "---\nv: 1\n---\n# page\n\ntext\n\n## more\n\ntext")
    write_pages(harness.source("other"), 2)
    harness.sync()
    delete_chunks(harness.collection, "004")

    change.make(harness)
    # A run that reads the source writes the chunk deleted from the store.
    report = harness.sync()["guides"]
    assert ("004" in {row["document_id"] for row in harness.rows().values()}) is change.compared
    assert (report.added > 0) is change.compared
    assert change.compared or counts(report) == (0, 0, 0, 5)


def assert_not_read_again(harness: SyncHarness) -> None:
    """Assert that a run does not read the unchanged source `guides`."""
    before = harness.sync()["guides"]
    delete_chunks(harness.collection, "001")
    report = harness.sync()["guides"]
    assert (report.added, report.documents, report.refused, report.empty) == (
        0, before.documents, before.refused, before.empty,
    )  # fmt: skip


@embedded_and_in_place
def test_source_with_a_refused_page_is_not_read_while_unchanged(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_pages(folder, 3)
    (folder / "broken.md").write_bytes(b"\xff")
    (folder / "empty.md").write_text("")
    for unchanged in (0, 3):
        (report,) = harness.sync().values()
        assert (report.unchanged, report.refused) == (unchanged, ["broken.md: not UTF-8 (byte 0)"])
    assert_not_read_again(harness)
    (folder / "broken.md").write_text("# Mended\n\ntext")
    (report,) = harness.sync().values()
    assert (report.added, report.refused) == (2, [])


@only_embedded
def test_page_with_several_operations_is_not_read_while_unchanged(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_pages(folder, 3)
    (folder / "api.md").write_text(SEVERAL)
    harness.sync()
    delete_chunks(harness.collection, "001")
    assert harness.sync()["guides"].added == 0


@only_embedded
def test_new_operation_on_a_page_keeps_the_others(harness: SyncHarness) -> None:
    """The chunks of an unchanged operation keep the fingerprint of the earlier page."""
    folder = harness.source("guides")
    write_pages(folder, 6)
    page = folder / "api.md"
    page.write_text(SEVERAL)
    harness.sync()
    page.write_text(
        f"{SEVERAL}\n## Delete a board\n\n`DELETE /v1/boards`\n\n### Query\n\n- `id` (string)\n"
    )
    assert harness.sync()["guides"].added == 1
    write_page(folder, 1, "# Other\n\ntext")
    report = harness.sync()["guides"]
    assert (report.deleted, report.documents) == (0, 10)
    assert_equals_rebuild(harness)


@only_embedded
def test_other_limits_read_the_source_again(harness: SyncHarness) -> None:
    write_pages(harness.source("guides"), 3)
    harness.sync()
    delete_chunks(harness.collection, "001")
    harness.limits = SourceLimits(unpacked_bytes=1_000_000)
    assert harness.sync()["guides"].added == 1


def test_calibration_is_made_once(harness: SyncHarness, model_server: ModelServer) -> None:
    folder = harness.source("guides")
    write_pages(folder, 3)
    (folder / "broken.md").write_bytes(b"\xff")
    (folder / "empty.md").write_text("")
    model = "openai:scripted-embedding"
    settings = harness.settings.model_copy(
        update={
            "embedding_model": model,
            "embedding_base_url": model_server.base_url,
            "embedding_api_key": SecretStr("k"),
        }
    )
    expected = harness.collection._expected.model_copy(update={"embedding_model": model})
    harness.collection._expected = expected
    embeddings = open_embeddings(settings)
    assert embeddings is not None
    harness.embedder = ChunkEmbedder(embeddings, settings)
    harness.sync()
    requests = len(model_server.embedding_requests)
    for change in (lambda: None, lambda: (folder / "empty.md").write_text("\n")):
        change()
        harness.sync()
        assert len(model_server.embedding_requests) == requests


@pytest.mark.parametrize("defect", ["reading", "cutting"])
def test_unexpected_error_in_one_page_refuses_only_that_page(
    harness: SyncHarness, defect: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = harness.source("guides")
    write_pages(folder, 3)
    harness.sync()
    for number in (1, 2):
        write_page(folder, number, f"# Page {number}\n\nChanged.")
    with pytest.MonkeyPatch.context() as patch:
        if defect == "reading":
            patch.setattr(READER, "_parse", raise_for("001", READER._parse, argument=2))
        else:
            broken = raise_for("001", chunk_document, argument=0)
            patch.setattr(worker_processes, "chunk_document", broken)
        (report,) = harness.sync().values()
    (refused,) = report.refused
    assert re.fullmatch(r"001(\.md)?: unexpected KeyError: the log has the details", refused)
    assert (report.changed, report.unchanged, report.kept) == (1, 1, 1)
    assert "Traceback" in caplog.text
    texts = {row["document_id"]: row["text"] for row in harness.rows().values()}
    assert "Changed" in texts["002"]
    assert "Changed" not in texts["001"]
    assert counts(harness.sync()["guides"]) == (0, 1, 0, 2)


def raise_for(name: str, function: Callable[..., Any], argument: int) -> Callable[..., Any]:
    """Return `function`, which raises KeyError if `name` occurs in its argument number `argument`."""

    def run(*arguments: Any) -> Any:
        given = arguments[argument]
        if name in (given.name if isinstance(given, Path) else given.id):
            raise KeyError(name)
        return function(*arguments)

    return run


def test_skipped_source_has_the_same_report_as_a_read_one(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_pages(folder, 3)
    (folder / "empty.md").write_text("")
    harness.sync()
    passed_over = harness.sync()
    assert passed_over == harness.sync(dry_run=True)
    write_as_another_version(harness)
    assert passed_over == harness.sync()


@embedded_and_in_place
def test_new_reader_version_reads_the_source_again(
    harness: SyncHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pages(harness.source("guides"), 3)
    harness.sync()
    delete_chunks(harness.collection, "002")
    monkeypatch.setattr("ingestion.sources.folder.READER_VERSION", 0)
    assert harness.sync()["guides"].added == 1


@only_milvus
def test_lost_collection_is_rebuilt(harness: SyncHarness) -> None:
    write_pages(harness.source("guides"), 3)
    harness.sync()
    delete_chunks(harness.collection)
    assert harness.sync()["guides"].added == 3


@embedded_and_in_place
def test_openapi_description_is_read_again_if_a_referenced_file_changes(
    harness: SyncHarness,
) -> None:
    described = {"openapi": "3.1.0", "info": {"title": "A", "version": "1"}}
    operation = {"summary": "Pick up", "responses": {}}
    described["paths"] = {"/pickups": {"$ref": "pickups.json"}}
    (harness.folder / "openapi.json").write_text(json.dumps(described))
    harness.sources.append(
        OpenApiSourceConfig(kind="openapi", name="api", path=harness.folder / "openapi.json")
    )
    for summary, expected in (("Pick up", (1, 0)), ("Pick up", (0, 0)), ("Collect", (0, 1))):
        item = {"post": operation | {"summary": summary}}
        (harness.folder / "pickups.json").write_text(json.dumps(item))
        report = harness.sync()["api"]
        assert (report.added, report.changed) == expected


def test_error_names_the_reason_why_nothing_was_indexed(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    for number in range(3):
        (folder / f"{number}.md").write_bytes(b"\xff")
    words = r"hold no document: guides: 0\.md: not UTF-8 \(byte 0\) \(and 2 more\)"
    with pytest.raises(CollectionMissing, match=words):
        harness.sync()


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
                found = harness.collection.search("`do_33` twice", 3, "full_text")
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
    dead = NextCollectionWriter(collection._client, collection._alias, collection._expected, None)
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


def collections_of(harness: SyncHarness) -> list[str]:
    collection = harness.milvus
    return [n for n in collection._client.list_collections() if collection._alias in n]
