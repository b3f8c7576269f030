"""Sync on every kind of store: a source is read again only if it may have changed."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingestion.sources.folder import READER_VERSION
from ingestion.sources.registry import UnchangedFile, read_source
from ingestion.store.embedded_collection import EmbeddedCollection
from ingestion.store.manifest import SOURCES_PROPERTY, write_finished_manifest, write_manifest
from ingestion.store.snapshot import SOURCES_KEY, set_state
from ingestion.stored_documents import StoredDocuments
from schemas.platform import OpenApiSourceConfig, SourceLimits
from tests.api_page_lines import SEVERAL
from tests.collections import delete_chunks
from tests.sync_harness import (
    SyncHarness,
    assert_equals_rebuild,
    counts,
    embedded_and_in_place,
    only_embedded,
    only_in_place,
    write_page,
    write_pages,
)

pytestmark = pytest.mark.acceptance


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
        harness.milvus._client.alter_collection_properties(collection.alias, properties=properties)


def write_as_another_version(harness: SyncHarness) -> None:
    """Write the collection as a version of apidesk that does not store the state of the sources."""
    if isinstance(harness.collection, EmbeddedCollection):
        write_sources(harness, "")
    else:
        client, alias = harness.milvus._client, harness.collection.alias
        write_finished_manifest(client, alias, harness.collection.manifest)


def interrupt_write(harness: SyncHarness) -> None:
    incomplete = harness.collection.manifest.model_copy(update={"incomplete": True})
    write_manifest(harness.milvus._client, harness.collection.alias, incomplete)


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
        assert report.unchanged == unchanged
        assert [line.partition(":")[0] for line in report.refused] == ["broken.md"]
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


@only_embedded
@pytest.mark.parametrize("version", [0, READER_VERSION])
def test_page_with_unchanged_chunks_is_read_once_after_a_change(
    harness: SyncHarness, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """The change is another version of the reader, or another paragraph."""
    write_pages(harness.source("guides"), 3)
    page = harness.folder / "guides" / "002.md"
    page.write_text("# Page\n\n## Same\n\ntext\n\n## Other\n\ntext")
    harness.sync()
    monkeypatch.setattr("ingestion.sources.folder.READER_VERSION", version)
    page.write_text("# Page\n\n## Same\n\ntext\n\n## Other\n\nchanged")
    harness.sync()
    stored = StoredDocuments()
    for chunk in harness.collection.stored_chunks():
        stored.add(chunk)
    known = stored.known_files("guides")
    results = list(read_source(harness.sources[0], harness.limits, known))
    assert [type(result) for result in results] == [UnchangedFile] * 3


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
