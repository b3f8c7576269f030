"""Gaps among four hundred questions that a model answered."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ingestion.text.words import index_words, query_words
from runnables.question.topic_scorer import DEVELOPER_WORDS
from tests.conftest import SHARED_DATA, needs_shared_data
from tests.insights_records import rows_of
from tests.model_replies import MakeClient, ask, draft, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded
from tests.model_server import ModelServer
from tests.serving_process import wait_until

DATA = Path(__file__).parents[1] / "data"


def answered(request: Recorded) -> Said:
    """Quote the best line, if the documents contain half of the question's content words."""
    words = content_words(tagged(request, "question"))
    documents = re.findall(r'<document number="(\d+)">\n(.*?)</document>', request.text, re.DOTALL)
    lines = [(number, line) for number, text in documents for line in text.splitlines()]
    held = {word for _, line in lines for word in index_words(line)}
    if len(words & held) * 2 < len(words):
        return draft("文档没有写到这个问题。")
    number, best = max(lines, key=lambda each: len(words & set(index_words(each[1]))))
    return draft(f"{best} [{number}]")


def tagged(request: Recorded, tag: str) -> str:
    return re.findall(rf"<{tag}>\n(.*?)\n</{tag}>", request.text, re.DOTALL)[-1]  # type: ignore[no-any-return]


def content_words(text: str) -> set[str]:
    return set(query_words(text))


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


GAPS = {line["question"]: line["topic"] for line in read_lines(DATA / "insights_gaps.jsonl")}
"""Questions about three topics that the samples do not cover, fifteen wordings each, with their topics."""


def four_hundred_questions() -> list[str]:
    """`GAPS` among questions that the samples answer, unrelated questions and small talk."""
    names = ("on_topic", "on_topic_held_out", "on_topic_fresh", "retrieval_samples")
    own = [line["question"] for name in names for line in read_lines(DATA / f"{name}.jsonl")]
    public = [
        line["query"]
        for name in ("aws_docs_qa_en", "cmrc2018_dev_zh")
        for line in read_lines(SHARED_DATA / "retrieval" / name / "queries.jsonl")[:40]
    ]
    chatter = [line["query"] for line in read_lines(SHARED_DATA / "offtopic.jsonl")]
    return list(dict.fromkeys([*GAPS, *own, *public, *chatter[::4], *chatter]))[:400]


def classified(request: Recorded) -> Said:
    """On topic if the question shares words with the platform's description or developer vocabulary."""
    spoken = {*index_words(tagged(request, "platform")), *DEVELOPER_WORDS}
    found = content_words(tagged(request, "question")) & spoken
    return structured(type="general" if found else "unknown", api_name=None)


def check_gaps(gaps: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Assert that the three topics are among the first six (question, wordings)."""
    topics = []
    for question, texts in gaps[:6]:
        ((topic, count),) = Counter(map(GAPS.get, texts)).most_common(1)
        if topic is None:
            continue  # questions that the scripted model could not answer from its chunks
        assert count >= 0.9 * len(texts), texts
        assert GAPS[question] == topic
        topics.append(topic)
    assert sorted(topics) == sorted(set(GAPS.values()))


@pytest.mark.acceptance
@needs_shared_data
def test_gaps_among_four_hundred_questions(
    model_client: MakeClient, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.route(lambda request: "<groups>" in request.text, {"topics": []})  # joins nothing
    model_server.route(is_classification, classified)
    model_server.route(lambda request: True, answered)
    client = model_client(database_url=f"sqlite:///{tmp_path / 'a.db'}", spool=tmp_path / "spool")
    questions = four_hundred_questions()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda question: ask(client, question), questions))
    wait_until(
        lambda: client.get("/insights?table=errors").json()["questions"] == len(questions),
        "all questions are recorded",
    )
    found = client.get("/insights?table=gaps").json()
    check_gaps([(gap["question"], gap["wordings"]) for gap in found["gaps"]])
    rows = rows_of(client.get("/insights?table=gaps&format=csv").content.decode())
    assert [int(row["size"]) for row in rows] == [gap["size"] for gap in found["gaps"]]
    check_gaps([(row["question"], row["wordings"].split("\n")) for row in rows])
