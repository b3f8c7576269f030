"""Tests of ChunkEmbedder: batches, concurrent requests, retries, and limited read-ahead."""

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.main import main
from ingestion import embeddings
from ingestion.embeddings import MAX_ATTEMPTS, ChunkEmbedder, SavedVectors, open_embeddings
from ingestion.job import IngestionJob
from schemas.document import Chunk
from schemas.errors import (
    ModelError,
    ModelOutputInvalid,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from schemas.settings import read_settings
from tests.acme import PLATFORM
from tests.chunks import page
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer

pytestmark = pytest.mark.usefixtures("no_backoff")


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
    saved = SavedVectors.next_to_snapshot(settings) if "milvus_uri" in overrides else None
    return ChunkEmbedder(model, settings, saved)


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
    """Each request but the first, which is measured, waits until two others have been sent."""
    together = threading.Barrier(3, timeout=10)
    model = embedder(model_server)
    asked = model._model.embed_documents

    def embed(batch: list[str]) -> list[list[float]]:
        if model_server.embedding_requests:
            together.wait()
        return asked(batch)

    object.__setattr__(model._model, "embed_documents", embed)
    assert len(list(model.embed(iter(sections(16))))) == 4


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


@pytest.mark.parametrize("seconds", ["86400", "inf"])
def test_server_cannot_delay_a_retry_for_long(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setattr(embeddings, "MAX_RETRY_WAIT_S", 0.1)
    replies = iter([Reply(status=429, headers={"retry-after": seconds}), None])
    model_server.embedding_reply = lambda _: next(replies)
    ((_, vectors),) = embedder(model_server).embed(iter(sections(1)))
    assert len(vectors) == 1


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


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        ([[1.0, 0.0]], "the server returned 1 vectors for 2 texts"),
        ([[1.0, 0.0], [1.0]], "MODEL=[^ ]+: the server returned vectors of different lengths"),
        ([[[1.0, 0.0]] * 2, [[1.0, 0.0]] * 5], "a vector per token instead of one per text"),
        ([[[1.0, 0.0]] * 2] * 2, r"with pooling \(llama.cpp: --pooling mean\), or choose"),
    ],
    ids=["few", "uneven", "per token", "per token, equal numbers"],
)
@pytest.mark.filterwarnings("default")
def test_invalid_vectors_are_refused(
    model_server: ModelServer,
    vectors: list[object],
    sentence: str,
    recwarn: pytest.WarningsRecorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
    body = {
        "object": "list",
        "data": listed,
        "model": "m",
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }
    model_server.embedding_reply = Reply(body=json.dumps(body).encode())
    with pytest.raises(ModelOutputInvalid, match=sentence):
        list(embedder(model_server).embed(iter(sections(2))))
    assert not [each for each in recwarn if "Pydantic" in str(each.message)]

    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("APIDESK_EMBEDDING_MODEL", "openai:scripted-embedding")
    monkeypatch.setenv("APIDESK_EMBEDDING_BASE_URL", model_server.base_url)
    monkeypatch.setenv("APIDESK_EMBEDDING_API_KEY", "test-key")
    checked = CliRunner().invoke(main, ["check"])
    assert checked.exit_code == 1
    assert re.search(sentence, checked.output)


def assert_vectors(server: ModelServer, model: ChunkEmbedder, chunks: list[Chunk]) -> None:
    """Assert that each chunk gets its own vector."""
    batches = list(model.embed(iter(chunks)))
    assert [chunk for batch, _ in batches for chunk in batch] == chunks
    for batch, vectors in batches:
        for chunk, vector in zip(batch, vectors, strict=True):
            expected = server.embed(f"long > 节\n{chunk.body}")
            assert vector == pytest.approx(expected, abs=1e-6)


@pytest.mark.acceptance
def test_slow_server_that_answers_one_after_the_other_ends_in_time(
    model_server: ModelServer,
) -> None:
    """With 8 requests of 32 texts at once, the last would wait for 25 s."""
    busy = threading.Lock()

    def reply(request: Recorded) -> None:
        with busy:
            time.sleep(0.1 * len(texts(request)))

    model_server.embedding_reply = reply
    model = embedder(model_server, embedding_batch=32, embedding_requests=8, request_timeout=2)
    assert_vectors(model_server, model, sections(40))
    sizes = [len(texts(request)) for request in model_server.embedding_requests]
    assert sum(sizes) == 40, "no text was sent twice"
    assert sizes[0] == 4
    assert max(sizes) <= 10


def test_slow_server_gets_one_request_at_a_time(model_server: ModelServer) -> None:
    """At 0.1 s per text, two batches of four texts take more than half of the time limit."""
    lock = threading.Lock()
    active, peak = 0, 0

    def reply(request: Recorded) -> None:
        nonlocal active, peak
        with lock:
            active += 1
            peak = max(peak, active)
        time.sleep(0.1 * len(texts(request)))
        with lock:
            active -= 1

    model_server.embedding_reply = reply
    model = embedder(model_server, embedding_requests=4, request_timeout=1.2)
    assert_vectors(model_server, model, sections(16))
    assert peak == 1


@pytest.mark.acceptance
def test_batches_that_time_out_are_halved(model_server: ModelServer) -> None:
    """The first request is fast, but a request with more than two texts takes too long later."""
    slow = Reply(delay=2)
    model_server.embedding_reply = lambda request: (
        slow if len(model_server.embedding_requests) > 1 and len(texts(request)) > 2 else None
    )
    model = embedder(model_server, embedding_batch=8, embedding_requests=1, request_timeout=0.5)
    assert_vectors(model_server, model, sections(24))
    sizes = [len(texts(request)) for request in model_server.embedding_requests]
    assert sizes[:4] == [4, 8, 4, 2]
    assert sizes[-1] == 2, "later batches are small from the start"


def test_text_that_takes_too_long_names_the_settings(model_server: ModelServer) -> None:
    model_server.embedding_reply = Reply(delay=2)
    model = embedder(model_server, embedding_batch=2, request_timeout=0.3)
    words = "one text takes longer than APIDESK_REQUEST_TIMEOUT: raise this limit, or lower APIDESK_EMBED"
    with pytest.raises(ModelTimeout, match=words):
        list(model.embed(iter(sections(2))))


@pytest.mark.parametrize("end", ["an error", "a kill"])
def test_failed_run_is_resumed_without_embedding_again(
    model_server: ModelServer, tmp_path: Path, end: str
) -> None:
    """The first run ends when 8 of 20 texts are embedded; other texts keep their vectors as well."""
    settings = {"milvus_uri": str(tmp_path / "milvus.db"), "embedding_requests": 1}
    chunks = sections(20)
    if end == "an error":
        model_server.embedding_reply = lambda request: (
            Reply(status=401) if len(model_server.embedding_requests) > 2 else None
        )
        with pytest.raises(ModelRefused):
            list(embedder(model_server, **settings).embed(iter(chunks)))
    else:
        started = embedder(model_server, **settings).embed(iter(chunks))
        next(started), next(started)
        started.close()
    model_server.embedding_reply = None
    before = len(model_server.embedding_requests)

    resumed = embedder(model_server, **settings)
    assert_vectors(model_server, resumed, chunks)
    sent = [text for request in model_server.embedding_requests[before:] for text in texts(request)]
    assert len(sent) == 12
    assert list(tmp_path.glob("*.vectors"))
    resumed.discard_saved_vectors()
    assert not list(tmp_path.glob("*.vectors"))


@pytest.mark.parametrize(
    "other",
    [
        {"embedding_model": "openai:other"},
        {"model_options": {"embedding": {"model_kwargs": {"user": "other"}}}},
    ],
    ids=["model", "options"],
)
def test_vectors_of_another_model_are_not_used(
    other: dict[str, object], model_server: ModelServer, tmp_path: Path
) -> None:
    settings = {"milvus_uri": str(tmp_path / "milvus.db")}
    for overrides in (settings, settings | other):
        list(embedder(model_server, **overrides).embed(iter(sections(2))))
    assert len(model_server.embedding_requests) == 2


def test_successful_run_deletes_the_vectors(model_server: ModelServer, tmp_path: Path) -> None:
    platform = tmp_path / "platform.toml"
    platform.write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    for number in range(6):
        text = f"# Page {number}\n\nThe quota of page {number} is 1{number} tokens."
        (tmp_path / "guides" / f"{number}.md").write_text(text)
    settings = read_settings(
        platform=platform,
        milvus_uri=str(tmp_path / "milvus.db"),
        database_url=f"sqlite:///{tmp_path / 'apidesk.db'}",
        embedding_model="openai:scripted-embedding",
        embedding_base_url=model_server.base_url,
        embedding_api_key="test-key",
        embedding_batch=1,
        embedding_requests=1,
    )
    job = IngestionJob.connect(settings)
    model_server.embedding_reply = lambda request: (
        Reply(status=401) if len(model_server.embedding_requests) > 3 else None
    )
    with pytest.raises(ModelRefused):
        job.run(job.new_run("command"))
    assert list(tmp_path.glob("*.vectors"))
    model_server.embedding_reply = None
    assert job.run(job.new_run("command")).state == "succeeded"
    job.close()
    assert not list(tmp_path.glob("*.vectors"))
    passages = [text for request in model_server.embedding_requests for text in texts(request)]
    assert len(passages) - len(set(passages)) <= 2, "the refused text, and one that was waiting"
