"""A collection and the folders of its sources, for tests of Sync with every kind of store."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ingestion.embeddings import ChunkEmbedder
from ingestion.source_reading import ReadOptions
from ingestion.store.collection import Collection
from ingestion.store.embedded_collection import EmbeddedCollection
from ingestion.store.milvus_collection import MilvusCollection
from ingestion.sync import Sync
from schemas.ingestion import IngestionOptions, SourceReport
from schemas.platform import MarkdownSourceConfig, OpenApiSourceConfig, SourceLimits
from schemas.settings import Settings, read_settings
from tests.collections import (
    Rows,
    StoreKind,
    open_collection,
    record_rows,
    snapshot_rows,
    stored_rows,
    stored_words,
)

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
    """Return a harness whose sources are in `folder`.

    `milvus_uri` is a Milvus Lite file that tests share. Embedded collections have their own files.
    """
    uri = folder / "milvus.db" if kind == "embedded" else milvus_uri
    settings = read_settings(milvus_uri=str(uri), collection=f"c{abs(hash(folder))}")
    return SyncHarness(open_collection(settings, kind), folder, settings)


EMBEDDED: StoreKind = "embedded"
NEXT_COLLECTION = pytest.param("next collection", marks=pytest.mark.acceptance)
IN_PLACE = pytest.param("in place", marks=pytest.mark.acceptance)
MILVUS = (NEXT_COLLECTION, IN_PLACE)

only_in_place = pytest.mark.parametrize("harness", [IN_PLACE], indirect=True)
only_milvus = pytest.mark.parametrize("harness", MILVUS, indirect=True)
only_embedded = pytest.mark.parametrize("harness", [EMBEDDED], indirect=True)
# Milvus is written in place here because deleted rows stay deleted until the run ends.
embedded_and_in_place = pytest.mark.parametrize("harness", [EMBEDDED, IN_PLACE], indirect=True)


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


def collections_of(harness: SyncHarness) -> list[str]:
    collection = harness.milvus
    return [n for n in collection._client.list_collections() if collection.alias in n]
