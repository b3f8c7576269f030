"""Tests of `make bench-retrieval` with a set of four pages."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.answers.run import Measured as MeasuredPart
from benchmarks.answers.sets import PARTS
from benchmarks.document import table, truncate, write_between_markers
from benchmarks.retrieval import main, write_document
from benchmarks.retrieval_quality import Measured, embeddings, measure, settings_of
from benchmarks.retrieval_report import figure_name, report
from benchmarks.retrieval_sets import RetrievalSet, public_set
from benchmarks.retrieval_speed import Speed
from benchmarks.scripted_vectors import DIMENSION, Embedding, NGrams, Noise, Oracle
from benchmarks.vector_server import serve_vectors
from ingestion.embeddings import open_embeddings
from schemas.settings import SAMPLE_PLATFORM

pytestmark = pytest.mark.acceptance

PAGES = {
    "a/x.md": ("Refunds<a name='r'></a>", "Money goes back to the buyer within three days."),
    "b||y": ("Parcels", "A courier fetches each parcel in the morning."),
    "c": ("Invoices", "An invoice is red when it takes another one back."),
    "d": ("Stock", "The warehouse counts what is left on the shelf."),
}
QUESTIONS = [
    ("When does the buyer get money back?", "a/x.md"),
    ("When does the courier fetch a parcel?", "b||y"),
    ("What is a red invoice?", "c"),
    ("zebra", "d"),
]
SPEED = Speed("full text", 10_000, 100, p50=8.0, p95=12.0, first=10.0, tenth=5.0)


@pytest.fixture(scope="module")
def tiny_set(tmp_path_factory: pytest.TempPathFactory) -> RetrievalSet:
    """A public set, read from its two files."""
    folder = tmp_path_factory.mktemp("sets")
    given = folder / "tiny"
    given.mkdir()
    corpus = [{"id": id, "title": title, "text": text} for id, (title, text) in PAGES.items()]
    queries = [{"id": text, "query": text, "gold": [gold]} for text, gold in QUESTIONS]
    for name, lines in (("corpus", corpus), ("queries", queries)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (given / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return public_set(given, folder / "pages")


@pytest.fixture(scope="module")
def measured(tiny_set: RetrievalSet) -> Measured:
    """The set measured with the oracle embedding, in this process."""
    documents = tiny_set.documents(400)
    oracle = embeddings(tiny_set, documents)[-1]
    return measure(tiny_set, documents, oracle, run=lambda work: work())


def test_public_set_becomes_pages_with_titles(tiny_set: RetrievalSet) -> None:
    documents = tiny_set.documents(400)
    assert [chunks[0].title for chunks in documents.sample] == [
        "Refunds",
        "Parcels",
        "Invoices",
        "Stock",
    ]
    assert [documents.gold_documents(question) for question in tiny_set.questions] == [
        [frozenset({f"pages/{number:06}"})] for number in range(4)
    ]


def test_large_set_is_sampled_deterministically(tiny_set: RetrievalSet, tmp_path: Path) -> None:
    given = tiny_set.platform.parent.with_name("tiny")
    chosen = [public_set(given, tmp_path / name, most=2) for name in ("one", "two")]
    assert chosen[0].questions == chosen[1].questions
    assert (len(chosen[0].questions), chosen[0].held) == (2, 4)


def test_every_route_is_measured(measured: Measured) -> None:
    assert [route.mode for route in measured.evaluation.routes] == ["full_text", "dense", "hybrid"]
    assert measured.hit("full_text") == 0.75
    assert measured.hit("dense") == 1.0
    assert [(miss.question, miss.marked) for miss in measured.misses] == [("zebra", "Stock")]


def with_hits(measured: Measured, **hits: float) -> Measured:
    """Copy `measured` with another hit@k of its routes, for every k."""
    routes = [
        route.model_copy(update={"hit": (hits[route.mode],) * 20})
        for route in measured.evaluation.routes
    ]
    evaluation = measured.evaluation.model_copy(update={"routes": tuple(routes)})
    return replace(measured, evaluation=evaluation)


@pytest.mark.parametrize(
    ("hybrid", "loses"), [(0.95, False), (0.90, False), (0.892, False), (0.88, True)]
)
def test_hybrid_is_compared_with_the_better_route(
    measured: Measured, hybrid: float, loses: bool
) -> None:
    one = with_hits(measured, full_text=0.9, dense=0.3, hybrid=hybrid)
    other = with_hits(measured, full_text=0.3, dense=0.9, hybrid=hybrid)
    assert one.gain == other.gain == pytest.approx(hybrid - 0.9)
    assert one.loses is other.loses is loses


def test_report_names_losses_and_missing_sets(measured: Measured) -> None:
    losing = with_hits(measured, full_text=0.9, dense=0.3, hybrid=0.8)
    developers = [MeasuredPart(part, {}) for part in PARTS]
    text = report([losing], developers, [SPEED], ["xquad_zh"], cores=2)
    assert "on a machine with 2 cores" in text
    assert "| set | work: n | page@5 | evidence@5 | measure: n | page@5 | evidence@5 |" in text
    assert "Sets without data are omitted: xquad_zh." in text
    assert "| tiny | 0.900 | 0.300 | 0.800 | **-0.100** |" in text
    assert "| full text | 10,000 | 100 | 8.0 | 12.0 | 10.0 | 5.0 | 2.00 |" in text


def test_only_text_between_markers_is_replaced(measured: Measured, tmp_path: Path) -> None:
    drawn = replace(measured, name="samples", embedding="n-grams")
    document = tmp_path / "explanation" / "retrieval.md"
    document.parent.mkdir()
    document.write_text(
        "# 检索\n<!-- figures -->\nold\n<!-- /figures -->\n\nafter", encoding="utf-8"
    )
    for text in ("first", "second"):
        write_document(document, text, [measured, drawn])
    assert document.read_text(encoding="utf-8") == (
        "# 检索\n<!-- figures -->\nsecond\n<!-- /figures -->\n\nafter"
    )
    assert [path.name for path in (tmp_path / "images").iterdir()] == [figure_name("samples")]


@pytest.mark.parametrize(
    "held", ["nothing", "<!-- /figures --><!-- figures -->", "<!-- figures -->" * 2]
)
def test_document_without_markers_is_unchanged(held: str, tmp_path: Path) -> None:
    document = tmp_path / "retrieval.md"
    document.write_text(held, encoding="utf-8")
    with pytest.raises(ValueError, match="once each"):
        write_between_markers(document, "text")
    assert document.read_text(encoding="utf-8") == held


def test_table_escapes_pipes() -> None:
    assert table(["a", "b"], [["x|y", "1"]]) == "| a | b |\n| --- | ---: |\n| x\\|y | 1 |"
    assert truncate("one  two\nthree", 9) == "one two…"


# --- the scripted embeddings --------------------------------------------------------------------

TEXTS = {f"d{n}": [f"text {n} of a page", f"more {n}"] for n in range(300)}
ASKED = {f"question {n}?": [f"d{n}"] for n in range(300)}


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    """An oracle over 300 documents."""
    return Oracle(TEXTS, ASKED)


@pytest.mark.parametrize(
    "embedding", [Noise(), NGrams(), Oracle(TEXTS, ASKED)], ids=lambda e: e.name
)
def test_vectors_are_deterministic_unit_vectors(embedding: Embedding) -> None:
    texts = ["question 3?", "text 3 of a page", "发货", "", "never seen"]
    vectors = embedding.vectors(texts)
    assert vectors.shape == (5, DIMENSION)
    assert np.array_equal(vectors[1:], embedding.vectors(texts[1:]))
    lengths = np.linalg.norm(vectors, axis=1)
    assert all(np.isclose(lengths, 1) | (lengths == 0))


def test_n_grams_reflect_similarity() -> None:
    asked, same, other = NGrams().vectors(["发货接口的参数", "发货接口有哪些参数", "退款多久到账"])
    assert asked @ same > asked @ other


def test_oracle_finds_the_configured_share(oracle: Oracle) -> None:
    chunks = oracle.vectors([text for texts in TEXTS.values() for text in texts])
    nearest = np.argsort(-oracle.vectors(list(ASKED)) @ chunks.T, axis=1)[:, :10] // 2
    hits = [any(place == number for place in row) for number, row in enumerate(nearest)]
    assert 0.94 <= sum(hits) / len(hits) <= 0.99


@pytest.mark.parametrize(
    "text", ["Is an invoice red?", "an invoice red", "red for", "by courier red reason", "invoices"]
)
def test_oracle_maps_texts_to_documents(text: str) -> None:
    documents = {"red": ["invoices are red for a reason"], "parcel": ["a courier takes goods"]}
    oracle = Oracle(documents, {"Is an invoice red?": ["red"], "Who takes goods?": ["parcel"]})
    assert oracle.about(text) == ("red",)


def test_openai_client_receives_the_vectors(tmp_path: Path) -> None:
    with serve_vectors(NGrams()) as url:
        client = open_embeddings(settings_of(tmp_path, SAMPLE_PLATFORM, "n-grams", url))
        assert client is not None
        found = client.embed_documents(["发货", "invoice"])
    assert np.allclose(found, NGrams().vectors(["发货", "invoice"]))


def test_command_help_lists_the_options() -> None:
    assert {"data", "corpora", "document", "sections"} == {option.name for option in main.params}
