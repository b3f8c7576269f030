"""Tests of `make bench`: its arithmetic, its model server and its tables."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from openai import OpenAI

from benchmarks.document import write_between_markers
from benchmarks.peers.environment import PEERS
from benchmarks.performance import floor, questions
from benchmarks.performance.calls import NO_LATENCY, Call, Latencies, seconds_outside_calls
from benchmarks.performance.end_to_end import FULL_TEXT, HYBRID, EndToEnd
from benchmarks.performance.growth import Grown, Growth
from benchmarks.performance.ingestion import NAIVE, OURS, Indexed, Ingestion
from benchmarks.performance.large import Large
from benchmarks.performance.load import Load, buckets, late
from benchmarks.performance.memory import EMBEDDED, SERVED, Memory, MemoryUse
from benchmarks.performance.model_process import Model, running_model
from benchmarks.performance.passages import passages_of
from benchmarks.performance.plots import draw
from benchmarks.performance.report import Conditions, Result, report
from benchmarks.performance.rounds import in_turns
from benchmarks.performance.rows import Row, Target
from benchmarks.performance.scripted_model import (
    ANSWER_TOKENS,
    CLASSIFICATION_TOKENS,
    OFF_TOPIC,
    STEPS,
    reply_to,
)
from benchmarks.performance.start import Start
from benchmarks.performance.systems import FLOOR, Floor, ask
from benchmarks.performance.word_vectors import vector
from schemas.answer import AnswerDraft
from schemas.question import StructuredQuestion
from schemas.settings import SAMPLE_PLATFORM

pytestmark = pytest.mark.acceptance


def calls(*spans: tuple[float, float]) -> list[Call]:
    return [Call("answer", *span) for span in spans]


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 10),
        ([(2, 5)], 7),
        ([(2, 5), (5, 6)], 6),
        ([(5, 6), (2, 5.5)], 6),  # overlapping, in another order
        ([(2, 8), (3, 4)], 4),  # one within the other
        ([(-3, -1), (11, 12)], 10),  # another question's
        ([(-1, 1), (9, 12)], 8),
        ([(-1, 11)], 0),
    ],
)
def test_own_time_excludes_the_union_of_calls(
    spans: list[tuple[float, float]], seconds: float
) -> None:
    assert seconds_outside_calls(0, 10, calls(*spans)) == pytest.approx(seconds)


def test_each_round_starts_with_another_system() -> None:
    turns = list(in_turns("abc", 4))
    assert "".join(thing for _, thing in turns) == "abcbcacababc"
    assert Counter(turns).most_common(1)[0][1] == 1


@pytest.mark.parametrize(
    ("value", "target", "verdict"),
    [
        (0.8, Target(0.8), "yes"),
        (0.81, Target(0.8), "**no**"),
        (1.5, Target(1.5, at_least=True), "yes"),
        (1.4, Target(1.5, at_least=True), "**no**"),
        (None, Target(1.5), "not measured"),
        (3.0, None, "reported"),
    ],
)
def test_target_verdict(value: float | None, target: Target | None, verdict: str) -> None:
    assert Row("", "", "", value, target).verdict == verdict


def lags(*counts: int) -> str:
    """Metrics of the event loop's lag, with the number of samples within each bound."""
    lines = (
        f'apidesk_event_loop_lag_seconds_bucket{{le="{bound}"}} {float(count)}'
        for bound, count in zip(("0.001", "0.01", "+Inf"), counts, strict=True)
    )
    return "\n".join(["# TYPE apidesk_event_loop_lag_seconds histogram", *lines])


def test_lateness_covers_the_measured_interval() -> None:
    before, after = buckets(lags(100, 100, 100)), buckets(lags(150, 199, 200))
    assert late(before, after) == 0.01
    assert late(before, after, share=0.5) == 0.001
    assert late(after, after) is None
    assert late(buckets(""), buckets("")) is None


@pytest.mark.parametrize("asked", [questions.on_topic, questions.off_topic])
def test_questions_are_unique(asked: Any) -> None:
    many = list(islice(asked(), 700))
    assert len(set(many)) == len(many)


def test_platform_questions_are_distinct() -> None:
    assert not any(q.startswith(OFF_TOPIC) for q in islice(questions.on_topic(), 700))
    assert all(q.startswith(OFF_TOPIC) for q in islice(questions.off_topic(), 20))


def test_passages_are_chunks_of_the_platform(tmp_path: Path) -> None:
    passages = passages_of(SAMPLE_PLATFORM, tmp_path / "passages.jsonl")
    lines = passages.file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == passages.count > 200


def test_word_vectors_reflect_shared_words() -> None:
    texts = ["怎么取消订单", "How is an invoice issued?", "取消订单的接口", "issue an invoice"]
    rows = np.stack([np.frombuffer(vector(text), np.float32) for text in texts])
    near = rows @ rows.T
    assert np.allclose(np.diag(near), 1)
    assert near[0, 2] > 0.3 > near[0, 1]
    assert near[1, 3] > 0.3 > near[1, 2]


DOCUMENTS = "".join(
    f'<document number="{n}">\n# Heading\nThis long sentence of the documents says {n} times.\n</document>'
    for n in range(1, 6)
)


def request(prompt: str, schema: Any = None, system: str = "") -> dict[str, Any]:
    """The body of a chat completion."""
    body: dict[str, Any] = {
        "model": "scripted",
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
    }
    if schema is not None:
        named = {"name": schema.__name__, "schema": schema.model_json_schema()}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return body


def test_scripted_model_fills_the_schemas() -> None:
    prompt = f"{DOCUMENTS}<question>\nHow often?\n</question>"
    said = reply_to(request(prompt, AnswerDraft))
    draft = AnswerDraft.model_validate_json(said.text)
    assert draft.answer[2] == "This long sentence of the documents says 3 times. [3]"
    assert list(json.loads(said.text)) == list(AnswerDraft.model_json_schema()["properties"])
    assert len(said.tokens) == ANSWER_TOKENS
    assert "".join(said.tokens) == said.text
    for question, kind in (("How often?", "general"), (OFF_TOPIC[0], "unknown")):
        said = reply_to(request(f"<question>{question}</question>", StructuredQuestion))
        assert StructuredQuestion.model_validate_json(said.text).type == kind
        assert len(said.tokens) == CLASSIFICATION_TOKENS


def test_scripted_model_classifies_without_a_schema() -> None:
    assert '"general"' in reply_to(request("How often?", system="CLASSIFY this")).text
    assert '"unknown"' in reply_to(request(OFF_TOPIC[1], system="CLASSIFY this")).text
    assert "[3]" in reply_to(request("Is it CLASSIFY?")).text


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with running_model() as running:
        yield running


def test_model_server_implements_the_protocol(model: Model) -> None:
    with OpenAI(base_url=model.base_url, api_key="none") as client:
        messages: Any = [{"role": "user", "content": "How often?"}]
        whole = client.chat.completions.create(model="any", messages=messages)
        stream = client.chat.completions.create(
            model="any", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        events = list(stream)
        floats = client.embeddings.create(model="any", input="text", encoding_format="float")
        packed = client.embeddings.create(model="any", input=["other", "text"])
    text = "".join(e.choices[0].delta.content or "" for e in events if e.choices)
    assert text == whole.choices[0].message.content == reply_to(request("How often?")).text
    assert len(events) == ANSWER_TOKENS + 2
    assert events[-1].usage == whole.usage
    assert whole.usage is not None
    assert whole.usage.completion_tokens == ANSWER_TOKENS
    assert np.allclose(packed.data[1].embedding, floats.data[0].embedding)
    seen = model.seen()
    assert [call.kind for call in seen.calls] == ["answer", "answer", "embedding", "embedding"]
    assert '"stream":true' in seen.bodies["answer"].replace(" ", "")
    assert model.seen().calls == []


def test_floor_sends_the_same_requests_as_apidesk(model: Model) -> None:
    server = httpx.ASGITransport(floor.app(SAMPLE_PLATFORM, model.base_url))  # type: ignore[arg-type]
    system = Floor("http://floor/ask", pid=0)

    async def replies(*questions: str) -> list[dict[str, Any]]:
        async with httpx.AsyncClient(transport=server) as http:
            return [await ask(http, system, question) for question in questions]

    model.seen()
    answered, refused = asyncio.run(replies("How often?", OFF_TOPIC[0]))
    assert len(answered["answer"]) == STEPS
    assert refused == {"type": "unknown", "answer": [], "sources": []}
    seen = model.seen()
    assert [call.kind for call in seen.calls] == ["classification", "answer", "classification"]
    prompt = json.loads(seen.bodies["answer"])["messages"][-1]["content"]
    assert "How often?" in prompt
    assert '<document number="5">' in prompt


def test_abandoned_call_ends_when_abandoned(model: Model) -> None:
    model.set_pace(Latencies(first=60))
    with pytest.raises(httpx.TimeoutException):
        httpx.post(
            f"{model.base_url}/chat/completions",
            json=request("How often?"),
            timeout=0.05,
            trust_env=False,
        )
    model.set_pace(NO_LATENCY)
    found: list[Call] = []
    while not found:
        found = model.seen().calls
    assert 0.04 < found[0].ended - found[0].began < 30


def everything() -> list[Result]:
    """A result of each subject."""
    names = [HYBRID, FULL_TEXT, *PEERS]
    alone = EndToEnd(
        calls={name: Counter({"classification": 1, "answer": 1}) for name in names},
        calls_alone=[4.0],
        refused=[0.82],
        first_call_alone=[0.8],
        first_step=[2.1],
        again=[0.02],
    )
    load = Load(lag={HYBRID: 0.025})
    for place, name in enumerate(names, 1):
        alone.outside[name] = [place * 0.01]
        alone.whole[name] = [4 + place * 0.01]
        alone.without_latency[name] = [place * 0.02]
        load.without_latency[name] = [60 / place]
        load.fixed[name] = [12.0]
    alone.calls[FLOOR] = Counter({"classification": 1, "answer": 1})
    for seconds in (alone.outside, alone.whole, alone.without_latency):
        seconds[FLOOR] = [0.006]
    for rates in (load.without_latency, load.fixed):
        rates[FLOOR] = [200.0]
    ingestion = Ingestion()
    ingestion.runs[OURS] = [Indexed(1000, 1.0, 32, 0.01, 0.5, 0)]
    ingestion.runs[NAIVE] = [Indexed(300, 10.0, 300)]
    ingestion.runs["llama_index"] = [Indexed(1000, 4.0, 10, 0.01)]
    weights = {EMBEDDED: MemoryUse(300, 250), SERVED: MemoryUse(150, 120)}
    return [
        alone,
        load,
        ingestion,
        Start(help=[0.3], python=[0.02], ready=[3.0]),
        Memory(
            {**weights, "haystack_bm25": MemoryUse(140, 120), "haystack_dense": MemoryUse(160, 130)}
        ),
        Growth(
            tuple(
                Grown(route, chunks, chunks / 4e5, chunks / 1e5)
                for chunks in (1_000, 10_000, 50_000)
                for route in ("full text", "hybrid")
            )
        ),
        Large(50_000, alone, load),
    ]


LINES = [
    "| outside model calls, hybrid | 10.0 ms | Haystack, BM25 30.0 ms | 0.333 | at most 0.9 | yes |",
    "| outside model calls, full text | 20.0 ms | Haystack, BM25 30.0 ms | 0.667 | at most 0.8 | yes |",
    "| end to end, on-topic | 4,010 ms | its two model calls alone 4,000 ms | 1 | at most 1.05 | yes |",
    "| first grounded step | 2,100 ms | whole answer 4,010 ms | 0.524 | at most 0.5 | **no** |",
    "| 64 clients, models of 0 ms, full text | 30.0 a second | Haystack, BM25 20.0 | 1.5 | at least 1.3 | yes |",
    "| ingestion, first run, chunks a second | 1,000 | naive loop 30 | 33.3 | at least 15 | yes |",
    "| ingestion, first run, chunks a second | 1,000 | LlamaIndex 250 | 4 | at least 1 | yes |",
    "| apidesk | 1,000 | 1,000 | 0.010 | 32, then 0 |",
    "| naive loop | 300 | 30 |  | 300 |",
    "| ingestion, second run | 0.010 s | first run 1.000 s | 0.01 | at most 0.02 | yes |",
    "| ingestion, second run, in a new process | 0.500 s | first run 1.000 s | 0.5 |  | reported |",
    "| embedding requests of the second run | 0 |  | 0 | at most 0 | yes |",
    "| resident memory, apidesk, embedded | 300 MB | Haystack, BM25 140 MB | 2.14 | at most 1.9 | **no** |",
    "| outside model calls, 50,000 chunks, hybrid | 10.0 ms | Haystack, BM25 30.0 ms | 0.333 | at most 0.3 | **no** |",
    "| 64 clients, models of 0 ms, 50,000 chunks, full text | 30.0 a second | Haystack, BM25 20.0 | 1.5 | at least 5 | **no** |",
    "| Haystack, BM25 | 30.0 | 60.0 | 20.0 |",
    "| start to ready, warm | 3.00 s |  | 3 | at most 4 s | yes |",
    "| two calls, nothing else | 1 answer, 1 classification | 6.0 | 6.0 | 6.0 | 6.0 |",
    "| apidesk, hybrid | 60.0 | 12.0 | at most 25.0 |",
]


def test_figures_are_written_into_the_document(tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    document.write_text("# Performance\n\n<!-- figures -->\n<!-- /figures -->\n")
    text = report(everything(), Conditions(2, 1_004, ""))
    write_between_markers(document, text)
    written = document.read_text()
    for line in LINES:
        assert line in written
    best = "it is 0.20 outside model calls, and 0.10 with models of 0 ms."
    assert best in " ".join(written.split())
    assert "full text: 10,000 chunks; hybrid: 10,000 chunks" in " ".join(written.split())
    for result in everything():
        draw(result, tmp_path / "images")
    shown = {path.name for path in (tmp_path / "images").iterdir()}
    assert len(shown) == 4
    assert all(f"(../images/{name})" in written for name in shown)


def test_report_without_peers_makes_no_comparison() -> None:
    alone = everything()[0]
    assert isinstance(alone, EndToEnd)
    for seconds in (alone.outside, alone.without_latency):
        for name in PEERS:
            del seconds[name]
    text = report([alone], Conditions(2, 1_004, "no network."))
    assert "The peers were not measured: no network." in text
    assert (
        "| outside model calls, hybrid | 10.0 ms | no peer measured |  | at most 0.9 | not" in text
    )
