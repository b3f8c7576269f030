"""Sync on every kind of store: what a run writes, reports and refuses."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from ingestion import worker_processes
from ingestion.chunking import chunk_document
from ingestion.embeddings import ChunkEmbedder, open_embeddings
from ingestion.sources.markdown import READER
from schemas.errors import (
    CollectionMismatch,
    CollectionMissing,
    ConfigurationError,
    DeletionsRefused,
)
from tests.model_server import ModelServer
from tests.sync_harness import SyncHarness, assert_equals_rebuild, counts, write_page, write_pages

pytestmark = pytest.mark.acceptance


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
    assert harness.collection.search("退货怎么处理", 1)[0].chunk.document_id == "003"
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


@pytest.mark.parametrize("options", [{}, {"dry_run": True}, {"rebuild": True}])
def test_store_without_any_of_the_sources_is_refused(
    harness: SyncHarness, options: dict[str, bool]
) -> None:
    write_pages(harness.source("guides"), 2)
    write_pages(harness.source("news"), 2)
    harness.sync()
    before = harness.rows()
    harness.sources = []
    write_pages(harness.source("other"), 2)
    with pytest.raises(ConfigurationError, match=r"not in the sources of .*: guides, news\. Set"):
        harness.sync(**options)
    assert harness.rows() == before
    reports = harness.sync(**(options | {"allow_deletes": True}))
    assert (reports["other"].added, reports["guides"].deleted, reports["news"].deleted) == (2, 2, 2)


def test_one_of_several_sources_can_be_renamed(harness: SyncHarness) -> None:
    write_pages(harness.source("guides"), 2)
    write_pages(harness.source("news"), 2)
    harness.sync()
    harness.sources[1] = harness.sources[1].model_copy(update={"name": "blog"})
    reports = harness.sync()
    assert (reports["blog"].added, reports["news"].kept) == (2, 2)


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
    assert report.refused == [
        "001.md: not UTF-8 (byte 0): convert it, for example with iconv -f gbk -t utf-8"
    ]
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
    (report,) = harness.sync(rebuild=True, allow_deletes=True).values()
    assert (report.deleted, report.kept) == (1, 0)
    assert len(report.refused) == 1
    assert len(harness.rows()) == 10


def test_rebuild_never_empties_the_collection(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_pages(folder, 1)
    write_pages(harness.source("news"), 1)
    harness.sync()
    before = harness.rows()
    (folder / "000.md").write_bytes(b"\xff")
    harness.sources = harness.sources[:1]
    with pytest.raises(
        CollectionMissing, match=r"contain no documents: guides: 000\.md: not UTF-8"
    ):
        harness.sync(rebuild=True, allow_deletes=True)
    assert harness.rows() == before


def test_sources_without_documents_are_an_error(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    write_page(folder, 0)
    (folder / "001.md").write_text("# only a heading")
    harness.sync()
    (folder / "000.md").unlink()
    with pytest.raises(CollectionMissing, match="the sources contain no documents"):
        harness.sync(allow_deletes=True)
    assert len(harness.rows()) == 2


def test_error_about_an_empty_folder_names_it_once(harness: SyncHarness) -> None:
    harness.source("guides")
    with pytest.raises(CollectionMissing, match=r"contain no documents: guides: contains no \.md"):
        harness.sync(allow_deletes=True)


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
    assert re.fullmatch(r"001(\.md)?: unexpected KeyError; see the log for details", refused)
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


def test_error_names_the_reason_why_nothing_was_indexed(harness: SyncHarness) -> None:
    folder = harness.source("guides")
    for number in range(3):
        (folder / f"{number}.md").write_bytes(b"\xff")
    words = r"contain no documents: guides: 0\.md: not UTF-8 \(byte 0\): .* \(and 2 more\)"
    with pytest.raises(CollectionMissing, match=words):
        harness.sync()
