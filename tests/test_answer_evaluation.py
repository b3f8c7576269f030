"""Scoring of answers against the facts of questions."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.analytics.evaluation.answer_report import (
    compare_evaluations,
    print_answers,
    print_comparison,
)
from app.analytics.evaluation.answer_scoring import (
    AnswerEvaluation,
    ScoredAnswer,
    answer_scores,
    missing_facts,
    outcome_of,
    score_answer,
    score_retrieval,
)
from app.analytics.evaluation.dataset import DocumentIndex, EvaluationQuestion
from app.cli.main import main
from schemas.answer import Answer, Confidence, Source
from schemas.document import Chunk, SectionKind
from schemas.errors import ConfigurationError
from schemas.question import QuestionType, StructuredQuestion
from tests.langsmith_server import langsmith_server
from tests.model_script import Reply
from tests.model_server import ModelServer

pytestmark = pytest.mark.acceptance

Evaluate = Callable[..., Result]

QUESTION = EvaluationQuestion(
    question="how long is a token valid",
    gold=("auth",),
    facts=(("30 minutes", "half an hour"), ("refresh_token",)),
)
UNANSWERABLE = EvaluationQuestion(question="what does it cost", kind="unanswerable")


def source(document: str, text: str, number: int = 1) -> Source:
    """A source whose heading is neutral."""
    return Source(
        number=number,
        source="guides",
        document_id=document,
        title="Title",
        section="Section",
        page_url="",
        api_name="",
        api_url="",
        score=1.0,
        text=text,
    )


def answer(*steps: str, confidence: Confidence = "high", type_: QuestionType = "general") -> Answer:
    """An answer with one source, number 1."""
    return Answer(
        id="1",
        question="",
        introduction="",
        answer=list(steps),
        related_url=[],
        type=type_,
        structured=StructuredQuestion(type=type_),
        sources=[source("auth", "30 minutes")],
        confidence=confidence,
        language="en",
        answered_by="extractive",
    )


def result(question: EvaluationQuestion, given: Answer) -> ScoredAnswer:
    """The result of a question for which nothing was retrieved."""
    return score_answer(score_retrieval(question, [frozenset({"guides/auth"})], []), given)


def chunk(document: str, api_url: str = "", method: str = "", kind: SectionKind = "prose") -> Chunk:
    """A chunk of the source `docs`."""
    return Chunk(
        id=f"{document}#{kind}",
        source="docs",
        document_id=document,
        title=document,
        section="",
        kind=kind,
        position=0,
        language="en",
        api_url=api_url,
        body=f"- Method: `{method}`",
        text="",
        content_hash="",
    )


# --- facts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("30 minutes", "valid for **30**\n  minutes"),
        ("max_tokens", "the field `max_tokens`"),
        ("max_tokens", "the field max\\_tokens"),
        ("５分钟", "有效期 5分钟"),
        ("`POST`", "the method post"),
        ("important", "an _important_ note"),
        ("a|b", "either a\\|b"),
    ],
)
def test_fact_occurs_despite_markup_width_and_case(fact: str, text: str) -> None:
    assert missing_facts([(fact,)], text) == []


@pytest.mark.parametrize(
    ("fact", "text"),
    [("max_tokens", "the field maxtokens"), ("30 minutes", "30minutes"), ("13", "1 3")],
)
def test_fact_does_not_occur_in_similar_text(fact: str, text: str) -> None:
    assert missing_facts([(fact,)], text) == [(fact,)]


def test_one_alternative_suffices_but_every_fact_counts() -> None:
    facts = [("half an hour", "30 minutes"), ("refresh_token",)]
    assert missing_facts(facts, "30 minutes") == [("refresh_token",)]
    assert missing_facts(facts, "half an hour, then refresh_token") == []


# --- retrieval and answers ----------------------------------------------------------------------


def test_facts_may_be_spread_over_the_first_five_chunks() -> None:
    texts = ["30 minutes", "", "", "", "refresh_token"]
    sources = [source("other", text, number) for number, text in enumerate(texts, 1)]
    found = score_retrieval(QUESTION, [frozenset({"guides/auth"})], sources)
    assert (found.has_page, found.has_evidence) == (False, True)


def test_sixth_chunk_does_not_count() -> None:
    sources = [*(source("other", "") for _ in range(5)), source("auth", "30 minutes refresh_token")]
    found = score_retrieval(QUESTION, [frozenset({"guides/auth"})], sources)
    assert (found.has_page, found.has_evidence) == (False, False)
    assert found.missing_evidence == QUESTION.facts


def test_answer_is_right_if_its_steps_state_all_facts() -> None:
    right = result(QUESTION, answer("Half an hour [1]", "Then use `refresh_token` [1]"))
    wrong = result(QUESTION, answer("Half an hour [1]"))
    assert (right.right, wrong.right) == (True, False)
    assert wrong.missing_facts == (("refresh_token",),)


def test_citations_are_not_part_of_the_text() -> None:
    question = EvaluationQuestion(question="how many", gold=("auth",), facts=(("1",),))
    assert result(question, answer("Two [1]")).right is False
    assert result(question, answer("items[2]: 1 [1]")).right is True


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (answer("Quoted [1]"), "answered"),
        (answer("Not covered."), "not_covered"),
        (answer("An index: a[7]"), "not_covered"),
        (answer("Not about this.", type_="unknown"), "refused"),
    ],
)
def test_outcome_depends_on_type_and_citations(given: Answer, outcome: str) -> None:
    assert outcome_of(given) == outcome


def test_unanswerable_question_is_right_without_a_quote() -> None:
    assert result(UNANSWERABLE, answer("Not covered.")).right is True
    assert result(UNANSWERABLE, answer("Quoted [1]")).right is False


def test_answer_is_grounded_if_the_sources_support_all_of_it() -> None:
    given = answer("Half an hour [1]")
    unsupported = given.model_copy(update={"unsupported": [1]})
    unverified = given.model_copy(update={"unverified": ["refresh_token"]})
    cases = [given, unsupported, unverified, answer("Not covered.")]
    results = [result(QUESTION, each) for each in cases]
    assert [each.grounded for each in results] == [True, False, False, None]
    assert answer_scores(results).grounded == pytest.approx(1 / 3)


def test_scores_count_what_they_name() -> None:
    right = "half an hour, refresh_token [1]"
    results = [
        result(QUESTION, answer(right)),
        result(QUESTION, answer("wrong [1]")),
        result(QUESTION, answer("wrong [1]", confidence="low")),
        result(QUESTION, answer("Refused.", type_="unknown")),
        result(UNANSWERABLE, answer("Refused.", type_="unknown")),
        result(UNANSWERABLE, answer("wrong [1]", confidence="low")),
        result(UNANSWERABLE, answer("wrong [1]", confidence="medium")),
        result(UNANSWERABLE, answer("wrong [1]")),
    ]
    scores = answer_scores(results)
    assert (scores.answerable, scores.unanswerable) == (4, 4)
    assert (scores.right, scores.refused, scores.not_covered) == (0.25, 0.25, 0.0)
    assert scores.high_and_wrong == 0.5
    assert (scores.honest, scores.unanswerable_high) == (0.5, 0.25)
    levels = [(level.confidence, level.answers, level.right) for level in scores.reliability]
    assert levels == [("high", 3, 1 / 3), ("medium", 1, 0.0), ("low", 2, 0.0)]


def test_questions_without_facts_are_not_graded() -> None:
    question = QUESTION.model_copy(update={"facts": ()})
    scores = answer_scores([result(question, answer("Quoted [1]"))])
    assert (scores.page, scores.evidence, scores.right, scores.high_and_wrong) == (
        0.0,
        None,
        None,
        None,
    )
    assert scores.refused == 0.0


def evaluation(*results: ScoredAnswer) -> AnswerEvaluation:
    return AnswerEvaluation(
        platform="Acme",
        documents=1,
        answered_by="extractive",
        judge=None,
        scores=answer_scores(results),
        grades=None,
        questions=results,
    )


# --- gold names ---------------------------------------------------------------------------------


@pytest.fixture
def documents() -> DocumentIndex:
    """Operations below the base path /api, two of which share a path and two a page, and two pages."""
    index = DocumentIndex()
    for id, url, method in (
        ("list_users", "/api/users", "GET"),
        ("create_user", "/api/users", "POST"),
        ("admin_users", "/api/admin/users", "GET"),
    ):
        index.add([chunk(id, url, method, "request_url")])
    index.add([chunk("guides/users")])
    index.add([chunk("users")])
    index.add([chunk("orders#list", "/api/orders", "GET", "request_url")])
    index.add([chunk("orders#get", "/api/orders/{id}", "GET", "request_url")])
    return index


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("POST /users", {"docs/create_user"}),
        ("GET /users", {"docs/list_users"}),
        ("GET /admin/users", {"docs/admin_users"}),
        ("DELETE /users", set()),
        ("guides/users.mdx", {"docs/guides/users"}),
        ("site/guides/users.md", {"docs/guides/users"}),
        ("other/users.md", {"docs/users"}),
        ("docs/orders.md", {"docs/orders#list", "docs/orders#get"}),
        ("missing.md", set()),
        ("", set()),
    ],
)
def test_gold_may_be_an_operation_or_a_file(
    documents: DocumentIndex, name: str, found: set[str]
) -> None:
    assert documents.documents_named(name) == found


# --- apidesk evaluate --answers -----------------------------------------------------------------

RIGHT = {"id": 1, "question": "签名怎么算", "gold": ["guides/signing.md"], "facts": [["签名", "x"]]}
WRONG = {"question": "订单发货接口的必填参数", "gold": "1110", "facts": ["a fact of another page"]}
WEATHER = {"question": "今天天气怎么样", "kind": "unanswerable"}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the store; the first command indexes the samples."""
    return tmp_path_factory.mktemp("stores")


@pytest.fixture
def evaluate(stores: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Evaluate:
    """Run the command with the option on the samples, in a folder with the file of questions."""
    monkeypatch.setenv("APIDESK_MILVUS_URI", str(stores / "milvus.db"))
    monkeypatch.setenv("APIDESK_DATABASE_URL", f"sqlite:///{stores / 'apidesk.db'}")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    lines = "\n".join(json.dumps(line) for line in (RIGHT, WRONG, WEATHER))
    Path("questions.jsonl").write_text(lines, encoding="utf-8")

    def run(*arguments: object, file: str | None = "questions.jsonl") -> Result:
        given = [*filter(None, [file]), "--answers", *map(str, arguments)]
        return CliRunner().invoke(main, ["evaluate", *given])

    return run


def test_answers_are_scored_as_json(evaluate: Evaluate) -> None:
    run = evaluate("--json")
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    assert (found["answeredBy"], found["judge"], found["grades"]) == ("extractive", None, None)
    assert [each["right"] for each in found["questions"]] == [True, False, True]
    assert [each["page"] for each in found["questions"]] == [True, True, None]
    assert found["questions"][1]["missingFacts"] == [["a fact of another page"]]
    scores = found["scores"]
    assert (scores["answerable"], scores["right"], scores["page"]) == (2, 0.5, 1.0)
    assert (scores["unanswerable"], scores["honest"]) == (1, 1.0)


def test_repeated_questions_are_left_out(evaluate: Evaluate) -> None:
    lines = [json.dumps(line) for line in (RIGHT, WEATHER, RIGHT, RIGHT)]
    Path("questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    shown = evaluate().stdout
    assert "  2 questions, 32 documents\nleft out: 2 repeated questions\n" in shown


def test_answers_are_scored_as_text(evaluate: Evaluate) -> None:
    run = evaluate()
    assert run.exit_code == 0, run.output
    for said in ("2 answerable", "1 unanswerable", "high and wrong", "confidence", "answered by"):
        assert said in run.stdout
    assert "1 answer is not right:" in run.stdout
    assert "  3 questions, 32 documents" in run.stdout
    missing = "missing from the answer, and not all were retrieved: a fact of another page"
    assert missing in run.stdout


TABLE = "| Plan | Requests |\n| --- | --- |\n| Starter | 10 |\n| Growth | {} |"


def test_tables_stay_readable_in_wrong_answers(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = result(QUESTION, answer("Limits count per key. [1]", TABLE.format(50), "[1]"))
    print_answers(evaluation(wrong))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    start = lines.index("| Plan | Requests |")
    assert lines[start - 2 : start] == ["Limits count per key. [1]", ""]
    assert lines[start + 3 :][:3] == ["| Growth | 50 |", "", "[1]"]


def test_honest_answers_are_not_listed_as_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    unsure = result(UNANSWERABLE, answer("Perhaps [1]", confidence="low"))
    print_answers(evaluation(unsure))
    assert "not right" not in capsys.readouterr().out
    sure = result(UNANSWERABLE, answer("Surely [1]", confidence="medium"))
    print_answers(evaluation(unsure, sure))
    assert "1 answer is not right:" in capsys.readouterr().out
    found = compare_evaluations(evaluation(unsure), evaluation(sure))
    assert (len(found.better), len(found.worse)) == (0, 1)


def test_repeated_questions_are_compared_once(capsys: pytest.CaptureFixture[str]) -> None:
    one = result(QUESTION, answer("half an hour, refresh_token [1]"))
    print_comparison(compare_evaluations(evaluation(one, one), evaluation(one, one)))
    shown = capsys.readouterr().out
    assert "1 question in both" in shown
    assert re.search(r"^page +0\.000 +0\.000 +\+0\.000", shown, re.MULTILINE)


def test_comparison_shows_the_lines_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    long = "A token is valid for a while. " * 20
    right, wrong = "half an hour, refresh_token", "nothing"
    before = evaluation(result(QUESTION, answer(TABLE.format(50), f"{long}{right} [1]")))
    after = evaluation(result(QUESTION, answer(TABLE.format(75), f"{long}{wrong} [1]")))
    after = after.model_copy(update={"answered_by": "openai:gpt-5", "documents": 2})
    print_comparison(compare_evaluations(before, after))
    shown = capsys.readouterr().out
    lines = [line.strip() for line in shown.splitlines()]
    assert "| Growth | 50 |" in lines
    assert "| Growth | 75 |" in lines
    assert "| Starter | 10 |" not in lines
    assert right in shown
    assert wrong in shown
    assert "1 question in both" in shown
    assert lines[:2] == ["before: answered by extractive", "after:  answered by openai:gpt-5"]
    assert "before: 1 document" in lines


def test_min_answer_sets_the_exit_code(evaluate: Evaluate) -> None:
    assert evaluate("--min-answer", 0.5).exit_code == 0
    failed = evaluate("--min-answer", 0.51)
    assert failed.exit_code == 1
    assert "the share of right answers is 0.500, below 0.51" in failed.stderr
    assert "high and wrong" in failed.stdout  # the results are printed anyway


def test_min_answer_fails_if_no_question_has_facts(evaluate: Evaluate) -> None:
    Path("questions.jsonl").write_text('{"question": "签名怎么算", "gold": ["signing"]}')
    failed = evaluate("--min-answer", 0.1)
    assert failed.exit_code == 1
    assert "--min-answer cannot be checked: no question has facts" in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "file", "said"),
    [
        ([], None, "--answers requires QUESTIONS"),
        (["--mode", "dense"], "questions.jsonl", "--mode cannot be combined with --answers"),
        (["--min-recall", 0.5], "questions.jsonl", "--min-recall cannot be combined"),
        (["--judge", "nobody:model"], "questions.jsonl", "APIDESK_JUDGE_MODEL"),
        (["--judge", ""], "questions.jsonl", "--judge: must not be empty"),
        (["--compare", "a.json", "--json"], "questions.jsonl", "--compare and --json"),
    ],
)
def test_invalid_combination_exits_with_2(
    evaluate: Evaluate, arguments: list[object], file: str | None, said: str
) -> None:
    run = evaluate(*arguments, file=file)
    assert run.exit_code == 2
    assert said in run.stderr


@pytest.mark.parametrize(
    "option", [["--min-answer", "0.5"], ["--judge", "openai:any"], ["--compare", "a.json"]]
)
def test_options_of_answers_require_answers(option: list[str]) -> None:
    run = CliRunner().invoke(main, ["evaluate", *option])
    assert run.exit_code == 2
    assert "require --answers" in run.stderr


@pytest.fixture
def judge(model_server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """The judge model's server. It grades the right answer `correct` and the wrong one `partly`."""
    monkeypatch.setenv("APIDESK_JUDGE_BASE_URL", model_server.base_url)
    monkeypatch.setenv("APIDESK_JUDGE_API_KEY", "test-key")
    model_server.route(lambda request: "1. 签名 | x" in request.text, {"grade": "correct"})
    model_server.default = {"grade": "partly"}
    return model_server


def test_judge_grades_answers_with_facts(evaluate: Evaluate, judge: ModelServer) -> None:
    found = json.loads(evaluate("--json", "--judge", "openai:scripted-judge").stdout)
    assert [each["grade"] for each in found["questions"]] == ["correct", "partly", None]
    assert found["grades"] == {"correct": 1, "partly": 1, "wrong": 0}
    assert (found["scores"]["correct"], found["scores"]["agreement"]) == (0.5, 1.0)
    assert len(judge.chat_requests) == 2
    told = evaluate("--judge", "openai:scripted-judge").stdout
    assert "graded by openai:scripted-judge: 1 correct, 1 partly, 0 wrong" in told
    assert "agreement" in told


def test_configured_judge_model_is_the_default(
    evaluate: Evaluate, judge: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APIDESK_JUDGE_MODEL", "openai:configured-judge")
    found = json.loads(evaluate("--json").stdout)
    assert (found["judge"], found["grades"]["correct"]) == ("openai:configured-judge", 1)
    found = json.loads(evaluate("--json", "--judge", "openai:other").stdout)
    assert (found["judge"], found["grades"]["correct"]) == ("openai:other", 1)


def test_failures_of_the_judge_are_counted(evaluate: Evaluate, judge: ModelServer) -> None:
    """The answer without a grade is left out of the share of correct answers."""
    judge.default = Reply(status=401)
    run = evaluate("--json", "--judge", "openai:scripted-judge")
    assert run.exit_code == 0
    found = json.loads(run.stdout)
    assert [each["grade"] for each in found["questions"]] == ["correct", None, None]
    assert "refuses the key" in found["questions"][1]["judgeFailure"]
    assert (found["scores"]["correct"], found["grades"]["correct"]) == (1.0, 1)
    assert "the judge failed for 1 of 2 answers: " in run.stderr


def test_judge_without_any_grade_exits_with_1(
    evaluate: Evaluate, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APIDESK_JUDGE_BASE_URL", model_server.base_url)
    monkeypatch.setenv("APIDESK_JUDGE_API_KEY", "test-key")
    model_server.route(lambda request: True, Reply(status=401))
    run = evaluate("--judge", "openai:scripted-judge")
    assert run.exit_code == 1
    assert (
        "the judge failed for 2 of 2 answers: APIDESK_JUDGE_MODEL=openai:scripted-judge"
        in run.stderr
    )
    assert "2 answerable" in run.stdout  # the results are printed anyway
    assert "Traceback" not in run.output


def test_results_are_a_langsmith_experiment(evaluate: Evaluate, judge: ModelServer) -> None:
    with langsmith_server(tracing=True) as langsmith:
        run = evaluate("--json", "--judge", "openai:scripted-judge")
        assert run.exit_code == 0, run.output
        evaluate("--json")
    found = json.loads(run.stdout)
    assert len(langsmith.datasets) == 1  # the experiments of one dataset can be compared
    assert [example["outputs"] for example in langsmith.examples] == [
        {"gold": ["guides/signing.md"], "facts": [["签名", "x"]]},
        {"gold": ["1110"], "facts": [["a fact of another page"]]},
        {},
    ]
    assert len(langsmith.sessions) == 2
    assert found["experiments"] == [langsmith.sessions[0]["name"]]
    assert found["experiments"][0].startswith("apidesk answers")
    metadata = langsmith.sessions[0]["extra"]["metadata"]
    assert (metadata["answered_by"], metadata["judge"]) == ("extractive", "openai:scripted-judge")
    for sent in (b"correct", b"grounded", b"right", "签名".encode()):
        assert sent in langsmith.sent
    runs = {fields["name"] for fields in langsmith.runs.values() if "name" in fields}
    assert runs == {"AsyncTarget", "scores"}  # the questions are not traced as those of users


def test_earlier_result_is_compared(evaluate: Evaluate, judge: ModelServer) -> None:
    arguments = ("--judge", "openai:scripted-judge")
    Path("before.json").write_text(evaluate("--json", *arguments).stdout, encoding="utf-8")
    judge.default = {"grade": "correct"}
    told = evaluate("--compare", "before.json", *arguments).stdout
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert "3 questions in both before after change" in lines
    assert "correct 0.500 1.000 +0.500" in lines
    assert "by the judge's grades: 1 better, 0 worse" in told
    assert "better: 订单发货接口的必填参数" in told


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), ("{}", "not the output of"), ("[", "not the output of")],
)
def test_invalid_earlier_result_exits_with_2(
    evaluate: Evaluate, content: str | None, said: str
) -> None:
    if content is not None:
        Path("before.json").write_text(content)
    run = evaluate("--compare", "before.json")
    assert (run.exit_code, said in run.stderr) == (2, True)


def test_comparison_by_facts_counts_better_and_worse_answers() -> None:
    right, wrong = answer("half an hour, refresh_token [1]"), answer("Wrong [1]")
    other = QUESTION.model_copy(update={"question": "another question"})

    before = evaluation(result(QUESTION, right), result(UNANSWERABLE, right), result(other, right))
    after = evaluation(result(QUESTION, wrong), result(UNANSWERABLE, answer("Not covered.")))
    found = compare_evaluations(before, after)
    assert (found.questions, found.by_grade) == (2, False)
    assert [pair.after.question for pair in found.worse] == [QUESTION.question]
    assert [pair.after.question for pair in found.better] == [UNANSWERABLE.question]
    assert (found.before.right, found.after.right) == (1.0, 0.0)
    with pytest.raises(ConfigurationError, match="no question in common"):
        compare_evaluations(evaluation(result(other, right)), after)
