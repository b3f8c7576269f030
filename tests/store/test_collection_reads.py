"""Collections of every kind of store: searching and reading."""

import pytest

from app.service.answer_service import AnswerService
from ingestion.store.collection import Collection
from ingestion.store.schema import Vector, searchable_text
from schemas.question import Filters
from tests.chunks import DIMENSION, embed, page
from tests.collections import write
from tests.store.conftest import ODD_NAMES, PAGES, Connect, names, search


def test_languages_are_those_of_the_documents(connect: Connect) -> None:
    collection = connect("languages")
    write(collection, page("a", "中文"))
    assert collection.languages() == {"zh"}
    write(collection, [*page("a", "中文"), *page("b", "English", language="en")])
    assert collection.languages() == {"zh", "en"}


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


def test_vector_dimension_is_that_of_the_stored_vectors(
    docs: Collection, vectors: Collection
) -> None:
    for collection, dimension in ((docs, None), (vectors, DIMENSION)):
        collection.load()
        assert collection.vector_dimension == dimension


@pytest.mark.parametrize(("name", "body"), PAGES.items(), ids=PAGES)
def test_dense_search_ignores_the_words(vectors: Collection, name: str, body: str) -> None:
    (chunk,) = page(name, body)
    (best, *others) = vectors.search("cancel_pick_up", 3, embed([searchable_text(chunk)])[0])
    assert best.chunk == chunk
    assert best.score == pytest.approx(1, abs=1e-4)
    assert all(other.score < best.score for other in others)


def test_search_hits_returns_the_scores_of_search(vectors: Collection) -> None:
    vector = embed([searchable_text(*page("english", PAGES["english"]))])[0]
    for query_vector in (None, vector):
        found = vectors.search("isv.invalid-signature", 4, query_vector)
        hits = vectors.search_hits("isv.invalid-signature", 4, query_vector)
        ranking = {hit.id: score for hit, score in hits.items()}
        assert ranking == {hit.chunk.id: hit.score for hit in found}
        assert vectors.chunks_by_id(["unknown", *ranking]) == [hit.chunk for hit in found]
    assert vectors.chunks_by_id([]) == []


def test_chunks_of_document_are_ordered_by_position(docs: Collection) -> None:
    assert [chunk.body for chunk in docs.chunks_of_document("1180", "guides")] == ["地址", "参数"]
    assert docs.chunks_of_document("1180", "elsewhere") == []


def test_neighbours_are_the_chunks_around_a_chunk(docs: Collection) -> None:
    address, parameters = docs.chunks_of_document("1180", "guides")
    assert docs.neighbours([address], 1) == [address, parameters]
    assert docs.neighbours([address, parameters], 1) == [address, parameters]
    assert docs.neighbours([parameters], 0) == [parameters]
    assert docs.neighbours([], 1) == []


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


@pytest.mark.parametrize("question", ["\ud800 signature", "signature\0", "\udfffsignature"])
def test_questions_with_invalid_text_are_searched(docs: Collection, question: str) -> None:
    assert search(docs, question) == ["signing"]


def test_word_counts_survive_a_reload(sample_service: AnswerService) -> None:
    collection = sample_service.collection
    before = collection.word_counts(["签名", "nowhere"])
    collection.load()
    assert collection.word_counts(["签名", "nowhere"]) == before
    assert list(before) == ["签名"]
