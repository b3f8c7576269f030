"""`apidesk ask` without a server, and the help texts."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pymilvus import MilvusClient

from schemas.answer import Answer
from tests.cli.commands import (
    QUESTION,
    answer,
    assert_single_error_line,
    rows,
    run,
    run_process,
    stable_fields,
    url_of,
)

HEAVY_MODULES = [
    "pymilvus",
    "milvus_lite",
    "langchain",
    "langchain_core",
    "litestar",
    "pydantic",
    "uvicorn",
]

BAD_QUESTIONS: dict[str, tuple[str, dict[str, str], str]] = {
    "empty": ("", {}, "question: must not be blank"),
    "blank": (" \t\n\u3000", {}, "question: must not be blank"),
    "too long": ("a" * 20_001, {}, "question: 20001 characters, at most 20000"),
    "longer than a setting": ("abc", {"APIDESK_MAX_QUESTION_CHARS": "2"}, "at most 2 are allowed"),
    "top_k is 0": ("a", {"APIDESK_TOP_K": "0"}, "APIDESK_TOP_K: "),
    "top_k is 51": ("a", {"APIDESK_TOP_K": "51"}, "APIDESK_TOP_K: "),
    "top_k is no number": ("a", {"APIDESK_TOP_K": "five"}, "APIDESK_TOP_K: "),
    "two settings": ("a", {"APIDESK_TOP_K": "x", "APIDESK_RETRIEVAL": "x"}, "; APIDESK_TOP_K: "),
    "no platform.toml": ("a", {"APIDESK_PLATFORM": "nope.toml"}, "nope.toml: No such file"),
}


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
def test_help_lists_every_command(tmp_path: Path) -> None:
    result = run_process(tmp_path / "milvus.db", "--help")
    assert result.returncode == 0
    assert all(f"  {command} " in result.stdout for command in ("ask", "ingest", "serve"))
