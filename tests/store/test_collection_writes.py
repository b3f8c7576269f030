"""Collections of every kind of store: manifests, other programs' collections and failed writes."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pytest

from ingestion.chunking import CHUNKER_VERSION
from ingestion.store.client import BATCH_ROWS
from ingestion.store.collection import Collection
from ingestion.store.embedded_collection import EmbeddedCollection
from ingestion.store.manifest import CollectionManifest, IndexedSources, RouteCalibration
from ingestion.store.schema import Vector
from schemas.document import Chunk
from schemas.errors import (
    ApideskError,
    CollectionMismatch,
    CollectionMissing,
    SourceError,
    StoreError,
)
from tests.chunks import embed, page
from tests.collections import use_milvus, write
from tests.store.conftest import ODD_NAMES, PAGES, Connect, client_of, search, stored

pytestmark = pytest.mark.acceptance

only_milvus = pytest.mark.parametrize("kind", ["next collection"], indirect=True, scope="module")


def sections(count: int, fail: bool = False) -> Iterator[Chunk]:
    yield from page("half", *(f"第 {number} 节" for number in range(count)))
    if fail:
        raise SourceError("half way")


def test_manifest_keeps_its_stored_keys() -> None:
    stored = {
        "embedding_model": "a:b",
        "embedding_chars": 320,
        "metric": "COSINE",
        "analyzer": "standard/4",
        "chunker": f"{CHUNKER_VERSION}/400",
        "rows": 3,
        "words": 9,
        "reliability": {"full_text": 0.5, "dense": 0.25, "rows": 3},
        "unfinished": True,
    }
    manifest = CollectionManifest.model_validate_json(json.dumps(stored))
    assert manifest.calibration == RouteCalibration(full_text=0.5, dense=0.25, rows=3)
    assert manifest.incomplete
    assert json.loads(manifest.model_dump_json(by_alias=True)) == stored
    sources = {"stamp": "1/2", "sources": {}}
    assert IndexedSources.model_validate(sources).model_dump(by_alias=True) == sources


@pytest.mark.parametrize(
    ("settings", "difference"),
    [
        ({"chunk_tokens": 500}, f"chunker {CHUNKER_VERSION}/400 instead of {CHUNKER_VERSION}/500"),
        ({"embedding_model": "a:b"}, "embedding_model none instead of a:b"),
        (
            {"embedding_model": "a:b", "chunk_tokens": 500},
            f"embedding_model none instead of a:b, chunker {CHUNKER_VERSION}/400 instead of {CHUNKER_VERSION}/500",
        ),
    ],
    ids=["chunks", "embedding", "both"],
)
@pytest.mark.usefixtures("docs")
def test_collection_of_other_settings_is_refused(
    connect: Connect, settings: dict[str, object], difference: str
) -> None:
    collection = connect(**settings)
    with pytest.raises(CollectionMismatch) as raised:
        collection.load()
    assert str(raised.value) == (
        f"the collection docs was made with {difference}: run `apidesk ingest --rebuild` to rebuild it"
    )
    with pytest.raises(CollectionMismatch):
        collection.search("订单", 1)


@pytest.mark.usefixtures("docs")
def test_collection_of_the_same_settings_loads(connect: Connect) -> None:
    collection = connect(top_k=7, chat_model="openai:other")
    assert collection.exists()
    collection.load()
    assert search(collection, "cancel_pick_up", 1) == ["pickup"]
    assert collection.manifest.rows == len(PAGES) + len(ODD_NAMES) + 2
    assert collection.manifest.words > 0


def test_reads_notice_writes_by_another_process(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestion.store.cache.CHECK_INTERVAL_S", 0)
    writer, reader = connect("shared"), connect("shared")
    write(writer, page("stripes", "A horse."))
    assert reader.word_counts(["zebra"]) == {}
    write(writer, page("stripes", "A zebra, another zebra.", "A horse."))
    assert reader.word_counts(["zebra"]) == {"zebra": 2}
    assert reader.manifest.rows == 2
    write(connect("shared", chunk_tokens=500), page("stripes", "A zebra."))
    with pytest.raises(CollectionMismatch, match=f"chunker {CHUNKER_VERSION}/500"):
        reader.search("zebra", 1)
    write(writer, page("stripes", "A horse."))
    assert search(reader, "horse", 1) == ["stripes"]


@pytest.mark.parametrize(
    "use",
    [
        lambda c: c.load(),
        lambda c: c.manifest,
        lambda c: c.search("订单", 1),
        lambda c: c.chunks_of_document("1180", "guides"),
        lambda c: c.chunks_by_api(["/cancel"], []),
        lambda c: c.word_counts(["订单"]),
        lambda c: c.catalogue(),
        lambda c: c.languages(),
    ],
    ids=[
        "load",
        "manifest",
        "search",
        "chunks_of_document",
        "chunks_by_api",
        "word_counts",
        "catalogue",
        "languages",
    ],
)
def test_reads_before_the_first_index_raise_collection_missing(
    connect: Connect, use: Callable[[Collection], object]
) -> None:
    collection = connect("nothing")
    assert not collection.exists()
    with pytest.raises(CollectionMissing, match="run `apidesk ingest`"):
        use(collection)


def create_theirs(collection: Collection, *names: str) -> None:
    """Create collections in Milvus that apidesk does not know."""

    def create(client: Any) -> None:
        for name in names:
            client.create_collection(name, dimension=2)

    if isinstance(collection, EmbeddedCollection):
        use_milvus(collection._copy._settings, create)
    else:
        create(client_of(collection))


@pytest.mark.parametrize("rebuild", [False, True])
def test_foreign_collection_is_refused_and_unchanged(connect: Connect, rebuild: bool) -> None:
    """By the first call of every ingestion run."""
    theirs = ["theirs", "theirs_2", "theirs_words_2"]
    collection = connect("theirs")
    if not rebuild:
        create_theirs(collection, *theirs)
    with pytest.raises(CollectionMismatch, match="choose another APIDESK_COLLECTION"):
        collection.recover(rebuild)
    assert stored(collection) == theirs


@only_milvus
def test_foreign_collection_is_refused_by_reads_and_writes(connect: Connect) -> None:
    collection = connect("foreign")
    create_theirs(collection, "foreign")
    for use in (collection.load, lambda: write(collection, page("a", "text"))):
        with pytest.raises(CollectionMismatch, match="choose another APIDESK_COLLECTION"):
            use()
    assert stored(collection) == ["foreign"]


def test_write_drops_only_its_own_collections(connect: Connect) -> None:
    collection = connect("shared")
    create_theirs(collection, "shared_2026")
    write(collection, page("a", "text"))
    write(collection, page("a", "text"))
    assert "shared_2026" in stored(collection)


@only_milvus
def test_collection_without_its_rows_is_reported_as_damaged(connect: Connect) -> None:
    collection = connect("damaged")
    write(collection, page("a", "text"))
    client_of(collection).delete("damaged", filter='id != ""')
    client_of(collection).flush("damaged")
    with pytest.raises(CollectionMissing, match=r"1 rows were written.*run `apidesk ingest`"):
        connect("damaged").load()


def test_second_write_replaces_the_first(connect: Connect) -> None:
    writer, reader = connect("swap"), connect("swap")
    write(writer, [*page("old", "旧的内容"), *page("kept", "留下的内容")])
    reader.load()
    before = stored(writer)
    assert search(reader, "旧的") == ["old"]

    manifest = write(writer, [*page("new", "新的内容", "又一节"), *page("kept", "留下的内容")])

    assert (manifest.rows, writer.manifest) == (3, manifest)
    assert search(reader, "旧的") == search(writer, "旧的") == []
    assert search(reader, "新的", 1) == ["new"]
    assert reader.chunks_of_document("old", "guides") == []
    assert reader.word_counts(["旧", "留下"]) == {"留下": 1}
    after = stored(writer)
    assert len(after) == len(before) == (1 if isinstance(writer, EmbeddedCollection) else 3)
    assert not set(after) & set(before)


def failing_embed(texts: list[str]) -> list[Vector]:
    if len(texts) < BATCH_ROWS:
        raise ConnectionError("half way")
    return embed(texts)


def too_wide(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    for chunk in islice(chunks, 2):
        yield chunk.model_copy(update={"title": "t" * 5_000})


@pytest.mark.parametrize(
    ("chunks", "embedding", "error"),
    [
        pytest.param(lambda: sections(BATCH_ROWS, fail=True), embed, SourceError, id="source"),
        pytest.param(lambda: sections(BATCH_ROWS + 1), failing_embed, ConnectionError, id="embedding"),
        pytest.param(
            lambda: sections(3), lambda texts: [[1.0] * n for n, _ in enumerate(texts, 2)], ApideskError,
            id="vectors of several lengths",
        ),
        pytest.param(lambda: too_wide(sections(3)), embed, StoreError, id="store"),
    ],
)  # fmt: skip
def test_failed_write_leaves_the_collection_unchanged(
    vectors: Collection,
    chunks: Callable[[], Iterator[Chunk]],
    embedding: Callable[[list[str]], list[Vector]],
    error: type[Exception],
) -> None:
    before, manifest = stored(vectors), vectors.manifest
    with pytest.raises(error):
        write(vectors, chunks(), embedding)
    assert stored(vectors) == before
    assert vectors.manifest == manifest
    assert search(vectors, "cancel_pick_up", 1) == ["pickup"]
    assert vectors.chunks_of_document("half", "guides") == []
    assert vectors.word_counts(["cancelpickup"]) == {"cancelpickup": 1}


def test_failed_first_write_leaves_no_collection(connect: Connect) -> None:
    collection = connect("first")
    with pytest.raises(SourceError):
        write(collection, sections(BATCH_ROWS, fail=True))
    assert not collection.exists()
    assert stored(collection) == []


def test_vector_of_another_model_is_refused(vectors: Collection) -> None:
    """Although the manifest says that the model is the same."""
    with pytest.raises(StoreError):
        write(vectors, page("new", "新的"), lambda texts: [[1.0, 2.0]] * len(texts), rebuild=False)
    assert vectors.chunks_of_document("new", "guides") == []


def test_chunks_with_nul_are_stored_as_written(connect: Connect) -> None:
    collection = connect("nul")
    chunks = page("nul\0id", "订单\0说明", metadata={"a\0": "b\0"})
    write(collection, chunks)
    assert collection.chunks_of_document("nul\0id", "guides") == chunks
    assert collection.chunks_by_id([chunks[0].id]) == chunks
    assert [hit.chunk for hit in collection.search("订单", 3)] == chunks
