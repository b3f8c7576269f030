"""`apidesk evaluate`: the whole command, and its experiments in LangSmith."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from app.analytics.evaluation.dataset import (
    EvaluationQuestion,
    read_questions,
)
from app.analytics.evaluation.experiments import ExperimentLog, LoggedResult
from app.cli.main import main
from tests.acme import PLATFORM, write_pages
from tests.evaluation_questions import QUESTIONS, SIGNING, write_lines
from tests.langsmith_server import LangSmith, langsmith_server
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer

pytestmark = pytest.mark.acceptance

Evaluate = Callable[..., Result]


# --- the command --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the stores; the first command indexes the samples."""
    return tmp_path_factory.mktemp("stores")


@pytest.fixture
def evaluate(stores: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Evaluate:
    """Run the command on the samples, in an empty folder."""
    monkeypatch.setenv("APIDESK_MILVUS_URI", str(stores / "milvus.db"))
    monkeypatch.setenv("APIDESK_DATABASE_URL", f"sqlite:///{stores / 'apidesk.db'}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return lambda *arguments: CliRunner().invoke(main, ["evaluate", *map(str, arguments)])


@pytest.fixture
def evaluate_with_embeddings(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, evaluate: Evaluate
) -> Evaluate:
    """Run the command with the scripted embedding model, on a separate store."""
    store = Path("embedded.db").resolve()
    monkeypatch.setenv("APIDESK_MILVUS_URI", str(store))
    monkeypatch.setenv("APIDESK_EMBEDDING_MODEL", "openai:scripted-embedding")
    monkeypatch.setenv("APIDESK_EMBEDDING_BASE_URL", model_server.base_url)
    monkeypatch.setenv("APIDESK_EMBEDDING_API_KEY", "test-key")
    return evaluate


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "questions.jsonl", *QUESTIONS)


def figures(result: Result) -> dict[str, Any]:
    """The parsed output of --json."""
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_text_output_contains_all_parts(evaluate: Evaluate, questions: Path) -> None:
    result = evaluate(questions)
    assert result.exit_code == 0, result.output
    for said in ("3 questions, 32 documents", "recall@5", "MRR", "p95 ms", "k = 20", "full text"):
        assert said in result.stdout
    assert "dense" not in result.stdout
    assert "question types (extractive)" in result.stdout


def test_json_output_contains_all_results(evaluate: Evaluate, questions: Path) -> None:
    found = figures(evaluate(questions, "--json", "--k", 3))
    assert (found["questions"], found["withGold"], found["k"]) == (4, 3, 3)
    assert found["judged"] == "full_text"
    (route,) = found["routes"]
    assert len(route["recall"]) == len(route["hit"]) == len(route["chunkRecall"]) == 20
    assert route["recall"] == sorted(route["recall"])
    first = route["questions"][0]
    assert (first["gold"], first["rank"], first["recall"]) == ([SIGNING], 1, 1)
    assert (first["found"][0]["document"], first["found"][0]["right"]) == ("guides/signing", True)
    assert len(route["questions"][2]["ranks"]) == 2
    assert 0 < route["p50Ms"] <= route["p95Ms"]
    matrix = found["classification"]["matrix"]
    assert matrix["unknown"] == {"api_call": 0, "general": 0, "unknown": 1}
    assert sum(sum(row.values()) for row in matrix.values()) == 3
    assert found["made"] is None
    assert found["experiments"] == []


def test_generated_questions_are_reported_and_saved_for_reuse(evaluate: Evaluate) -> None:
    told = evaluate()
    assert "The questions were generated from the documents" in told.stdout
    assert "optimistic" in told.stdout
    kept = Path("data/evaluation/samples.jsonl")
    again = figures(evaluate(kept, "--json"))
    assert again["withGold"] == len(read_questions(kept))
    assert f"{again['routes'][0]['recall'][4]:.3f}" in told.stdout
    own = write_lines(Path("own.jsonl"), *QUESTIONS)
    refused = evaluate("--save", own)
    assert refused.exit_code == 2
    assert "handwritten questions" in refused.stderr


def test_min_recall_sets_the_exit_code(evaluate: Evaluate, tmp_path: Path) -> None:
    misses = write_lines(
        tmp_path / "q.jsonl",
        {"question": "签名怎么算", "gold": [SIGNING]},
        {"question": "签名怎么算", "gold": ["1301"]},
    )
    assert evaluate(misses, "--k", 1, "--min-recall", 0.5).exit_code == 0
    failed = evaluate(misses, "--k", 1, "--min-recall", 0.51)
    assert failed.exit_code == 1
    assert "recall@1 of full text is 0.500, below 0.51" in failed.stderr
    assert "1301" in failed.stdout  # the results are printed anyway
    assert "MRR" in failed.stdout


def test_questions_with_missing_documents_are_counted(evaluate: Evaluate, tmp_path: Path) -> None:
    missed = [{"question": f"签名怎么算{'？' * n}", "gold": ["1301"]} for n in range(12)]
    text = "gold documents missing from the first 1 documents (route: full text)"
    one = evaluate(write_lines(tmp_path / "one.jsonl", missed[0]), "--k", 1)
    assert f"1 question has {text}:" in one.stdout
    assert "  1 question, 32 documents" in one.stdout
    many = evaluate(write_lines(tmp_path / "many.jsonl", *missed), "--k", 1)
    assert f"12 questions have {text}; the worst 10:" in many.stdout


@pytest.mark.parametrize(
    ("line", "arguments", "said"),
    [
        ({"gold": ["a"]}, [], "line 1: question: Field required"),
        ({"question": "a", "gold": ["nowhere"]}, [], "'nowhere'"),
        ({"question": "a"}, [], "no question names a document"),
        ({"question": "a", "gold": ["1110"]}, ["--mode", "dense"], "APIDESK_EMBEDDING_MODEL"),
        ({"question": "a", "gold": ["1110"]}, ["--plot", "a.pdf"], "must end in .svg or .png"),
        ({"question": "a", "gold": ["1110"]}, ["--plot", "no/a.svg"], "folder no does not exist"),
    ],
)
def test_invalid_input_is_one_line_and_exit_code_2(
    evaluate: Evaluate, tmp_path: Path, line: object, arguments: list[str], said: str
) -> None:
    result = evaluate(write_lines(tmp_path / "q.jsonl", line), *arguments)
    assert result.exit_code == 2
    lines = [line for line in result.stderr.splitlines() if not line.endswith("…")]  # no progress
    assert len(lines) == 1
    assert said in lines[0]


def test_unknown_gold_names_the_file_and_line(evaluate: Evaluate, tmp_path: Path) -> None:
    lines = [{"question": "a", "gold": [name]} for name in ("1110", "nowhere", "1110", "elsewhere")]
    path = write_lines(tmp_path / "q.jsonl", lines[0], "", *lines[1:])
    for arguments in ([], ["--answers"]):
        result = evaluate(path, *arguments)
        assert result.exit_code == 2
        assert f"{path}, lines 3, 5: gold: no document has" in result.stderr
        assert "'nowhere', 'elsewhere'" in result.stderr
        assert "without QUESTIONS" not in result.stderr


def test_unknown_gold_of_generated_questions_names_the_remedy(
    evaluate: Evaluate, tmp_path: Path
) -> None:
    line = {"question": "a", "gold": ["renamed"], "made": "title"}
    result = evaluate(write_lines(tmp_path / "q.jsonl", line))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert f"{tmp_path / 'q.jsonl'}, line 1: gold: " in result.stderr
    assert "`apidesk evaluate` without QUESTIONS generates new questions" in result.stderr


def test_documents_without_a_unique_text_cannot_be_evaluated(
    evaluate: Evaluate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    write_pages(tmp_path, a="# Quotas\n\nSee below.\n", b="# Quotas\n\nSee above.\n")
    monkeypatch.setenv("APIDESK_MILVUS_URI", str(tmp_path / "milvus.db"))
    result = evaluate("--platform", tmp_path / "platform.toml")
    assert result.exit_code == 2
    assert "no questions can be generated from the documents: pass QUESTIONS" in result.stderr
    assert not Path("data/evaluation").exists()


def test_embedding_model_adds_dense_and_hybrid_routes(
    evaluate_with_embeddings: Evaluate, questions: Path, model_server: ModelServer
) -> None:
    drawn = Path("recall.svg")
    found = figures(evaluate_with_embeddings(questions, "--json", "--plot", drawn))
    assert [route["mode"] for route in found["routes"]] == ["full_text", "dense", "hybrid"]
    assert found["judged"] == "hybrid"
    texts = {e.text for e in ElementTree.parse(drawn).iter() if e.tag.endswith("}text")}
    assert {"full text", "dense", "hybrid", "Recall over k", "k, number of documents"} <= texts
    assert "recall@k, share of the gold names found" in texts
    assert any((text or "").startswith("k = 5: ") for text in texts)
    report = evaluate_with_embeddings(questions).stdout
    assert "hybrid *" in report
    assert "* the route that APIDESK_RETRIEVAL selects" in report

    def down(request: Recorded) -> Reply:
        return Reply(status=503)

    model_server.embedding_reply = down
    failed = evaluate_with_embeddings(questions)
    assert failed.exit_code == 1
    assert "so only full text would be measured" in failed.stderr


def test_plot_as_png(evaluate: Evaluate, questions: Path) -> None:
    figures(evaluate(questions, "--json", "--plot", "recall.png"))
    assert Path("recall.png").read_bytes().startswith(b"\x89PNG")


def test_configured_model_classifies(
    evaluate: Evaluate, questions: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APIDESK_CHAT_MODEL", "openai:scripted-chat")
    monkeypatch.setenv("APIDESK_CHAT_BASE_URL", model_server.base_url)
    monkeypatch.setenv("APIDESK_CHAT_API_KEY", "test-key")
    model_server.route(lambda request: "今天天气怎么样" in request.text, {"type": "unknown"})
    model_server.route(lambda request: True, {"type": "general"})
    found = figures(evaluate(questions, "--json"))["classification"]
    assert found["by"] == "openai:scripted-chat"
    assert found["matrix"]["api_call"]["general"] == 1
    assert found["accuracy"] == pytest.approx(2 / 3, abs=1e-4)


# --- LangSmith ----------------------------------------------------------------------------------


@pytest.fixture
def langsmith() -> Iterator[LangSmith]:
    with langsmith_server(tracing=False) as server:
        yield server


@pytest.fixture
def tracing() -> Iterator[LangSmith]:
    with langsmith_server(tracing=True) as server:
        yield server


def test_nothing_is_sent_without_langsmith_tracing(
    evaluate: Evaluate, questions: Path, langsmith: LangSmith
) -> None:
    figures(evaluate(questions, "--json"))
    assert langsmith.requests == []


def test_langsmith_receives_a_dataset_and_an_experiment(
    evaluate: Evaluate, questions: Path, tracing: LangSmith
) -> None:
    found = figures(evaluate(questions, "--json"))
    (dataset,) = tracing.datasets
    assert dataset["name"].startswith("apidesk 青桥开放平台 ")
    assert [e["inputs"]["question"] for e in tracing.examples] == [
        question.question for question in read_questions(questions)[:3]
    ]
    assert tracing.examples[0]["outputs"] == {"gold": [SIGNING]}
    assert found["experiments"] == [session["name"] for session in tracing.sessions]
    assert found["experiments"][0].startswith("apidesk full_text")
    assert [each["question"] for each in found["routes"][0]["questions"]] == [
        example["inputs"]["question"] for example in tracing.examples
    ]
    for sent in (b"recall@5", b"reciprocal rank", b"guides/signing"):
        assert sent in tracing.sent

    figures(evaluate(questions, "--json"))
    assert len(tracing.datasets) == 1
    assert len(tracing.examples) == 3
    assert len(tracing.sessions) == 2


def test_langsmith_error_is_one_line(
    evaluate: Evaluate, questions: Path, tracing: LangSmith
) -> None:
    tracing.refuse = 401
    result = evaluate(questions)
    assert result.exit_code == 1
    assert "apidesk: LangSmith failed: " in result.stderr
    assert "Traceback" not in result.output


def test_unexpected_error_of_a_question_is_raised(tracing: LangSmith) -> None:
    async def ask(number: int) -> LoggedResult[int]:
        raise RuntimeError(f"question {number} failed")

    async def experiment() -> None:
        log = await ExperimentLog.open("Acme", [EvaluationQuestion(question="a", gold=("b",))])
        assert log is not None
        await log.run("answers", ask, {})

    with pytest.raises(RuntimeError, match="question 0 failed"):
        asyncio.run(experiment())
    assert tracing.sessions
