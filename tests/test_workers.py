"""`apidesk serve --workers 2` with a Milvus server that is stopped, ingestion, and dying workers."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acme import PLATFORM, QUOTAS
from tests.milvus_server import MilvusServer
from tests.model_replies import draft, is_classification, structured
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.serving_process import APIDESK, TIMEOUT_S, ServingProcess, ask, paused, wait_until

pytestmark = pytest.mark.acceptance

UPLOADS = "# Uploads\n\nA file may be 20 MB large. Larger files are cut into parts.\n"
QUESTION = "how many tokens may a workspace create?"


class Site:
    """A platform, its store, and a server with two workers."""

    def __init__(self, folder: Path, milvus: MilvusServer, model: ModelServer) -> None:
        self.milvus = milvus
        self.model = model
        self.slow = threading.Event()
        """Set to release the replies to slow questions."""
        self._guides = folder / "guides"
        self._guides.mkdir()
        (folder / "platform.toml").write_text(PLATFORM)
        (self._guides / "uploads.md").write_text(UPLOADS)
        self.write(20)
        self.environment = {
            "APIDESK_MILVUS_URI": milvus.uri,
            "APIDESK_DATABASE_URL": f"sqlite:///{folder / 'apidesk.db'}",
            "APIDESK_PLATFORM": str(folder / "platform.toml"),
            "APIDESK_CHAT_MODEL": "openai:scripted-chat",
            "APIDESK_CHAT_BASE_URL": model.base_url,
            "APIDESK_CHAT_API_KEY": "test-key",
            "APIDESK_SHUTDOWN_TIMEOUT": "2",
            "TMPDIR": str(folder),
        }
        model.default = self._reply
        self.server = ServingProcess(folder / "log", self.environment, ["--workers", "2"])

    def write(self, number: int) -> None:
        """Write a document that allows `number` tokens."""
        (self._guides / "quotas.md").write_text(QUOTAS.format(number=number))

    def ingest(self) -> None:
        """Run `apidesk ingest`."""
        subprocess.run(
            [APIDESK, "ingest"],
            env=os.environ | self.environment,
            check=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )

    def _reply(self, request: Recorded) -> Any:
        """Quote the documents; wait for slow questions, and stall for endless ones."""
        if is_classification(request):
            return structured(type="general", api_name=None)
        question = request.text.partition("<question>")[2]
        if "endless" in question:
            return Reply(action="stall")
        if "slow" in question:
            assert self.slow.wait(TIMEOUT_S), "the test did not release the reply"
        match = re.search(r"Every workspace may create \d+ tokens", request.text)
        return draft(f"{match[0] if match else 'No quota found'}. [1]")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("workers")
    with MilvusServer(folder / "milvus") as milvus, ModelServer() as model:
        site = Site(folder, milvus, model)
        try:
            site.server.wait_for_workers(2)
            yield site
        finally:
            site.slow.set()
            site.server.process.kill()
            site.server.process.wait()


def test_workers_share_an_embedded_store(tmp_path: Path) -> None:
    """Two workers answer from the same files, also after another process has indexed a change."""
    (tmp_path / "guides").mkdir()
    (tmp_path / "platform.toml").write_text(PLATFORM)
    quotas = tmp_path / "guides" / "quotas.md"
    quotas.write_text(QUOTAS.format(number=20))
    environment = {
        "APIDESK_MILVUS_URI": str(tmp_path / "milvus.db"),
        "APIDESK_DATABASE_URL": f"sqlite:///{tmp_path / 'apidesk.db'}",
        "APIDESK_PLATFORM": str(tmp_path / "platform.toml"),
        "APIDESK_CACHE_ANSWERS": "false",
        "TMPDIR": str(tmp_path),
    }
    server = ServingProcess(tmp_path / "log", environment, ["--workers", "2"])
    try:
        server.wait_for_workers(2)
        for number in (20, 35):
            quotas.write_text(QUOTAS.format(number=number))
            command = [APIDESK, "ingest"]
            subprocess.run(command, env=os.environ | environment, check=True, timeout=TIMEOUT_S)
            for pid in server.workers:
                with paused([other for other in server.workers if other != pid]):
                    answer = ask(server.url, QUESTION).json()
                assert f"may create {number} tokens" in " ".join(answer["answer"])
    finally:
        server.process.kill()
        server.process.wait()


def answers_by_worker(site: Site) -> list[httpx.Response]:
    """The response of each worker, while the others are paused."""
    pids, responses = site.server.workers, []
    for pid in pids:
        with paused([other for other in pids if other != pid]):
            responses.append(ask(site.server.url, QUESTION))
    return responses


def answer_text(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["degraded"] is None
    assert answer["relatedUrl"] == ["https://acme.example/docs/quotas"]
    return str(answer["answer"][0])


def test_workers_do_not_load_the_embedded_store(site: Site) -> None:
    for pid in site.server.workers:
        loaded = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
        assert "cygrpc" in loaded
        assert not [name for name in ("faiss", "scipy/cluster") if name in loaded]


def test_workers_see_documents_indexed_by_another_process(site: Site) -> None:
    before, after = (f"Every workspace may create {number} tokens. [1]" for number in (20, 35))
    assert [answer_text(response) for response in answers_by_worker(site)] == [before] * 2
    wait_until(
        lambda: all(response.json()["cached"] for response in answers_by_worker(site)),
        "the workers share the cache",
    )

    meanwhile: list[str] = []
    done = threading.Event()

    def ask_repeatedly() -> None:
        while not done.is_set():
            meanwhile.append(answer_text(ask(site.server.url, QUESTION)))

    asking = threading.Thread(target=ask_repeatedly)
    asking.start()
    site.write(35)
    site.ingest()
    done.set()
    asking.join()
    assert [answer_text(response) for response in answers_by_worker(site)] == [after] * 2
    assert meanwhile == sorted(meanwhile)  # first the old text, then the new one
    assert set(meanwhile) <= {before, after}


def test_unavailable_store_returns_503_until_it_is_back(site: Site) -> None:
    site.milvus.stop()
    for response in answers_by_worker(site):
        assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
        assert response.headers["Retry-After"]
        assert site.milvus.uri.removeprefix("http://") not in response.text
    ready = httpx.get(f"{site.server.url}/health/ready", timeout=TIMEOUT_S, trust_env=False)
    assert (ready.status_code, ready.json()["checks"]["milvus"]["status"]) == (503, "failed")

    site.milvus.start()
    wait_until(
        lambda: all(response.status_code == 200 for response in answers_by_worker(site)),
        "both workers answer again",
    )
    assert "Traceback" not in site.server.log


def test_dead_worker_is_replaced(site: Site) -> None:
    dead = site.server.workers[0]
    os.kill(dead, signal.SIGKILL)
    site.server.wait_for_workers(3)
    assert dead not in site.server.workers[1:]
    with paused([site.server.workers[1]]):
        assert "tokens" in answer_text(ask(site.server.url, QUESTION))


def test_running_answers_are_finished_on_shutdown(site: Site) -> None:
    metrics = list(Path(site.environment["TMPDIR"]).glob("apidesk-metrics-*"))
    assert len(metrics) == 1
    slow: list[httpx.Response] = []
    endless: list[str] = []

    def ask_slowly() -> None:
        slow.append(ask(site.server.url, f"slow: {QUESTION}"))

    def ask_endlessly() -> None:
        body, accept = {"question": f"endless: {QUESTION}"}, {"Accept": "text/event-stream"}
        with httpx.stream(
            "POST", f"{site.server.url}/ask", json=body, headers=accept, timeout=TIMEOUT_S
        ) as response:
            endless.extend(response.iter_lines())

    asking = [threading.Thread(target=work) for work in (ask_slowly, ask_endlessly)]
    for thread in asking:
        thread.start()
    wait_until(
        lambda: {"slow", "endless"} <= {kind for r in site.model.chat_requests
                                         if not is_classification(r)
                                         for kind in ("slow", "endless") if kind in r.text},
        "both answers are being written",
    )  # fmt: skip
    site.server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: site.server.log.count("Shutting down") >= 2, "both workers stop")
    with pytest.raises(httpx.ConnectError):
        ask(site.server.url, QUESTION)
    site.slow.set()
    for thread in asking:
        thread.join()
    assert answer_text(slow[0]) == "Every workspace may create 35 tokens. [1]"
    assert "event: error" in endless
    assert any('"code": "stopping"' in line for line in endless)
    assert site.server.process.wait(TIMEOUT_S) == 0
    assert "Traceback" not in site.server.log
    assert not metrics[0].exists()
