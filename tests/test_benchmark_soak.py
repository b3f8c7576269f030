"""Tests of `make soak`: checking answers and reporting results."""

import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.document import write_between_markers
from benchmarks.soak.clients import INDEX_LAG_S, AskedQuestion, Question, find_error
from benchmarks.soak.documents import Documents
from benchmarks.soak.model import Model
from benchmarks.soak.processes import MemorySample
from benchmarks.soak.report import draw, report
from benchmarks.soak.result import Result
from tests.model_script import Recorded

pytestmark = pytest.mark.acceptance

NONCE, OTHERS = "ref0123abcd", "refffffffff"


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    documents = Documents(tmp_path)
    documents.settle()
    return documents


def answer(said: str, url: str = "https://acme.example/docs/topic-0", **fields: Any) -> Any:
    """The body of an answer with this text."""
    return {
        "answer": [said],
        "type": "general",
        "sources": [{"pageUrl": url}],
        "answeredBy": "openai:scripted-chat",
    } | fields


RIGHT = "The Falcon queue holds at most 10007 messages"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (answer(f"{RIGHT} ({NONCE}). [1]"), ""),
        (answer(f"{RIGHT}. [1]", answeredBy="extractive"), ""),
        (answer(f"{RIGHT} [1]"), "the question's own reference is missing"),
        (answer(f"{RIGHT} ({OTHERS}). [1]"), "the answer to another question"),
        (answer(f"{RIGHT} {OTHERS}", answeredBy="extractive"), "the answer to another question"),
        (answer(f"The Falcon queue holds at most 10107 messages ({NONCE})"), "none of"),
        (answer(f"{RIGHT} ({NONCE})", "https://acme.example/docs/topic-1"), "is not cited"),
        (answer("Not about Acme.", type="unknown"), "refused as off-topic"),
    ],
)
def test_wrong_answer_is_detected(documents: Documents, body: Any, wrong: str) -> None:
    question = Question("single", "…", NONCE, documents.topics[0], "limit")
    found = find_error(question, body, time.monotonic() + INDEX_LAG_S + 1)
    assert wrong in found if wrong else not found


def test_outdated_answer_is_wrong_after_indexing(documents: Documents) -> None:
    topic, later = documents.topics[0], time.monotonic() + INDEX_LAG_S + 1
    question = Question("single", "…", NONCE, topic, "limit")
    old = answer(f"{RIGHT} ({NONCE})")
    documents.change([topic])
    assert not find_error(question, old, later)  # a run may be in progress
    documents.settle()
    assert not find_error(question, old, topic.settled - 1)  # asked before it ended
    assert "20007" in find_error(question, old, later)


def test_answer_to_an_off_topic_question_is_wrong() -> None:
    question = Question("off-topic", "weather?", "", None, "limit")
    assert find_error(question, answer("It rains."), 0)
    assert not find_error(question, answer("Not about Acme.", sources=[], type="unknown"), 0)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("<question>How many messages does the Falcon queue hold? ref0</question>", "general"),
        ("<question>今天的天气怎么样？</question>", "unknown"),
        (
            "<history>Question: about the Otter bucket</history>"
            "<question>And how many messages does it hold? ref0</question>",
            "And how many messages does the Otter bucket hold? ref0",
        ),
        (
            f'<documents><document number="2">{RIGHT}.</document></documents>'
            f"<question>How many messages does the Falcon queue hold? {NONCE}</question>",
            f"{RIGHT} ({NONCE}). [2]",
        ),
        (
            "<documents></documents>"
            f"<question>How many messages does the Falcon queue hold? {NONCE}</question>",
            "does not cover it",
        ),
    ],
)
def test_scripted_model_answers_from_the_prompt(prompt: str, said: str) -> None:
    body = {"messages": [{"role": "user", "content": prompt}]}
    recorded = Recorded("/v1/chat/completions", {}, body, b"", 0.0)
    assert said in str(Model(failing=0)(recorded))


def result(**fields: Any) -> Result:
    asked = [
        AskedQuestion("single", 1.0, 0.5, "answered"),
        AskedQuestion("follow-up", 2.0, 0.7, "degraded"),
    ]
    weights = [MemorySample(float(second), 500, 300) for second in range(240)]
    seen: dict[str, Any] = {
        "minutes": 4,
        "clients": 2,
        "began": 0.0,
        "asked": asked,
        "runs": ["succeeded", "store unavailable"],
        "restarts": 2,
        "weights": weights,
        "model": {"asked": 100, "500": 5},
        "remembered": 1,
        "lost": 0,
        "kept": 10,
        "unkept": 0,
        "untimely": 0,
        "stacks": 0,
    }
    return Result(**(seen | fields))


@pytest.mark.parametrize(
    ("fields", "failures"),
    [
        ({}, []),
        ({"unkept": 2}, ["2 answered questions were not recorded"]),
        ({"lost": 1}, ["1 answers of sessions were not stored"]),
        ({"stacks": 2}, ["2 stack traces are in the server's log"]),
        ({"untimely": 3}, ["3 questions failed with 503 while the store was available"]),
        ({"runs": ["failed: …"]}, ["1 ingestion runs failed"]),
        ({"asked": []}, ["no question was answered"]),
        (
            {
                "asked": [
                    AskedQuestion("single", 1, 1, kind) for kind in ("answered", "wrong", "failed")
                ]
            },
            ["1 answers are wrong", "1 questions failed"],
        ),
        (
            {"weights": [MemorySample(s, 500 + s, 0) for s in map(float, range(240))]},
            ["memory grew by 20% after the first minute"],
        ),
        ({"weights": [MemorySample(s, 500 + s / 4, 0) for s in map(float, range(240))]}, []),
    ],
)
def test_failed_conditions_are_reported(fields: dict[str, Any], failures: list[str]) -> None:
    assert result(**fields).failures == failures


def test_figures_are_written_into_the_document(tmp_path: Path) -> None:
    document = tmp_path / "reliability.md"
    document.write_text("# Reliability\n\n<!-- figures -->\n<!-- /figures -->\n")
    write_between_markers(document, report(result(), cores=2))
    draw(result(), tmp_path / "images" / "soak.svg")
    text = document.read_text()
    assert "| single | 1 | 1 | 0 |" in text
    assert "| memory of the API, last minute to second | +0.0% | at most +10% |" in text
    assert "Every condition holds." in text
    assert "failed 5.0% of them (500: 5)" in text
    assert (tmp_path / "images" / "soak.svg").read_text().startswith("<?xml")
