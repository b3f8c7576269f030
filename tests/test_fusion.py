"""Tests of rank fusion: the result is never much worse than the better of both rankings."""

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from app.service.answer_service import AnswerService, connect_answer_service
from ingestion.store.manifest import RouteCalibration
from ingestion.store.schema import searchable_text
from ingestion.text.words import vocabulary_words
from runnables.retrieval.ranking import (
    MAX_DENSE_WEIGHT,
    UNCALIBRATED_DENSE_WEIGHT,
    dense_weight,
    fuse,
)
from runnables.retrieval.retriever import RetrievalMode
from schemas.question import Question
from schemas.settings import read_settings
from tests.conftest import ServiceFactory
from tests.model_script import Reply
from tests.model_server import ModelServer
from tests.openai_objects import bigram_embedding

QUESTIONS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "retrieval_samples.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
DIMENSION = 64

Embed = Callable[[str], list[float]]


@pytest.mark.parametrize(
    ("full_text", "dense", "fused"),
    [
        ("ab", "xy", "abxy"),
        ("ab", "bay", "aby"),
        ("abc", "cxy", "cabxy"),
        ("", "by", "by"),
        ("ab", "", "ab"),
        ("", "", ""),
    ],
    ids=["disjoint", "same hits", "found by both", "no full text", "no vectors", "empty"],
)
def test_fuse_combines_ranks(full_text: str, dense: str, fused: str) -> None:
    scores = fuse(full_text, dense, 0.4)
    assert "".join(scores) == fused
    assert all(0 < score <= 1 for score in scores.values())


def test_best_full_text_hit_stays_first_at_maximum_dense_weight() -> None:
    fused = fuse(["a"], [f"x{n}" for n in range(60)], MAX_DENSE_WEIGHT)
    assert next(iter(fused)) == "a"


@pytest.mark.parametrize(
    ("measured", "weight"),
    [
        (None, UNCALIBRATED_DENSE_WEIGHT),
        (RouteCalibration(full_text=0.9, dense=0.9, rows=1), MAX_DENSE_WEIGHT),
        (RouteCalibration(full_text=0.2, dense=0.9, rows=1), MAX_DENSE_WEIGHT),
        (RouteCalibration(full_text=0.8, dense=0.6, rows=1), 0.3375),
        (RouteCalibration(full_text=0.9, dense=0.1, rows=1), 0.0),
        (RouteCalibration(full_text=0.5, dense=0.0, rows=1), 0.0),
        (RouteCalibration(full_text=0.0, dense=0.1, rows=1), MAX_DENSE_WEIGHT),
        (RouteCalibration(full_text=0.0, dense=0.0, rows=1), 0.0),
    ],
)
def test_dense_weight_follows_the_calibration(
    measured: RouteCalibration | None, weight: float
) -> None:
    assert dense_weight(measured) == pytest.approx(weight)


def noise(text: str) -> list[float]:
    """Return a meaningless vector: all texts are equally similar."""
    source = random.Random(text)
    return [source.gauss(0, 1) for _ in range(DIMENSION)]


def oracle(answer_service: AnswerService) -> Embed:
    """Return an embedding that knows the document of each question, and the document with most of its words."""
    ids = [stored.id for stored in answer_service.collection.stored_chunks()]
    texts = {searchable_text(c): c.document_id for c in answer_service.collection.chunks_by_id(ids)}
    words: dict[str, set[str]] = defaultdict(set)
    for text, document in texts.items():
        words[document].update(vocabulary_words(text))
    gold_documents = {question["question"]: question["gold"][0] for question in QUESTIONS}

    @cache
    def document_of(text: str) -> str:
        text_words = set(vocabulary_words(text))
        best = max(words, key=lambda document: len(text_words & words[document]))
        expected = (gold for question, gold in gold_documents.items() if text in question)
        return texts.get(text) or next(expected, best)

    def embed(text: str) -> list[float]:
        shared, own = noise(document_of(text)), noise(text)
        return [s + 0.6 * o for s, o in zip(shared, own, strict=True)]

    return embed


@pytest.fixture(scope="module")
def full_text(sample_service: AnswerService) -> float:
    """Hit rate of full text alone, which does not depend on the embedding."""
    return hit_at_5(sample_service, "full_text")


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("embedding", "weight"),
    [("noise", (0.0, 0.0)), ("bigrams", (0.1, 0.4)), ("oracle", (0.3, 0.45))],
)
def test_hybrid_search_is_as_good_as_the_better_route(
    make_service: ServiceFactory,
    sample_service: AnswerService,
    full_text: float,
    model_server: ModelServer,
    embedding: str,
    weight: tuple[float, float],
) -> None:
    embeddings = {"noise": noise, "bigrams": bigram_embedding, "oracle": oracle(sample_service)}
    model_server.embed = embeddings[embedding]
    answer_service = make_service(
        embedding_model="openai:scripted-embedding",
        embedding_base_url=model_server.base_url,
        embedding_api_key="test-key",
    )
    assert weight[0] <= dense_weight(answer_service.collection.manifest.calibration) <= weight[1]
    dense = hit_at_5(answer_service, "dense")
    requests = len(model_server.embedding_requests)
    hybrid = hit_at_5(answer_service, "hybrid")
    assert hybrid >= max(full_text, dense) - 0.01, (full_text, dense, hybrid)
    if embedding == "noise":
        assert dense < 0.5
        assert hybrid == full_text
        assert (
            len(model_server.embedding_requests) == requests
        )  # a route without weight is not queried
    if embedding == "oracle":
        assert dense > 0.95


def hit_at_5(answer_service: AnswerService, mode: RetrievalMode) -> float:
    """Return the share of questions whose page is among the documents of the first five chunks."""
    retriever = answer_service.retriever(mode)

    async def found(question: str) -> set[str]:
        chunks = await retriever.ainvoke(Question(text=question, k=5, language="zh"))
        return {retrieved.chunk.document_id for retrieved in chunks}

    async def hits() -> int:
        return sum([bool(await found(q["question"]) & set(q["gold"])) for q in QUESTIONS])

    return asyncio.run(hits()) / len(QUESTIONS)


def test_routes_are_calibrated_again_when_the_collection_has_doubled(
    model_server: ModelServer, tmp_path: Path
) -> None:
    platform = tmp_path / "platform.toml"
    platform.write_text(PLATFORM, encoding="utf-8")
    settings = read_settings(
        platform=platform,
        milvus_uri=str(tmp_path / "milvus.db"),
        database_url=f"sqlite:///{tmp_path / 'apidesk.db'}",
        embedding_model="openai:scripted-embedding",
        embedding_base_url=model_server.base_url,
        embedding_api_key="test-key",
    )
    job = connect_answer_service(settings).job

    def rows_measured(pages: int) -> int | None:
        for number in range(pages):
            (tmp_path / f"{number:03}.md").write_text(f"# Page {number}\n\nIts body is {number}.")
        job.run(job.new_run("start"))
        measured = job.collection.manifest.calibration
        return measured.rows if measured else None

    # What is embedded to measure says nothing of where it stands: no "Page" in it.
    model_server.embedding_reply = lambda request: (
        None if "Page" in request.body["input"][0] else Reply(status=401)
    )
    assert rows_measured(10) is None
    model_server.embedding_reply = None
    assert rows_measured(10) == 10
    requests = len(model_server.embedding_requests)
    assert rows_measured(10) == 10
    assert len(model_server.embedding_requests) == requests
    assert rows_measured(20) == 10
    assert rows_measured(21) == 21
    job.close()


PLATFORM = """
[platform]
name = "Measured"
description = "pages"
audience = "developers"
tone = "plain"
greeting = "Hello."
refusal = "No."
language = "en"

[[sources]]
name = "pages"
kind = "markdown"
path = "."
"""
