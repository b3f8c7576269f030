"""SIGTERM ends an ingestion run at its next document."""

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from ingestion.runs import IngestionRunStore
from schemas.settings import read_settings
from tests.acme import PLATFORM
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.serving_process import APIDESK, TIMEOUT_S, wait_until

pytestmark = pytest.mark.acceptance

STOPPED = "the run was stopped before it finished; the next run continues it"


@pytest.fixture
def embedding() -> threading.Event:
    """Set to release the embedding model."""
    return threading.Event()


@pytest.mark.parametrize(("arguments", "code"), [([], 1), (["--watch"], 0)], ids=["once", "watch"])
def test_sigterm_ends_run_at_next_document(
    tmp_path: Path,
    model_server: ModelServer,
    embedding: threading.Event,
    arguments: list[str],
    code: int,
) -> None:
    def embed(request: Recorded) -> Reply | None:
        assert embedding.wait(TIMEOUT_S), "the test did not release the model"
        return None

    model_server.embedding_reply = embed
    (tmp_path / "guides").mkdir()
    for number in range(20):
        (tmp_path / "guides" / f"{number}.md").write_text(f"# Page {number}\n\nOne sentence.\n")
    (tmp_path / "platform.toml").write_text(PLATFORM)
    environment = {
        "APIDESK_MILVUS_URI": str(tmp_path / "milvus.db"),
        "APIDESK_DATABASE_URL": f"sqlite:///{tmp_path / 'apidesk.db'}",
        "APIDESK_PLATFORM": str(tmp_path / "platform.toml"),
        "APIDESK_EMBEDDING_MODEL": "openai:scripted-embedding",
        "APIDESK_EMBEDDING_BASE_URL": model_server.base_url,
        "APIDESK_EMBEDDING_API_KEY": "test-key",
        "APIDESK_EMBEDDING_BATCH": "1",
        "APIDESK_EMBEDDING_REQUESTS": "2",
    }
    process = subprocess.Popen(
        [APIDESK, "ingest", *arguments],
        env=os.environ | environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: bool(model_server.embedding_requests), "the run embeds")
    process.send_signal(signal.SIGTERM)
    embedding.set()
    _, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr
    settings = read_settings(
        milvus_uri=environment["APIDESK_MILVUS_URI"],
        database_url=environment["APIDESK_DATABASE_URL"],
    )
    (run,) = IngestionRunStore.open(settings).latest()
    assert (run.state, run.error) == ("failed", STOPPED)
    assert len(model_server.embedding_requests) < 20
