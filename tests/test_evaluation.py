"""`apidesk evaluate`: metrics, reading and generating questions, and the whole command."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from app.analytics.evaluation.dataset import (
    DocumentIndex,
    EvaluationQuestion,
    distinct_questions,
    read_questions,
    write_questions,
)
from app.analytics.evaluation.experiments import ExperimentLog, LoggedResult
from app.analytics.evaluation.generated_questions import generate_questions
from app.analytics.evaluation.scoring import (
    ProbeResult,
    confusion_matrix,
    first_rank,
    hit_at,
    percentile,
    recall_at,
    reciprocal_rank,
    wilson_interval,
)
from app.cli.main import main
from app.service.answer_service import AnswerService
from schemas.errors import ConfigurationError, QuestionError
from tests.acme import PLATFORM, write_pages
from tests.langsmith_server import LangSmith, langsmith_server
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer

pytestmark = pytest.mark.acceptance

SIGNING = "https://open.example.com/docs/signing"
SHIP = "https://open.example.com/#/api?apiId=1110"
SAMPLE_DOCUMENTS = 32

QUESTIONS = [
    {"question": "签名怎么算", "gold": [SIGNING], "type": "general"},
    {
        "query": "订单发货接口的参数",
        "gold": "订单发货",
        "type": "api_call",
        "answer": ["passed over"],
    },
    {"question": "refund flow and rate limits", "gold": ["refund-flow", "rate-limits"]},
    {"question": "今天天气怎么样"},
]

Evaluate = Callable[..., Result]


# --- measures -----------------------------------------------------------------------------------


def gold(*names: str) -> list[frozenset[str]]:
    """Gold items from names; either document satisfies `a|b`."""
    return [frozenset(name.split("|")) for name in names]


@pytest.mark.parametrize(
    ("ranking", "wanted", "k", "hit", "recall", "reciprocal"),
    [
        ("a b c d", gold("a"), 1, 1, 1, 1),
        ("a b c d", gold("b"), 1, 0, 0, 1 / 2),
        ("a b c d", gold("b"), 2, 1, 1, 1 / 2),
        ("a b c d", gold("c", "x"), 3, 1, 1 / 2, 1 / 3),
        ("a b c d", gold("a", "d", "x"), 4, 1, 2 / 3, 1),
        ("a b c d", gold("x"), 4, 0, 0, 0),
        ("a b c d", gold("x|d"), 4, 1, 1, 1 / 4),
        ("a b c d", gold("x|d", "b"), 2, 1, 1 / 2, 1 / 2),
        ("", gold("a"), 20, 0, 0, 0),
    ],
)
def test_measures_of_one_ranking(
    ranking: str,
    wanted: list[frozenset[str]],
    k: int,
    hit: float,
    recall: float,
    reciprocal: float,
) -> None:
    found = ranking.split()
    assert hit_at(k, found, wanted) == hit
    assert recall_at(k, found, wanted) == pytest.approx(recall)
    assert reciprocal_rank(found, wanted) == pytest.approx(reciprocal)
    assert first_rank(found, wanted) == (round(1 / reciprocal) if reciprocal else None)


def test_document_is_ranked_by_its_first_chunk() -> None:
    chunks = [SimpleNamespace(source="docs", document_id=name) for name in "aabacb"]
    retrieved: list[Any] = [SimpleNamespace(chunk=chunk) for chunk in chunks]
    assert ProbeResult(retrieved, 0).ranking == ["docs/a", "docs/b", "docs/c"]


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([7], 0.5, 7), ([4, 1, 3, 2], 0.5, 2), ([4, 1, 3, 2], 0.95, 4), (range(1, 101), 0.95, 95)],
)
def test_percentile_uses_nearest_rank(values: Any, share: float, expected: float) -> None:
    assert percentile(list(values), share) == expected


@pytest.mark.parametrize(
    ("share", "count", "low", "high"),
    [(0.5, 10, 0.2366, 0.7634), (1.0, 10, 0.7225, 1.0), (0.0, 10, 0.0, 0.2775)],
)
def test_confidence_interval_is_wilson(share: float, count: int, low: float, high: float) -> None:
    assert wilson_interval(share, count) == pytest.approx((low, high), abs=1e-4)


def test_confusion_matrix_counts_predictions_by_label() -> None:
    found = confusion_matrix(
        [("general", "general"), ("general", "api_call"), ("unknown", "unknown")]
    )
    assert found["general"] == {"api_call": 1, "general": 1, "unknown": 0}
    assert found["unknown"]["unknown"] == 1
    assert sum(found["api_call"].values()) == 0


# --- questions ----------------------------------------------------------------------------------


def write_lines(path: Path, *lines: object) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def test_public_dataset_formats_are_read(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.jsonl", *QUESTIONS[:2], "", *QUESTIONS[2:])
    found = read_questions(path)
    assert [question.question for question in found][1] == "订单发货接口的参数"
    assert found[1].gold == ("订单发货",)
    assert [question.expected_type for question in found] == [
        "general",
        "api_call",
        None,
        "unknown",
    ]


def test_ids_are_read_as_text(tmp_path: Path) -> None:
    lines = [{"question": "a", **fields} for fields in ({"id": 7}, {"id": "q7"}, {"id": None}, {})]
    found = read_questions(write_lines(tmp_path / "q.jsonl", *lines))
    assert [question.id for question in found] == ["7", "q7", "", ""]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"question": "a"}', "{"], "line 2: Invalid JSON"),
        (['{"question": "a"}', '["a"]'], "line 2: Input should be an object"),
        (['{"question": "a"}', "", "{]"], "line 3: Invalid JSON: key must be a string at column 2"),
        (["[", '{"question": "a"}', "]"], "not JSON Lines: each line must be an object such as"),
        (["question;gold", "a;b"], "not JSON Lines: each line must be an object such as"),
        (['{"gold": ["a"]}'], "line 1: question: Field required"),
        (['{"question": " "}'], "line 1: question: String should have at least 1 character"),
        (['{"question": "a", "gold": 1}'], "line 1: gold: Input should be"),
        (['{"question": "a", "type": "other"}'], "line 1: type: Input should be"),
        (["", " "], "contains no questions"),
    ],
)
def test_error_names_the_invalid_line(tmp_path: Path, lines: list[str], said: str) -> None:
    path = write_lines(tmp_path / "q.jsonl", *lines)
    with pytest.raises(QuestionError, match=re.escape(said)) as raised:
        read_questions(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"golds": ["a"]}, "unknown key 'golds'; did you mean 'gold'?"),
        ({"gold": ["a"], "fact": [["b"]]}, "unknown key 'fact'; did you mean 'facts'?"),
        ({"typ": "api_call"}, "unknown key 'typ'; did you mean 'type'?"),
        ({"Kind": "limit"}, "unknown key 'Kind'; did you mean 'kind'?"),
        ({"kind": "unanswerabel"}, "did you mean 'unanswerable'?"),
        ({"kind": "limit"}, "kind: 'limit' requires gold or facts"),
        ({"gold": ["a"], "kind": "unanswerabel"}, "kind: unknown value 'unanswerabel'; did you"),
        ({"gold": ["a"], "kind": "unanswerable"}, "kind: 'unanswerable' is for questions without"),
    ],
)
def test_misspelt_key_or_kind_is_refused(
    tmp_path: Path, fields: dict[str, object], said: str
) -> None:
    path = write_lines(tmp_path / "q.jsonl", "", {"question": "a", **fields})
    with pytest.raises(QuestionError, match=re.escape(f"{path}, line 2: ")) as raised:
        read_questions(path)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_misspelt_question_is_named(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.jsonl", {"qestion": "a"})
    with pytest.raises(QuestionError, match="line 1: unknown key 'qestion'; did you mean 'quest"):
        read_questions(path)


def test_keys_of_public_datasets_and_own_kinds_are_accepted(tmp_path: Path) -> None:
    fields = {"question_id": 1, "_id": "q", "qid": 1, "lang": "en", "answers": [], "style": "x"}
    dialogue = {"act": "inform", "king": 1, "qtype": "what", "goal": []}
    lines = [
        {"question": "a", "gold": ["b"], "kind": "limit", **fields},
        {"query": "a", "kind": "off-topic"},
        {"query": "a", **dialogue},
        {"query": "a", "gold": ["b"], "kind": "answerable"},
        {"query": "a", "facts": ["b"], "kind": "on-topic"},
    ]
    found = read_questions(write_lines(tmp_path / "q.jsonl", *lines))
    assert [question.expected_type for question in found] == [
        None,
        "unknown",
        "unknown",
        None,
        None,
    ]


def test_error_names_the_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b'{"question": "caf\xe9"}')
    with pytest.raises(QuestionError, match="latin: not UTF-8"):
        read_questions(tmp_path / "latin")
    with pytest.raises(QuestionError, match="none: No such file"):
        read_questions(tmp_path / "none")


def test_utf_16_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "怎么发货"}\n', encoding="utf-16")
    assert [question.question for question in read_questions(tmp_path / "q.jsonl")] == ["怎么发货"]


def test_repeated_questions_count_once() -> None:
    lines = [EvaluationQuestion(question=q, gold=(g,)) for q, g in ("ax", "bx", "ax", "ay")]
    assert [(line.question, line.gold) for line in distinct_questions(lines)] == [
        ("a", ("x",)),
        ("b", ("x",)),
        ("a", ("y",)),
    ]


def test_handwritten_questions_are_not_overwritten(tmp_path: Path) -> None:
    made = EvaluationQuestion(question="a", gold=("b",), generated_from="title")
    write_questions(tmp_path / "sub" / "q.jsonl", [made])
    write_questions(tmp_path / "sub" / "q.jsonl", [made, made])
    assert len(read_questions(tmp_path / "sub" / "q.jsonl")) == 2
    own = write_lines(tmp_path / "own.jsonl", {"question": "a", "gold": ["b"]})
    with pytest.raises(ConfigurationError, match="handwritten questions"):
        write_questions(own, [made])


def test_generated_questions_are_deterministic(sample_service: AnswerService) -> None:
    documents = DocumentIndex.read(sample_service.collection)
    made = generate_questions(documents)
    assert documents.count == SAMPLE_DOCUMENTS
    assert made == generate_questions(DocumentIndex.read(sample_service.collection))
    assert {question.generated_from for question in made} == {
        "title",
        "link",
        "error_code",
        "sentence",
    }
    assert len(made) <= 200
    assert len({question.question.casefold() for question in made}) == len(made)
    documents.check_gold(made)
    assert all(len(documents.documents_named(name)) == 1 for q in made for name in q.gold)
    assert len(generate_questions(documents, limit=40)) <= 40


def test_sentence_questions_omit_the_title_words(
    sample_service: AnswerService,
) -> None:
    made = generate_questions(DocumentIndex.read(sample_service.collection))
    sentence = next(q for q in made if q.generated_from == "sentence" and q.gold == (SIGNING,))
    assert "签名" not in sentence.question


def test_error_lists_the_first_unknown_gold_names(sample_service: AnswerService) -> None:
    documents = DocumentIndex.read(sample_service.collection, sample=0)
    assert documents.sample == []
    asked = EvaluationQuestion(question="a", gold=("p1", "1110", "p2", "p3", "p4"))
    with pytest.raises(QuestionError, match=r"'p1', 'p2', 'p3' and 1 more"):
        documents.check_gold([asked])


@pytest.mark.parametrize("name", ["/", ".", "..", "./"])
def test_gold_path_without_a_file_name_is_unknown(sample_service: AnswerService, name: str) -> None:
    documents = DocumentIndex.read(sample_service.collection, sample=0)
    with pytest.raises(QuestionError, match=re.escape(repr(name))):
        documents.check_gold([EvaluationQuestion(question="a", gold=(name,))])


@pytest.mark.parametrize("name", [SHIP, "1110", "订单发货", "/dop/api/v1/order/ship"])
def test_gold_matches_any_name_of_a_document(sample_service: AnswerService, name: str) -> None:
    documents = DocumentIndex.read(sample_service.collection, sample=0)
    asked = EvaluationQuestion(question="a", gold=(name, SHIP))
    once = documents.deduplicate_gold(asked)
    assert once.gold == (name,)
    assert documents.gold_documents(once) == [frozenset({"reference/1110"})]


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
