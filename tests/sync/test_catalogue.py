"""Tests of the catalogue on every kind of store."""

import random
from typing import Any

import pytest

import ingestion.store.catalogue
import ingestion.store.milvus_writers
from ingestion.chunking import chunk_document
from ingestion.store.catalogue import (
    MAX_OUTLINE_BYTES,
    MAX_OUTLINE_CHUNKS,
    CatalogueBuilder,
    catalogue_name,
)
from ingestion.store.client import MilvusRow
from ingestion.store.manifest import CATALOGUE_PROPERTY
from schemas.document import CatalogueEntry, Section, SourceDocument
from tests.sync_harness import SyncHarness, assert_equals_rebuild, collections_of, write_pages

pytestmark = pytest.mark.acceptance

# --- building entries


def rows_of(document_id: str, headings: list[str], **fields: Any) -> list[MilvusRow]:
    """The rows of a document with one chunk per heading."""
    sections = [
        Section(kind="prose", heading=tuple(filter(None, h.split(" > "))), body=f"{number}")
        for number, h in enumerate(headings)
    ]
    document = SourceDocument.model_validate(
        {"id": document_id, "source": "guides", "title": document_id, "language": "zh"}
        | fields
        | {"sections": sections}
    )
    return [chunk.model_dump() for chunk in chunk_document(document, 400)]


def build_entries(*rows: MilvusRow) -> dict[str, CatalogueEntry]:
    gathering = CatalogueBuilder()
    gathering.add(rows)
    return {entry.document_id: entry for entry in gathering.entries()}


@pytest.mark.parametrize(
    ("headings", "outline"),
    [
        pytest.param(["A", "A > B", "C"], ("A", "A > B", "C"), id="in the document's order"),
        pytest.param(["B", "A", "B"], ("B", "A"), id="each once"),
        pytest.param(["", "A"], ("A",), id="nothing above the first heading"),
        pytest.param([""], (), id="none"),
        pytest.param(["单" * 1_000, "证" * 1_000, "A" * 2_000, "B"],
                     ("单" * 1_000, "证" * 1_000, "A" * 2_000), id="too many bytes"),
        pytest.param([str(n) for n in range(MAX_OUTLINE_CHUNKS + 2)],
                     tuple(str(n) for n in range(MAX_OUTLINE_CHUNKS)), id="too many chunks"),
    ],
)  # fmt: skip
def test_outline_contains_the_headings(headings: list[str], outline: tuple[str, ...]) -> None:
    rows = rows_of("a", headings)
    random.Random(1).shuffle(rows)
    assert build_entries(*rows)["a"].outline == outline
    assert sum(len(heading.encode()) for heading in outline) <= MAX_OUTLINE_BYTES


def test_entry_has_the_fields_of_the_first_chunk() -> None:
    api = {"service_id": "s", "api_id": "1180", "api_name": "取消", "api_url": "/cancel"}
    link = "https://open.example.com/api"
    rows = [*rows_of("api", ["x", "y"], page_url=link, **api), *rows_of("page", ["x"])]
    found = build_entries(*reversed(rows))
    assert found["api"] == CatalogueEntry(
        source="guides", document_id="api", title="api", kind="api", page_url=link, language="zh",
        outline=("x", "y"), **api,
    )  # fmt: skip
    assert found["page"].kind == "page"


# --- in the store


@pytest.fixture
def harness(harness: SyncHarness) -> SyncHarness:
    """Three pages, indexed."""
    write_pages(harness.source("guides"), 3)
    harness.sync()
    return harness


def titles(harness: SyncHarness) -> dict[str, str]:
    return {entry.document_id: entry.title for entry in harness.collection.catalogue()}


def test_catalogue_follows_the_documents(harness: SyncHarness) -> None:
    guides, news = harness.folder / "guides", harness.source("news")
    write_pages(news, 1)
    harness.sync()
    (guides / "000.md").write_text("# New title\n\nNew.\n\n## Details\n\nx\n\n## More\n\ny")
    (guides / "001.md").unlink()
    harness.sync(allow_deletes=True)
    entries = [(e.source, e.document_id, e.outline) for e in harness.collection.catalogue()]
    assert entries == [
        ("guides", "000", ("Details", "More")),
        ("guides", "002", ("Details",)),
        ("news", "000", ("Details",)),
    ]
    assert titles(harness)["002"] == "refund 2"
    assert_equals_rebuild(harness)


def test_catalogue_is_read_again_only_after_a_write(harness: SyncHarness) -> None:
    before = harness.collection.catalogue()
    harness.sync()
    assert harness.collection.catalogue() is before
    write_pages(harness.folder / "guides", 1, first=3)
    harness.sync()
    assert [e.document_id for e in harness.collection.catalogue()] == ["000", "001", "002", "003"]


in_place_in_acceptance = pytest.mark.parametrize(
    "harness",
    ["next collection", pytest.param("in place", marks=pytest.mark.acceptance)],
    indirect=True,
)
"""Both writers of Milvus create and replace catalogues with the same functions."""


def remove_catalogue(harness: SyncHarness) -> None:
    """Remove the catalogue, as in a collection of an apidesk without catalogues."""
    client, alias = harness.milvus._client, harness.collection.alias
    name = client.describe_alias(catalogue_name(alias))["collection_name"]
    client.drop_alias(catalogue_name(alias))
    client.drop_collection(name)
    client.alter_collection_properties(alias, properties={CATALOGUE_PROPERTY: ""})


def outdate_catalogue(harness: SyncHarness) -> None:
    """Make the catalogue one of an older version."""
    properties = {CATALOGUE_PROPERTY: "0/1"}
    harness.milvus._client.alter_collection_properties(
        harness.collection.alias, properties=properties
    )


@in_place_in_acceptance
@pytest.mark.parametrize("age", [remove_catalogue, outdate_catalogue])
def test_next_run_creates_a_missing_catalogue(harness: SyncHarness, age: Any) -> None:
    expected = harness.collection.catalogue()
    age(harness)
    harness.collection.load()
    assert harness.collection.catalogue() == []
    assert harness.collection.search("refund", 1)
    (report,) = harness.sync().values()
    assert (report.written, report.unchanged) == (0, 3)
    assert harness.collection.catalogue() == expected
    assert len(collections_of(harness)) == 3
    assert_equals_rebuild(harness)


@in_place_in_acceptance
@pytest.mark.parametrize("moves", range(4))
def test_next_run_repairs_interrupted_alias_moves(
    harness: SyncHarness, moves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever aliases were moved, the next run finds a consistent collection."""
    collection = harness.collection
    expected = [titles(harness), {"001": titles(harness)["001"]}][moves == 3]
    chunks = collection.chunks_of_document("001", "guides")
    writer = collection.writer(rebuild=True)
    writer.put(chunks, None)
    with monkeypatch.context() as patched:
        die_after(moves, patched)
        with pytest.raises(KeyboardInterrupt):
            writer.finish(set())
    collection.writer(rebuild=False)  # as the next run does first
    collection.load()
    assert titles(harness) == expected
    write_pages(harness.folder / "guides", 1, first=3)
    harness.sync()
    assert titles(harness).keys() == {"000", "001", "002", "003"}
    assert len(collections_of(harness)) == 3
    assert_equals_rebuild(harness)


def die_after(moves: int, patched: pytest.MonkeyPatch) -> None:
    """Let a writer die after `moves` moves of an alias."""
    real, left = ingestion.store.catalogue.move_alias, [moves]

    def move(*args: Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        real(*args)

    for module in (ingestion.store.catalogue, ingestion.store.milvus_writers):
        patched.setattr(module, "move_alias", move)
