"""Commands while `apidesk serve` uses the store."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from app.service.answer_service import AnswerService
from app.serving.local_server import announce_server, find_running_server
from schemas.answer import Answer
from schemas.ingestion import IngestionRun
from schemas.settings import read_settings
from tests.cli.commands import (
    APIDESK,
    QUESTION,
    answer,
    assert_single_error_line,
    environment_of,
    rows,
    run,
    stable_fields,
    url_of,
    write_platform,
)
from tests.live_server import live_server
from tests.serving_process import ServingProcess, wait_until

SERVICE_MODULES = ["pymilvus", "litestar", "sqlalchemy", "langsmith", "app.service.answer_service"]
"""Modules that only a local answer service needs."""

ADMIN_KEY = "a" * 40

AUTHORIZATION = {"Authorization": f"Bearer {ADMIN_KEY}"}


@contextmanager
def server(store: Path, platform: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `apidesk serve` in a separate process and wait until it listens."""
    log = store.with_suffix(".log")
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [APIDESK, "serve", "--port", "0", "--platform", platform],
            env=os.environ | environment_of(store) | environment,
            stdout=output,
            stderr=output,
        ) as process,
    ):
        try:
            wait_until(
                lambda: url_of(store) is not None or process.poll() is not None, "the server starts"
            )
            assert process.poll() is None, log.read_text(encoding="utf-8")
            yield process
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The store of a server process, which was started without a store.

    The server requires keys; commands know only the key that it announces.
    """
    folder = tmp_path_factory.mktemp("served")
    store = folder / "milvus.db"
    with server(store, write_platform(folder), APIDESK_ADMIN_KEY=ADMIN_KEY) as process:
        yield store
    assert process.returncode == 0
    assert not address_file(store).exists(), "the server did not remove its address"


def address_file(store: Path) -> Path:
    """The file with the address of the store's server."""
    return store.with_name(f"{store.name}.server.json")


@pytest.mark.acceptance
class TestAskTheServer:
    """Commands while `apidesk serve` uses the store."""

    @pytest.mark.parametrize(
        "environment", [{}, {"http_proxy": "http://127.0.0.1:9"}], ids=["plain", "proxy"]
    )
    def test_answer_comes_from_the_server(self, served: Path, environment: dict[str, str]) -> None:
        result = run(served, "ask", QUESTION, "--json", **environment)
        assert (result.exit_code, result.stderr) == (0, "")
        response = httpx.post(
            f"{url_of(served)}/ask", json={"question": QUESTION}, headers=AUTHORIZATION
        )
        assert stable_fields(result.stdout) == stable_fields(response.text)
        assert stable_fields(result.stdout)["introduction"] == "Hello."

    def test_server_log_is_json_lines(self, served: Path) -> None:
        """Ingestion, requests and uvicorn log in the same format."""
        request_id = httpx.get(f"{url_of(served)}/no/such").headers["x-request-id"]
        log = served.with_suffix(".log")
        # the line is written after the response
        wait_until(lambda: request_id in log.read_text(encoding="utf-8"), "the request is logged")
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        assert {"uvicorn.error", "app.service.ingestion_service"} < {
            line["logger"] for line in lines
        }
        (line,) = (line for line in lines if line.get("request_id") == request_id)
        assert (line["event"], line["status"]) == ("request", 404)
        (run,) = (line for line in lines if line["event"] == "ingestion")
        assert (run["state"], run["trigger"]) == ("succeeded", "start")
        assert len(run["ingestion"]) == 32

    def test_k_and_retrieved_chunks_work_over_http(self, served: Path) -> None:
        result = run(served, "ask", QUESTION, "--json", "--show-retrieved", "-k", 1)
        assert result.exit_code == 0
        assert rows(result) == 1
        Answer.model_validate_json(result.stdout)

    def test_invalid_utf8_is_replaced(self, served: Path) -> None:
        result = run(served, "ask", os.fsdecode(b"how do I sign \xff a request?"), "--json")
        assert result.exit_code == 0, result.exception
        assert "\ufffd" in Answer.model_validate_json(result.stdout).question

    def test_other_model_answers_in_the_process_of_the_command(self, served: Path) -> None:
        with announced_at(served, 9):
            assert answer(served, "--model", "extractive")["answeredBy"] == "extractive"

    def test_second_server_on_the_store_leaves_the_address_of_the_first(
        self, served: Path, tmp_path: Path
    ) -> None:
        url = url_of(served)
        environment = {
            "APIDESK_PLATFORM": str(served.with_name("platform.toml")),
            "APIDESK_ADMIN_KEY": ADMIN_KEY,
        }
        second = ServingProcess(tmp_path / "log", environment_of(served) | environment)
        try:
            assert second.url != url
            body = {"question": QUESTION}
            response = httpx.post(f"{second.url}/ask", json=body, headers=AUTHORIZATION)
            assert "HMAC-SHA256" in response.text
            assert url_of(served) == url
        finally:
            second.stop()
        assert url_of(served) == url

    def test_ingesting_another_platform_is_refused(self, served: Path) -> None:
        words = ("the server at", "indexes", str(served.with_name("platform.toml")))
        assert_single_error_line(run(served, "ingest"), 2, *words)

    def test_server_answers_from_what_the_command_has_indexed(self, served: Path) -> None:
        """The command and `GET /ingestions` report the same numbers."""
        platform = served.with_name("platform.toml")
        new = platform.parent / "guides" / "refunds.md"
        new.write_text("# Refunds\n\nA refund arrives after nine days.\n")
        result = run(served, "ingest", "--json", "--platform", platform)
        assert result.exit_code == 0, result.output
        run_report = IngestionRun.model_validate_json(result.stdout)
        assert [(source.name, source.added) for source in run_report.sources] == [
            ("guides", 1),
            ("reference", 0),
        ]
        assert run_report.trigger == "command"
        body = {"question": "when does a refund arrive?"}
        response = httpx.post(f"{url_of(served)}/ask", json=body, headers=AUTHORIZATION)
        assert "nine days" in response.text
        listed = httpx.get(f"{url_of(served)}/ingestions", headers=AUTHORIZATION, trust_env=False)
        latest = listed.json()["ingestions"]
        assert IngestionRun.model_validate(latest[0]) == run_report
        assert [run["trigger"] for run in latest] == ["command", "start"]
        new.unlink()
        assert run(served, "ingest", "--platform", platform, "--allow-deletes").exit_code == 0

    def test_insights_need_no_server(self, served: Path) -> None:
        """The command reads the documents itself."""
        assert run(served, "ask", QUESTION, "--json").exit_code == 0
        with announced_at(served, 9):
            result = run(served, "insights", "--table", "gaps", "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["notes"] == []

    @pytest.mark.parametrize("options", [[], ["--answers"]], ids=["retrieval", "answers"])
    def test_evaluation_needs_no_server(
        self, served: Path, tmp_path: Path, options: list[str]
    ) -> None:
        """The command reads the documents itself, while the server goes on answering."""
        questions = tmp_path / "questions.jsonl"
        line = {"question": QUESTION, "gold": ["signing"], "facts": ["HMAC-SHA256"]}
        questions.write_text(json.dumps(line), encoding="utf-8")
        platform = served.with_name("platform.toml")
        result = run(served, "evaluate", questions, *options, "--json", "--platform", platform)
        assert result.exit_code == 0, result.output
        assert '"page": 1.0' in result.stdout or '"mrr": 1.0' in result.stdout
        assert run(served, "ask", QUESTION, "--json").exit_code == 0

    @pytest.mark.parametrize("status", [200, 404, 502])
    def test_other_service_at_the_address_is_reported(self, served: Path, status: int) -> None:
        with unrelated_server(status) as port, announced_at(served, port):
            assert_single_error_line(
                run(served, "ask", QUESTION), 1, f":{port}", "did not return a valid answer"
            )

    def test_unreachable_address_is_reported(self, served: Path) -> None:
        with announced_at(served, 9):
            assert_single_error_line(run(served, "ask", QUESTION), 1, ":9", "does not answer")


@contextmanager
def unrelated_server(status: int) -> Iterator[int]:
    """Start a server on loopback that is not apidesk; yield its port."""

    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        try:
            yield httpd.server_port
        finally:
            httpd.shutdown()


@contextmanager
def announced_at(store: Path, port: int) -> Iterator[None]:
    """Change the port in the address file of the server; restore it afterwards."""
    address = address_file(store)
    own = address.read_text(encoding="utf-8")
    moved = json.loads(own) | {"url": f"http://127.0.0.1:{port}"}
    address.write_text(json.dumps(moved), encoding="utf-8")
    try:
        yield
    finally:
        address.write_text(own, encoding="utf-8")


@pytest.mark.acceptance
def test_question_to_a_running_server_opens_no_answer_service(
    sample_service: AnswerService, tmp_path: Path
) -> None:
    """It does not import its modules either; the address left by a killed server is ignored."""
    store = tmp_path / "milvus.db"
    settings = read_settings(milvus_uri=str(store))
    script = (
        "import sys\n"
        "from app.cli.main import main\n"
        f"main(['ask', {QUESTION!r}], standalone_mode=False)\n"
        f"print('imported:', *(name for name in {SERVICE_MODULES!r} if name in sys.modules))\n"
    )
    with live_server(sample_service) as url:
        host, port = url.removeprefix("http://").split(":")
        with announce_server(settings, host, int(port), "a key"):
            left = address_file(store)
            printed = subprocess.check_output(
                [sys.executable, "-c", script],
                env=os.environ | {"APIDESK_MILVUS_URI": str(store)},
                text=True,
                timeout=60,
            )
            killed = left.read_text(encoding="utf-8")
    assert "https://open.example.com/docs/signing" in printed
    assert printed.splitlines()[-1].strip() == "imported:"
    left.write_text(killed, encoding="utf-8")
    assert find_running_server(settings) is None
