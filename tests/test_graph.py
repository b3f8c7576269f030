"""`apidesk graph`: the flowchart matches the pipeline."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from langchain_core.callbacks import BaseCallbackHandler
from pydantic import SecretStr

from app.cli.commands.platform import build_steps, draw_mermaid
from app.cli.main import main
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "explanation" / "how-an-answer-is-made.md"


@pytest.fixture(scope="module")
def flowchart(sample_service: AnswerService) -> str:
    """The pipeline of the sample platform."""
    return draw_mermaid(build_steps(sample_service.settings, "pipeline"))


class Runs(BaseCallbackHandler):
    """Records the names of runs as they start."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self.names.append(kwargs["name"])

    def on_retriever_start(self, *args: Any, **kwargs: Any) -> None:
        self.names.append(kwargs["name"])


@pytest.mark.parametrize(
    ("question", "runs"),
    [
        ("怎么发货", ["structured-question", "retrieve", "boost-named-api", "answer", "ground"]),
        ("今天天气怎么样", ["structured-question", "retrieve"]),
        ("你好", []),
        ("每天的帐去哪拿", ["structured-question", "retrieve", "ground"]),
    ],
    ids=["answered", "refused", "small talk", "probably off-topic"],
)
def test_flowchart_contains_every_step_that_runs(
    sample_service: AnswerService, flowchart: str, question: str, runs: list[str]
) -> None:
    seen = Runs()
    asyncio.run(sample_service.ask(AskCommand(question, callbacks=(seen,))))
    assert seen.names == ["ask", *runs]
    assert [name for name in runs if f"({name})" not in flowchart] == []


def test_flowchart_contains_the_steps_of_a_model(sample_service: AnswerService) -> None:
    settings = sample_service.settings.model_copy(
        update={
            "chat_model": "openai:scripted-chat",
            "chat_api_key": SecretStr("test-key"),
            "web_search": "tavily",
            "web_api_key": SecretStr("test-key"),
        }
    )
    flowchart = draw_mermaid(build_steps(settings, "tools")).replace("\\3a", ":")
    steps = ("boost-named-api", "research", "web", "add-evidence", "answer", "ground")
    for before, after in pairwise(steps):
        assert f"route-off-topic:{before} --> route-off-topic:{after};" in flowchart


def test_flowchart_contains_conditions_and_concurrent_steps(flowchart: str) -> None:
    plain = flowchart.replace("\\3a", ":")
    for edge in (
        "Question --> condense;",
        "route-small-talk:is_small_talk -. &nbsp;yes&nbsp; .-> route-small-talk:acknowledge;",
        "classify-and-retrieve:structured-question --> route-off-topic:is_off_topic;",
        "classify-and-retrieve:retrieve --> route-off-topic:is_off_topic;",
        "route-off-topic:is_off_topic -. &nbsp;no&nbsp; .-> route-off-topic:expand-query;",
        "route-off-topic:is_off_topic -. &nbsp;probably&nbsp; .-> route-off-topic:ground;",
        "route-off-topic:ground --> Answer;",
    ):
        assert edge in plain


def test_document_shows_the_current_flowchart(flowchart: str) -> None:
    """If it fails, replace the block in the document by the output of `apidesk graph`."""
    assert f"```mermaid\n{flowchart}```" in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["picture.svg"], "picture.svg: the name must end in .mmd, .mermaid or .md"),
        (["--svg"], "No such option"),
        (["no/such/folder.mmd"], "no/such/folder.mmd: No such file or directory"),
        (["--mode", "tools"], "mode tools needs a chat model"),
    ],
)
def test_invalid_options_are_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["graph", *arguments])
    assert result.exit_code == 2
    assert (result.stdout, message in result.stderr) == ("", True), result.output


def test_command_draws_without_a_store(tmp_path: Path, flowchart: str) -> None:
    """The command connects to no store."""
    store = {
        "APIDESK_MILVUS_URI": "http://127.0.0.1:9",
        "APIDESK_DATABASE_URL": "sqlite:///no/such",
    }
    file = tmp_path / "pipeline.mmd"
    result = CliRunner().invoke(main, ["graph", str(file)], env=store)
    assert (result.exit_code, result.output) == (0, "")
    assert file.read_text(encoding="utf-8") == flowchart
    result = CliRunner().invoke(main, ["graph"], env=store)
    assert result.stdout == flowchart


def test_markdown_file_contains_the_flowchart_in_a_code_block(
    tmp_path: Path, flowchart: str
) -> None:
    file = tmp_path / "pipeline.md"
    result = CliRunner().invoke(main, ["graph", str(file)])
    assert (result.exit_code, result.output) == (0, "")
    assert file.read_text(encoding="utf-8") == f"```mermaid\n{flowchart}```\n"
