"""The embedding model fails for a question: full text is searched, and the readiness probe names the problem."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.main import create_app
from app.service.answer_service import AnswerService
from runnables.retrieval import retriever
from schemas.ingestion import IngestionOptions
from tests.acme import PAGES, PLATFORM, write_pages
from tests.conftest import ServiceFactory
from tests.http_client import http_client
from tests.model_script import Reply
from tests.model_server import ModelServer

pytestmark = pytest.mark.acceptance

SETTING = "APIDESK_EMBEDDING_MODEL=openai:scripted-embedding: "
QUESTION = "How many tokens may a workspace create?"


@pytest.fixture
def service(
    make_service: ServiceFactory, model_server: ModelServer, tmp_path: Path
) -> AnswerService:
    """A service with a few pages, whose vectors have 64 dimensions."""
    (tmp_path / "guides").mkdir()
    (tmp_path / "platform.toml").write_text(PLATFORM)
    write_pages(tmp_path, **PAGES)
    return make_service(
        platform=tmp_path / "platform.toml",
        retrieval="dense",
        embedding_model="openai:scripted-embedding",
        embedding_base_url=model_server.base_url,
        embedding_api_key="test-key",
    )


@pytest.fixture
def client(service: AnswerService, model_server: ModelServer) -> Iterator[TestClient[Litestar]]:
    with http_client(create_app(service)) as test_client:
        model_server.requests.clear()
        yield test_client


def vectors(*vectors: list[object]) -> Reply:
    data = [{"object": "embedding", "index": 0, "embedding": vector} for vector in vectors]
    return Reply(body=json.dumps({"object": "list", "data": data, "model": "m"}).encode())


def check(client: TestClient[Litestar]) -> dict[str, str]:
    """Return the readiness check of the embedding model."""
    ready = client.get("/health/ready")
    assert ready.status_code == 200
    found: dict[str, str] = ready.json()["checks"]["model:embedding"]
    return found


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        pytest.param(
            vectors([1.0] * 32),
            "vectors have 32 dimensions, the index has 64: run `apidesk ingest --rebuild`",
            id="other length",
        ),
        pytest.param(vectors([float("nan")] * 64), "vector that is zero or not finite", id="NaN"),
        pytest.param(vectors([0.0] * 64), "vector that is zero or not finite", id="zeros"),
        pytest.param(vectors([[1.0] * 64]), "a vector per token", id="vector per token"),
        pytest.param(vectors(["x"] * 64), "the reply cannot be read", id="no numbers"),
        pytest.param(vectors(), "the reply cannot be read", id="no vector"),
        pytest.param(
            Reply(f"Flagged: {QUESTION}", status=400),
            "the provider answers 400; check APIDESK_EMBEDDING_MODEL",
            id="400",
        ),
        pytest.param(Reply(status=401), "check APIDESK_EMBEDDING_API_KEY", id="401"),
    ],
)
def test_unusable_vector_searches_full_text_and_is_reported(
    client: TestClient[Litestar],
    model_server: ModelServer,
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
    problem: str,
) -> None:
    model_server.embedding_reply = reply

    found = client.post("/retrieve", json={"question": QUESTION})
    answer = client.post("/ask", json={"question": QUESTION})

    assert found.json()["sources"][0]["documentId"] == "quotas"
    assert "20 tokens" in "".join(answer.json()["answer"])
    assert problem in caplog.text
    failed = check(client)
    assert failed["status"] == "degraded"
    assert failed["detail"].startswith(SETTING)
    assert problem in failed["detail"]
    assert "tokens may" not in failed["detail"]

    model_server.embedding_reply = None
    client.post("/retrieve", json={"question": "How large may an uploaded file be?"})
    assert check(client) == {"status": "ok", "detail": "openai:scripted-embedding"}


def test_hanging_embedding_server_is_not_called_for_a_while(
    client: TestClient[Litestar],
    service: AnswerService,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retriever, "EMBEDDING_TIMEOUT_S", 0.05)
    model_server.embedding_reply = Reply(action="stall")

    def ask(number: int) -> None:
        found = client.post("/retrieve", json={"question": f"{QUESTION} {number}"})
        assert found.json()["sources"]

    for number in range(retriever.EMBEDDING_FAILURE_THRESHOLD + 2):
        ask(number)
    assert len(model_server.embedding_requests) == retriever.EMBEDDING_FAILURE_THRESHOLD
    assert check(client) == {"status": "degraded", "detail": f"{SETTING}no answer in time"}

    assert service.query_embeddings is not None
    monkeypatch.setattr(retriever, "EMBEDDING_TIMEOUT_S", 5)
    service.query_embeddings._circuit._recovery_timeout = 0
    model_server.embedding_reply = None
    ask(100)
    assert check(client)["status"] == "ok"


def test_rebuild_with_another_vector_length_is_searched(
    client: TestClient[Litestar], service: AnswerService, model_server: ModelServer
) -> None:
    """The cached vectors of questions have the old length."""
    client.post("/retrieve", json={"question": QUESTION})
    model_server.embed = lambda text: [float(len(text)), 1.0, 0.0]
    service.job.run(service.job.new_run("command", IngestionOptions(rebuild=True)))

    assert client.post("/retrieve", json={"question": QUESTION}).status_code == 200
    assert check(client)["status"] == "ok"
    assert service.collection.vector_dimension == 3
