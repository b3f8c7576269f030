"""Tests of ChunkEmbedder: batches, concurrent requests, retries, and limited read-ahead."""

import json
import threading
from collections.abc import Iterator

import pytest
from tenacity import wait_none

from ingestion.embeddings import MAX_ATTEMPTS, ChunkEmbedder, open_embeddings
from schemas.document import Chunk
from schemas.errors import ModelError, ModelOutputInvalid, ModelRefused, ModelUnavailable
from schemas.settings import read_settings
from tests.model_server import ModelServer, Recorded, Reply
from tests.test_collection import page


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingestion.providers._backoff", wait_none())


def embedder(server: ModelServer, **overrides: object) -> ChunkEmbedder:
    settings = read_settings(
        **{
            "embedding_model": "openai:scripted-embedding",
            "embedding_base_url": server.base_url,
            "embedding_api_key": "test-key",
            "embedding_batch": 4,
            "embedding_requests": 3,
            **overrides,
        }
    )
    model = open_embeddings(settings)
    assert model is not None
    return ChunkEmbedder(model, settings)


def sections(count: int) -> list[Chunk]:
    return page("long", *(f"section number {number}" for number in range(count)))


def texts(request: Recorded) -> list[str]:
    found: list[str] = request.body["input"]
    return found


def test_chunks_are_embedded_once_and_in_order(model_server: ModelServer) -> None:
    chunks = sections(10)
    batches = list(embedder(model_server).embed(iter(chunks)))
    assert [len(batch) for batch, _ in batches] == [4, 4, 2]
    assert [chunk for batch, _ in batches for chunk in batch] == chunks
    for batch, vectors in batches:
        for chunk, vector in zip(batch, vectors, strict=True):
            expected = model_server.embed(f"long > 节\n{chunk.body}")
            assert vector == pytest.approx(expected, abs=1e-6)
    assert sorted(len(texts(request)) for request in model_server.embedding_requests) == [2, 4, 4]


def test_no_chunks_send_no_request(model_server: ModelServer) -> None:
    assert list(embedder(model_server).embed(iter([]))) == []
    assert model_server.embedding_requests == []


def test_requests_run_concurrently(model_server: ModelServer) -> None:
    """Each request waits until two others have been sent."""
    together = threading.Barrier(3, timeout=10)
    model = embedder(model_server)
    asked = model._model.embed_documents

    def embed(batch: list[str]) -> list[list[float]]:
        together.wait()
        return asked(batch)

    object.__setattr__(model._model, "embed_documents", embed)
    assert len(list(model.embed(iter(sections(12))))) == 3


def test_embedder_limits_how_far_it_reads_ahead(model_server: ModelServer) -> None:
    read: list[Chunk] = []

    def chunks() -> Iterator[Chunk]:
        for chunk in sections(100):
            read.append(chunk)
            yield chunk

    stream = embedder(model_server).embed(chunks())
    next(stream)
    assert len(read) <= 4 * (3 + 1)
    stream.close()
    assert len(read) <= 4 * (3 + 1)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_failed_request_is_retried(model_server: ModelServer, status: int) -> None:
    def reply(request: Recorded) -> Reply | None:
        return Reply(status=status) if len(model_server.embedding_requests) < MAX_ATTEMPTS else None

    model_server.embedding_reply = reply
    ((_, vectors),) = embedder(model_server, embedding_requests=1).embed(iter(sections(2)))
    assert len(vectors) == 2
    assert len(model_server.embedding_requests) == MAX_ATTEMPTS


@pytest.mark.parametrize(
    ("reply", "error", "requests"),
    [
        (Reply(status=503), ModelUnavailable, MAX_ATTEMPTS),
        (Reply(status=401), ModelRefused, 1),
        (Reply(status=404), ModelRefused, 1),
        (Reply(body=b"<html>"), ModelError, MAX_ATTEMPTS),
    ],
    ids=["down", "key", "name", "no JSON"],
)
def test_permanent_error_is_raised(
    model_server: ModelServer, reply: Reply, error: type[ModelError], requests: int
) -> None:
    model_server.embedding_reply = reply
    with pytest.raises(error, match="APIDESK_EMBEDDING_MODEL=openai:scripted-embedding"):
        list(embedder(model_server).embed(iter(sections(2))))
    assert len(model_server.embedding_requests) == requests


@pytest.mark.parametrize("vectors", [[[1.0, 0.0]], [[1.0, 0.0], [1.0]]], ids=["few", "uneven"])
def test_invalid_vectors_are_refused(model_server: ModelServer, vectors: list[list[float]]) -> None:
    listed = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
    body = {
        "object": "list",
        "data": listed,
        "model": "m",
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }
    model_server.embedding_reply = Reply(body=json.dumps(body).encode())
    with pytest.raises(ModelOutputInvalid, match="vectors for 2 texts, or of several lengths"):
        list(embedder(model_server).embed(iter(sections(2))))
