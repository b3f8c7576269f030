"""Tests of Collection on both kinds of store: searching, reading, manifests, and failed writes."""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from app.service.answer_service import AnswerService
from ingestion.chunking import CHUNKER_VERSION, chunk_document
from ingestion.store.cache import ReadThroughCache
from ingestion.store.client import BATCH_ROWS
from ingestion.store.collection import Collection
from ingestion.store.embedded_collection import EmbeddedCollection
from ingestion.store.manifest import CollectionManifest, IndexedSources, RouteCalibration
from ingestion.store.milvus_collection import MilvusCollection
from ingestion.store.schema import Vector, embedded_text
from ingestion.text.words import split_words
from schemas.document import Chunk, Section, SourceDocument
from schemas.errors import (
    ApideskError,
    CollectionMismatch,
    CollectionMissing,
    SourceError,
    StoreError,
)
from schemas.question import Filters
from schemas.settings import Settings, read_settings
from tests.collections import StoreKind, open_collection, use_milvus, write

DIMENSION = 64
PAGES = {
    "pickup": "用 `cancel_pick_up` 接口取消揽收。",
    "search": "分页查询订单：/dop/api/v1/order/search，按下单时间排序。",
    "path": "路径 /dop/api/v1/order 下还有别的接口。",
    "signing": "错误码 isv.invalid-signature 表示签名不对。",
    "codes": "错误码 isv.missing-parameter 表示参数缺失，invalid 表示参数不对。",
    "width": "全角的ＵｓｅｒＩｄ，错误码：４０００１。",
    "camel": "调用getWaybillNo接口取电子面单号。",
    "english": "Refunds are settled within three working days.",
}
ODD_NAMES = [
    'double "quotes"', "single 'quote'", "back\\slash", "trailing\\", "per%cent_", "new\nline",
    "[brackets] or 1 == 1 or [", "{braces}", "取消 订单", "emoji 😀", "\u2028", "a == \"b\" and 'c'",
]  # fmt: skip


def page(name: str, *bodies: str, **fields: object) -> list[Chunk]:
    """The chunks of a page with one section per body."""
    document = SourceDocument.model_validate(
        {"id": name, "source": "guides", "title": name, "language": "zh"}
        | fields
        | {"sections": [Section(kind="prose", heading=("节",), body=body) for body in bodies]}
    )
    return list(chunk_document(document, 400))


def embed(texts: list[str]) -> list[Vector]:
    """Hashed word counts: texts that share words have similar vectors."""
    vectors = []
    for text in texts:
        vector = [0.0] * DIMENSION
        for word in split_words(text):
            vector[zlib.crc32(word.encode()) % DIMENSION] += 1.0
        vectors.append(vector)
    return vectors


Connect = Callable[..., Collection]


@pytest.fixture(scope="module", params=["embedded", "next collection"])
def kind(request: pytest.FixtureRequest) -> StoreKind:
    """The kind of store. The tests apply to every kind, unless they are marked."""
    kind: StoreKind = request.param
    return kind


only_embedded = pytest.mark.parametrize("kind", ["embedded"], indirect=True, scope="module")
only_milvus = pytest.mark.parametrize("kind", ["next collection"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def uri(kind: StoreKind, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all tests: each alias in it is a separate collection."""
    return tmp_path_factory.mktemp("store") / "new folder" / "milvus.db"


@pytest.fixture(scope="module")
def connect(kind: StoreKind, uri: Path) -> Iterator[Connect]:
    collections: list[Collection] = []

    def make(alias: str = "docs", **settings: object) -> Collection:
        collections.append(open_collection(settings_of(uri, alias, **settings), kind))
        return collections[-1]

    yield make
    for collection in collections:
        collection.close()


def settings_of(uri: Path, alias: str, **settings: object) -> Settings:
    return read_settings(milvus_uri=str(uri), collection=alias, **settings)


def stored(collection: Collection) -> list[str]:
    """The names of the collections in Milvus whose names begin with the alias of `collection`."""
    names: list[str] = []
    if isinstance(collection, EmbeddedCollection):
        settings = collection._record._settings
        use_milvus(settings, lambda client: names.extend(client.list_collections()))
    else:
        names = client_of(collection).list_collections()
    return sorted(name for name in names if name.startswith(collection._alias))


def client_of(collection: Collection) -> Any:
    """The Milvus client of `collection`."""
    assert isinstance(collection, MilvusCollection)
    return collection._client


@pytest.fixture(scope="module")
def docs(connect: Connect) -> Collection:
    """Pages, an API and pages with unusual names; read only."""
    collection = connect()
    chunks = [chunk for name, body in PAGES.items() for chunk in page(name, body)]
    chunks += page(
        "1180", "地址", "参数", api_id="1180", api_name="取消揽收", api_url="/dop/removal"
    )
    for number, name in enumerate(ODD_NAMES):
        chunks += page(
            name, "名称，名称", source=f"odd {name}", api_name=name, api_url=f"/{number}/{name}"
        )
    write(collection, chunks)
    return collection


@pytest.fixture(scope="module")
def vectors(connect: Connect) -> Collection:
    """The pages with an embedding; read only."""
    collection = connect("vectors", embedding_model="test:counts")
    write(collection, (c for name, body in PAGES.items() for c in page(name, body)), embed)
    return collection


def test_languages_are_those_of_the_documents(connect: Connect) -> None:
    collection = connect("languages")
    write(collection, page("a", "中文"))
    assert collection.languages() == {"zh"}
    write(collection, [*page("a", "中文"), *page("b", "English", language="en")])
    assert collection.languages() == {"zh", "en"}


def names(found: Iterable[Chunk]) -> list[str]:
    return [chunk.document_id for chunk in found]


def search(
    collection: Collection,
    question: str,
    k: int = 3,
    near: str = "",
) -> list[str]:
    vector = embed([near])[0] if near else None
    return names(found.chunk for found in collection.search(question, k, vector))


# --- search


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("怎么取消揽收", "pickup"),
        ("cancel_pick_up", "pickup"),
        ("cancelPickUp 报错了", "pickup"),
        ("CANCEL_PICK_UP", "pickup"),
        ("/dop/api/v1/order/search", "search"),
        ("https://open.example.com/dop/api/v1/order/search", "search"),
        ("/dop/api/v1/order", "path"),
        ("isv.invalid-signature", "signing"),
        ("signature", "signing"),
        ("isv.missing-parameter", "codes"),
        ("UserId", "width"),
        ("user_id", "width"),
        ("ｕｓｅｒＩＤ", "width"),
        ("40001", "width"),
        ("４０００１", "width"),
        ("getWaybillNo", "camel"),
        ("waybill", "camel"),
        ("how is a refund settled", "english"),
        ("/dop/removal", "1180"),
    ],
)
def test_full_text_search_finds_the_document(
    docs: Collection, question: str, expected: str
) -> None:
    assert search(docs, question)[:1] == [expected]


@pytest.mark.parametrize("question", ["", "？？？", "zzzz", "\"'\\", "a" * 5_000, "揽" * 5_000])
def test_search_accepts_any_question(docs: Collection, question: str) -> None:
    assert set(search(docs, question)) <= set(PAGES)


def test_search_returns_at_most_k_chunks_best_first(docs: Collection) -> None:
    found = docs.search("错误码 isv.invalid-signature", 2)
    assert names(hit.chunk for hit in found) == ["signing", "codes"]
    assert found[0].score > found[1].score > 0


def test_search_returns_the_chunk_as_written(docs: Collection) -> None:
    (written,) = page("signing", PAGES["signing"])
    assert docs.search("isv.invalid-signature", 1)[0].chunk == written


@pytest.mark.parametrize(("name", "body"), PAGES.items(), ids=PAGES)
def test_dense_search_ignores_the_words(vectors: Collection, name: str, body: str) -> None:
    (chunk,) = page(name, body)
    (best, *others) = vectors.search("cancel_pick_up", 3, embed([embedded_text(chunk)])[0])
    assert best.chunk == chunk
    assert best.score == pytest.approx(1, abs=1e-4)
    assert all(other.score < best.score for other in others)


def test_search_hits_returns_the_scores_of_search(vectors: Collection) -> None:
    vector = embed([embedded_text(*page("english", PAGES["english"]))])[0]
    for query_vector in (None, vector):
        found = vectors.search("isv.invalid-signature", 4, query_vector)
        hits = vectors.search_hits("isv.invalid-signature", 4, query_vector)
        ranking = {hit.id: score for hit, score in hits.items()}
        assert ranking == {hit.chunk.id: hit.score for hit in found}
        assert vectors.chunks_by_id(["unknown", *ranking]) == [hit.chunk for hit in found]
    assert vectors.chunks_by_id([]) == []


# --- reading


def test_chunks_of_document_are_ordered_by_position(docs: Collection) -> None:
    assert [chunk.body for chunk in docs.chunks_of_document("1180", "guides")] == ["地址", "参数"]
    assert docs.chunks_of_document("1180", "elsewhere") == []


@pytest.mark.parametrize(
    ("urls", "wanted", "expected"),
    [
        (["/dop/removal"], [], ["1180", "1180"]),
        ([], ["取消揽收"], ["1180", "1180"]),
        (["/dop/removal"], ["取消揽收"], ["1180", "1180"]),
        (["/dop/remova"], ["取消"], []),
        (["/DOP/REMOVAL"], [], []),
        (["%"], ["%"], []),
        ([], [], []),
    ],
)
def test_chunks_by_api_matches_exact_urls_and_names(
    docs: Collection, urls: list[str], wanted: list[str], expected: list[str]
) -> None:
    assert names(docs.chunks_by_api(urls, wanted)) == expected


@pytest.mark.parametrize(("number", "name"), list(enumerate(ODD_NAMES)), ids=map(repr, ODD_NAMES))
def test_filters_escape_special_characters(docs: Collection, number: int, name: str) -> None:
    assert names(docs.chunks_of_document(name, f"odd {name}")) == [name]
    assert names(docs.chunks_by_api([], [name])) == [name]
    assert names(docs.chunks_by_api([f"/{number}/{name}"], [])) == [name]
    assert docs.word_counts([name]) == {}


def test_word_counts_cover_all_chunks(docs: Collection) -> None:
    counted = docs.word_counts(["名称", "refunds", "cancelpickup", "名称", "没有这个词", '"'])
    assert counted == {"名称": 2 * len(ODD_NAMES), "refunds": 1, "cancelpickup": 1}
    assert docs.word_counts([]) == {}


# --- the manifest


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
        use_milvus(collection._record._settings, create)
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


# --- writing


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


def sections(count: int, fail: bool = False) -> Iterator[Chunk]:
    yield from page("half", *(f"第 {number} 节" for number in range(count)))
    if fail:
        raise SourceError("half way")


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


FILTERS = [
    (Filters(service="orders"), {"a", "b"}),
    (Filters(source="news"), {"b", "c"}),
    (Filters(service="orders", source="news"), {"b"}),
    (Filters(metadata={"version": "v1"}), {"a", "c"}),
    (Filters(metadata={"version": "v1"}, source="news"), {"c"}),
    (Filters(metadata={"the \"key\".with 'quotes' 中文": "x"}), {"b"}),
    (Filters(metadata={"version": "v1", "lang": "go"}), {"c"}),
    (Filters(service="unknown"), set()),
    (Filters(metadata={"unknown": ""}), set()),
]


@pytest.fixture(scope="module")
def filtered(connect: Connect) -> Collection:
    """Three pages with an embedding and different services, sources and metadata; read only."""
    collection = connect("filtered", embedding_model="test:counts")
    odd = {"the \"key\".with 'quotes' 中文": "x"}
    chunks = [
        *page("a", "订单说明", api_name="x", service_id="orders", metadata={"version": "v1"}),
        *page("b", "订单说明二", source="news", service_id="orders", metadata=odd),
        *page("c", "订单", source="news", metadata={"version": "v1", "lang": "go"}),
    ]
    write(collection, chunks, embed)
    return collection


@pytest.mark.parametrize("vector", [None, *embed(["订单"])])
@pytest.mark.parametrize(("filters", "expected"), FILTERS)
def test_search_applies_filters(
    filtered: Collection, filters: Filters, expected: set[str], vector: Vector | None
) -> None:
    found = filtered.search_hits("订单", 10, vector, filters)
    assert set(names(filtered.chunks_by_id([hit.id for hit in found]))) == expected


def test_sample_is_stable_and_about_as_large_as_asked_for(docs: Collection) -> None:
    sample = docs.sample(10)
    assert sample == docs.sample(10)
    assert 1 <= len(sample) <= 20
    assert len(docs.sample(1_000)) == docs.manifest.rows


def test_chunks_with_nul_are_stored_as_written(connect: Connect) -> None:
    collection = connect("nul")
    chunks = page("nul\0id", "订单\0说明", metadata={"a\0": "b\0"})
    write(collection, chunks)
    assert collection.chunks_of_document("nul\0id", "guides") == chunks
    assert collection.chunks_by_id([chunks[0].id]) == chunks
    assert [hit.chunk for hit in collection.search("订单", 3)] == chunks


@pytest.mark.parametrize("question", ["\ud800 signature", "signature\0", "\udfffsignature"])
def test_questions_with_invalid_text_are_searched(docs: Collection, question: str) -> None:
    assert search(docs, question) == ["signing"]


def test_cache_reads_each_key_once_until_cleared() -> None:
    asked: list[str] = []

    def read(words: list[str]) -> dict[str, int]:
        asked.extend(words)
        return {word: 0 for word in words if word != "nowhere"}

    counts = ReadThroughCache(read, max_keys=3)
    assert counts.get(["签名", "nowhere"]) == {"签名": 0}
    assert asked == ["签名", "nowhere"]
    assert counts.get(["nowhere", "签名"]) == {"签名": 0}
    assert asked == ["签名", "nowhere"]
    assert list(counts.get(["订单", "发货", "签名", "订单"])) == ["订单", "发货", "签名"]
    assert asked == ["签名", "nowhere", "订单", "发货"]
    counts.get(["nowhere"])  # evicted as the least recently used key
    assert asked[-1] == "nowhere"
    counts.clear()
    counts.get(["签名"])
    assert asked[-2:] == ["nowhere", "签名"]


def test_cache_drops_values_read_before_a_concurrent_clear() -> None:
    def read(keys: list[str]) -> dict[str, int]:
        values.clear()
        return dict.fromkeys(keys, len(reads))

    reads: list[int] = []
    values = ReadThroughCache(read, max_keys=3)
    assert values.get(["a"]) == {"a": 0}
    reads.append(1)
    assert values.get(["a"]) == {"a": 1}


def test_word_counts_survive_a_reload(sample_service: AnswerService) -> None:
    collection = sample_service.collection
    before = collection.word_counts(["签名", "nowhere"])
    collection.load()
    assert collection.word_counts(["签名", "nowhere"]) == before
    assert list(before) == ["签名"]
