"""`apidesk evaluate`: measures, and reading and generating questions."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.analytics.evaluation.dataset import (
    DocumentIndex,
    EvaluationQuestion,
    distinct_questions,
    read_questions,
    write_questions,
)
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
from app.service.answer_service import AnswerService
from schemas.errors import ConfigurationError, QuestionError
from tests.evaluation_questions import QUESTIONS, SIGNING, write_lines

pytestmark = pytest.mark.acceptance
SHIP = "https://open.example.com/#/api?apiId=1110"
SAMPLE_DOCUMENTS = 32


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
