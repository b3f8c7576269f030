"""The command line: errors are one line and an exit code, and leave nothing half-written."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from pymilvus import MilvusClient

from app.cli.main import main
from app.service.answer_service import AnswerService
from app.serving.local_server import announce_server, find_running_server
from schemas.answer import Answer
from schemas.ingestion import IngestionRun
from schemas.settings import read_settings
from tests.live_server import live_server
from tests.serving_process import ServingProcess

APIDESK = Path(sys.executable).parent / "apidesk"
UNREADABLE = Path("/proc/self/mem")
HEAVY_MODULES = [
    "pymilvus",
    "milvus_lite",
    "langchain",
    "langchain_core",
    "litestar",
    "pydantic",
    "uvicorn",
]
SERVICE_MODULES = ["pymilvus", "litestar", "sqlalchemy", "langsmith", "app.service.answer_service"]
"""Modules that only a local answer service needs."""

QUESTION = "how do I sign a request?"
VOLATILE = {"cached", "id", "timings"}

PLATFORM = """\
[platform]
name = "Acme"
description = "An API for shops: signing and orders."
audience = "developers"
tone = "dry"
language = "en"

[platform.greeting]
en = "Hello."

[platform.refusal]
en = "Not about Acme."

[[sources]]
name = "guides"
kind = "markdown"
path = "guides"

[sources.metadata]
category = "category"

[[sources]]
name = "reference"
kind = "api_docs"
path = "api"
"""

DOCUMENTS = {
    "guides/signing.md": "---\ntitle: Signing\n---\n## How to sign a request\n\n"
    "Sign a request with HMAC-SHA256 over its sorted parameters.\n",
    "guides/orders.md": "# Orders\n\n## States\n\nAn order is open, paid or closed.\n",
    "api/1.json": json.dumps(
        {"serviceId": "s", "apiId": "1", "name": "Search orders", "url": "/orders/search"}
        | {"language": "en", "description": "Finds orders."}
    ),
}

ADMIN_KEY = "a" * 40

AUTHORIZATION = {"Authorization": f"Bearer {ADMIN_KEY}"}

BAD_PLATFORMS = {
    "not TOML": ("[platform]", "[platform", ["not valid TOML", "line 1"]),
    "a missing table": ("[platform", "[platfrom", ["platform is missing", "platfrom"]),
    "misspelled [[sources]]": ("[[sources]]", "[[source]]", ["source is not a known key"]),
    "a missing key": ('tone = "dry"\n', "", ["platform.tone is missing"]),
    "an empty value": ('"dry"', '" "', ["platform.tone"]),
    "a wrong type": ('"dry"', "1", ["platform.tone"]),
    "an unknown language": ('language = "en"', 'language = "fr"', ["platform.language"]),
    "misspelled in [platform]": ("tone =", "tonne =", ["platform.tonne is not a known key"]),
    "misspelled in greeting": ("en = ", "eng = ", ["platform.greeting", "eng"]),
    "misspelled in markdown": (
        'path = "guides"',
        'pth = "g"',
        ["sources.0", "pth is not a known key"],
    ),
    "misspelled in api_docs": (
        'path = "api"',
        'pth = "a"',
        ["sources.1", "pth is not a known key"],
    ),
    "metadata for api_docs": ('path = "api"', 'path = "api"\ntitle = "t"', ["sources.1", "title"]),
    "a wrong type in metadata": ('= "category"', "= 1", ["sources.0", "metadata.category"]),
    "an unknown kind": ('"api_docs"', '"swagger"', ["sources.1", "'swagger'", "'api_docs'"]),
    "no kind": ('kind = "api_docs"\n', "", ["sources.1", "kind"]),
    "duplicate source names": ('"reference"', '"guides"', ["two sources are named 'guides'"]),
    "an invalid schedule": (
        "[platform]\n",
        '[ingestion]\nschedule = "often"\n[platform]\n',
        ["ingestion.schedule: 'often'"],
    ),
    "an unknown time zone": (
        "[platform]\n",
        '[ingestion]\nschedule = "* * * * *"\ntimezone = "Mars"\n[platform]\n',
        ["ingestion.timezone: no zone is called 'Mars'"],
    ),
    "an invalid pattern": (
        'path = "guides"',
        'path = "guides"\nfile_name = "("',
        ["sources.0", "file_name"],
    ),
}

BAD_SOURCES = {
    "a missing source path": ('"guides"\n\n', '"guidse"\n\n', ["guidse: no such folder"]),
    "a file as source path": ('"guides"\n\n', '"guides/orders.md"\n\n', ["no such folder"]),
    "an empty source folder": (
        '"guides"\n\n',
        '"empty"\n\n',
        ["empty: contains no .md or .mdx file"],
    ),
    "a folder without its kind": (
        '"guides"\n\n',
        '"api"\n\n',
        ["api: contains no .md or .mdx file"],
    ),
}

BAD_DOCUMENTS = {
    "broken front matter": ("guides/a.md", b"---\ntitle: [a\n---\ntext", ["a.md: front matter"]),
    "front matter that is not UTF-8": (
        "guides/a.md",
        b"---\ntitle: \xff\n---\ntext",
        ["a.md: not UTF-8"],
    ),
    "Markdown that is not UTF-8": ("guides/a.mdx", b"text \xff", ["a.mdx: not UTF-8 (byte 5)"]),
    "JSON that is not UTF-8": (
        "api/0.json",
        b'{"serviceId": "\xff"}',
        ["0.json: not UTF-8 (byte 15)"],
    ),
    "broken JSON": ("api/0.json", b'{"serviceId": ', ["0.json: the file"]),
    "an empty JSON file": ("api/0.json", b"", ["0.json: the file"]),
    "JSON that is no object": ("api/0.json", b"[]", ["0.json: the file"]),
    "JSON without a key": ("api/0.json", b'{"serviceId": "s"}', ["0.json: apiId"]),
    "JSON with an unknown key": (
        "api/0.json",
        b'{"serviceId": "s", "apiId": "0", "name": "n", "url": "/u", "nmae": "n"}',
        ["0.json: nmae"],
    ),
    "JSON with a wrong type": (
        "api/0.json",
        b'{"serviceId": "s", "apiId": "0", "name": "n", "url": "/u", '
        b'"requestParameters": [{"name": 1}]}',
        ["0.json: requestParameters.0.name"],
    ),
}

BAD_QUESTIONS: dict[str, tuple[str, dict[str, str], str]] = {
    "empty": ("", {}, "question: is empty"),
    "blank": (" \t\n\u3000", {}, "question: is empty"),
    "too long": ("a" * 20_001, {}, "question: 20001 characters, at most 20000"),
    "longer than a setting": ("abc", {"APIDESK_MAX_QUESTION_CHARS": "2"}, "at most 2 are allowed"),
    "top_k is 0": ("a", {"APIDESK_TOP_K": "0"}, "APIDESK_TOP_K: "),
    "top_k is 51": ("a", {"APIDESK_TOP_K": "51"}, "APIDESK_TOP_K: "),
    "top_k is no number": ("a", {"APIDESK_TOP_K": "five"}, "APIDESK_TOP_K: "),
    "two settings": ("a", {"APIDESK_TOP_K": "x", "APIDESK_RETRIEVAL": "x"}, "; APIDESK_TOP_K: "),
    "no platform.toml": ("a", {"APIDESK_PLATFORM": "nope.toml"}, "nope.toml: No such file"),
}


def write_platform(folder: Path) -> Path:
    """Write a platform with three documents; return the path of its platform.toml."""
    for name, text in {"platform.toml": PLATFORM, **DOCUMENTS}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "platform.toml"


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A valid platform.toml for the test to modify."""
    return write_platform(tmp_path / "platform")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An indexed store without a server."""
    folder = tmp_path_factory.mktemp("cli")
    result = run(folder / "milvus.db", "ingest", "--platform", write_platform(folder))
    assert result.exit_code == 0, result.output
    assert re.search(r"guides +2 +2 +0 +0 +0 +0 +2 +2\n", result.stdout)
    assert re.search(r"reference +1 +1 ", result.stdout)
    return folder / "milvus.db"


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


def environment_of(store: Path) -> dict[str, str]:
    """Settings for the store and a database next to it."""
    database = f"sqlite:///{store.with_suffix('.runs')}"
    return {"APIDESK_MILVUS_URI": str(store), "APIDESK_DATABASE_URL": database}


def run(store: Path, *arguments: object, **environment: str) -> Result:
    """Run a command in this process."""
    environment = environment_of(store) | environment
    return CliRunner().invoke(main, [str(argument) for argument in arguments], env=environment)


def run_process(store: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process."""
    return subprocess.run(
        [APIDESK, *map(str, arguments)],
        env=os.environ | environment_of(store),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


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
            wait_until(lambda: url_of(store) is not None or process.poll() is not None)
            assert process.poll() is None, log.read_text(encoding="utf-8")
            yield process
        finally:
            process.terminate()


def wait_until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


def url_of(store: Path) -> str | None:
    """The URL of the running server that is announced next to the store."""
    server = find_running_server(read_settings(milvus_uri=str(store)))
    return server.url if server else None


def address_file(store: Path) -> Path:
    """The file with the address of the store's server."""
    return store.with_name(f"{store.name}.server.json")


def collections(store: Path) -> list[str]:
    """The names of all collections in the store."""
    client = MilvusClient(str(store))
    names: list[str] = client.list_collections()
    client.close()
    return sorted(names)


def stable_fields(body: str) -> dict[str, Any]:
    """An answer's JSON without the fields that change each time."""
    Answer.model_validate_json(body)
    return {name: value for name, value in json.loads(body).items() if name not in VOLATILE}


def answer(store: Path, *arguments: object) -> dict[str, Any]:
    """The answer to QUESTION, without the fields that change each time."""
    result = run(store, "ask", QUESTION, "--json", *arguments)
    assert result.exit_code == 0, result.output
    return stable_fields(result.stdout)


def assert_single_error_line(result: Result, code: int, *words: str) -> None:
    """Assert that the command failed with `code` and printed one line that contains all `words`."""
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code
    assert result.stdout == ""
    assert re.fullmatch(r"apidesk: .+\n", result.stderr), result.stderr
    assert [word for word in words if word not in result.stderr] == [], result.stderr


class TestIngest:
    """`apidesk ingest` with invalid platforms."""

    @pytest.mark.parametrize(("good", "bad", "words"), BAD_PLATFORMS.values(), ids=BAD_PLATFORMS)
    def test_invalid_platform_is_refused(
        self, store: Path, platform: Path, good: str, bad: str, words: list[str]
    ) -> None:
        text = platform.read_text(encoding="utf-8")
        assert good in text
        platform.write_text(text.replace(good, bad), encoding="utf-8")
        self._assert_refused(store, platform, str(platform.parent), *words)

    def test_missing_platform_is_refused(self, store: Path, platform: Path) -> None:
        platform.unlink()
        self._assert_refused(store, platform, f"{platform}: No such file or directory")

    def test_platform_must_be_utf8(self, store: Path, platform: Path) -> None:
        platform.write_bytes(b'[platform]\nname = "\xff"\n')
        self._assert_refused(store, platform, f"{platform}: not valid TOML")

    @pytest.mark.parametrize(("good", "bad", "words"), BAD_SOURCES.values(), ids=BAD_SOURCES)
    def test_invalid_source_is_reported_and_others_are_indexed(
        self, tmp_path: Path, platform: Path, good: str, bad: str, words: list[str]
    ) -> None:
        (platform.parent / "empty").mkdir()
        text = platform.read_text(encoding="utf-8")
        assert good in text
        platform.write_text(text.replace(good, bad), encoding="utf-8")
        self._assert_others_indexed(tmp_path / "milvus.db", platform, "reference", *words)

    @pytest.mark.parametrize(
        ("name", "content", "words"), BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS
    )
    def test_invalid_document_is_reported_and_others_are_indexed(
        self, tmp_path: Path, platform: Path, name: str, content: bytes, words: list[str]
    ) -> None:
        (platform.parent / name).write_bytes(content)
        self._assert_others_indexed(tmp_path / "milvus.db", platform, "guides", *words)

    @pytest.mark.skipif(not UNREADABLE.exists(), reason="needs /proc")
    def test_symbolic_link_out_of_the_source_is_refused(
        self, tmp_path: Path, platform: Path
    ) -> None:
        (platform.parent / "guides" / "a.md").symlink_to(UNREADABLE)
        words = "a.md: symbolic link points outside the source folder"
        self._assert_others_indexed(tmp_path / "milvus.db", platform, "guides", words)

    def _assert_others_indexed(self, store: Path, platform: Path, source: str, *words: str) -> None:
        """Assert that one line reports the refused file, and that `source` is indexed."""
        result = run(store, "ingest", "--platform", platform)
        assert result.exit_code == 1
        (line,) = (line for line in result.stdout.splitlines() if line.startswith("refused"))
        assert [word for word in words if word not in line] == [], line
        assert re.search(rf"{source} +[12] +[12] ", result.stdout)

    def _assert_refused(self, store: Path, platform: Path, *words: str) -> None:
        """Assert a refusal with and without an indexed store, which does not change."""
        before = collections(store)
        assert_single_error_line(run(store, "ingest", "--platform", platform), 2, *words)
        assert collections(store) == before
        new = platform.with_name("new.db")
        assert_single_error_line(run(new, "ingest", "--platform", platform), 2, *words)
        assert collections(new) == []

    def test_repeated_ingestion_changes_nothing(self, store: Path) -> None:
        before = answer(store)
        for options in ((), ("--rebuild",), ("--dry-run",)):
            result = run(store, "ingest", "--platform", store.with_name("platform.toml"), *options)
            assert result.exit_code == 0
            assert re.search(r"guides +2 +0 +0 +2 ", result.stdout)
            assert len(collections(store)) == 1
        assert answer(store) == before


class TestAsk:
    """`apidesk ask` without a server."""

    def test_json_output_is_the_http_body(self, store: Path) -> None:
        result = run(
            store, "ask", QUESTION, "--json", "--platform", store.with_name("platform.toml")
        )
        assert (result.exit_code, result.stderr) == (0, "")
        found = Answer.model_validate_json(result.stdout)
        assert json.loads(result.stdout) == found.model_dump(mode="json", by_alias=True)
        assert found.question == QUESTION
        assert found.sources[0].title == "Signing"
        assert "HMAC-SHA256" in " ".join(found.answer)

    def test_text_output_lists_steps_and_sources(self, store: Path) -> None:
        result = run(store, "ask", QUESTION, APIDESK_PLATFORM=str(store.with_name("platform.toml")))
        assert (result.exit_code, result.stderr) == (0, "")
        assert "HMAC-SHA256" in result.stdout
        assert "[1] Signing > How to sign a request" in result.stdout

    def test_tools_without_a_model_degrade_the_answer(self, store: Path) -> None:
        result = run(store, "ask", QUESTION, "--tools", "--json")
        assert result.exit_code == 0
        assert json.loads(result.stdout)["degraded"] == "tools_unavailable"

    def test_json_output_lists_retrieved_chunks_on_stderr(self, store: Path) -> None:
        result = run(store, "ask", QUESTION, "--show-retrieved", "--json")
        assert rows(result) >= 2
        assert "Signing" in result.stderr
        assert stable_fields(result.stdout) == answer(store)

    def test_text_output_lists_retrieved_chunks_on_stderr(self, store: Path) -> None:
        result = run(store, "ask", QUESTION, "--show-retrieved")
        assert rows(result) >= 2
        assert "score" not in result.stdout
        assert "HMAC-SHA256" not in result.stderr

    @pytest.mark.parametrize("k", [1, 2])
    def test_k_limits_retrieved_chunks(self, store: Path, k: int) -> None:
        question = "orders signing request states"
        assert rows(run(store, "ask", question, "-k", k, "--show-retrieved")) == k
        assert rows(run(store, "ask", question, "--show-retrieved", APIDESK_TOP_K=str(k))) == k

    @pytest.mark.parametrize("k", ["0", "51", "1.5", "five"])
    def test_invalid_k_is_refused(self, store: Path, k: str) -> None:
        result = run(store, "ask", QUESTION, "-k", k)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "'-k'" in result.stderr

    @pytest.mark.parametrize(
        ("question", "environment", "words"), BAD_QUESTIONS.values(), ids=BAD_QUESTIONS
    )
    def test_invalid_question_is_refused(
        self, tmp_path: Path, question: str, environment: dict[str, str], words: str
    ) -> None:
        """The question is refused before anything is indexed."""
        store = tmp_path / "milvus.db"
        assert_single_error_line(run(store, "ask", question, **environment), 2, words)
        assert not store.exists()

    def test_invalid_utf8_is_replaced(self, store: Path) -> None:
        result = run(store, "ask", os.fsdecode(b"how do I sign \xff a request?"), "--json")
        assert result.exit_code == 0, result.exception
        assert "\ufffd" in Answer.model_validate_json(result.stdout).question

    @pytest.mark.acceptance
    def test_store_that_another_process_has_open_is_read(self, store: Path) -> None:
        assert url_of(store) is None
        client = MilvusClient(str(store))
        result = run_process(store, "ask", QUESTION, "--json")
        client.close()
        assert (result.returncode, result.stderr) == (0, "")
        assert stable_fields(result.stdout) == answer(store)


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
        wait_until(lambda: request_id in log.read_text(encoding="utf-8"))  # after the response
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
        yield httpd.server_port
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


def rows(result: Result) -> int:
    """Number of chunks in the table on stderr."""
    assert result.exit_code == 0, result.output
    return len(re.findall(r"^ +\d+ +\d+\.\d{3} ", result.stderr, re.MULTILINE))


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "arguments", [["--help"], ["ask", "--help"], ["ingest", "-h"], ["serve", "-h"], ["--version"]]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from app.cli.main import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        f"print('imported:', *(name for name in {HEAVY_MODULES!r} if name in sys.modules))\n"
    )
    printed = subprocess.check_output([sys.executable, "-c", script], text=True, timeout=60)
    assert re.search(r"Usage: |version", printed)
    assert printed.splitlines()[-1].strip() == "imported:"


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


@pytest.mark.acceptance
def test_help_lists_every_command(tmp_path: Path) -> None:
    result = run_process(tmp_path / "milvus.db", "--help")
    assert result.returncode == 0
    assert all(f"  {command} " in result.stdout for command in ("ask", "ingest", "serve"))
