"""The parts of the run: the ways to ask a question, and the other steps that call a model."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import httpx

from app.service.answer_service import connect_answer_service
from benchmarks.answers.sets import CORPORA, QUESTIONS
from schemas.answer import Answer
from schemas.settings import SAMPLE_PLATFORM, read_settings
from tests.live_server import live_server
from tests.real_models.checks import problems
from tests.real_models.measurements import ModelClock, Outcome
from tests.real_models.servers import CHAT_MODEL, CONTEXT_TOKENS

GRACE_S = 2.0
"""Seconds that an answer may take longer than the time limit, for its transfer."""

SAMPLE_FILES = ("on_topic", "on_topic_held_out", "on_topic_fresh")

Ask = Callable[[httpx.Client, str], Answer]

EMBEDDING = {
    "embedding_model": "openai:e5-passage",
    "embedding_requests": 1,
    "embedding_batch": 8,
    "embedding_chars": 320,
}
"""Settings for a small embedding model that computes one text at a time."""


@dataclass
class ServiceHarness:
    """Serves platforms with real models, and asks questions of the service."""

    folder: Path
    chat_url: str
    embedding_url: str
    clock: ModelClock
    deadline_s: float
    """Time limit of a question in seconds."""
    documents: str = ""
    """The texts of all chunks of the platform that is served."""

    @contextmanager
    def serving(self, platform: Path, **settings: Any) -> Iterator[httpx.Client]:
        """Index `platform` and serve it within the block; yield a client."""
        store = Path(tempfile.mkdtemp(dir=self.folder))
        service = connect_answer_service(
            read_settings(
                platform=platform,
                milvus_uri=str(store / "milvus.db"),
                database_url=f"sqlite:///{store}/records.db",
                spool=self.folder / "spool",
                cache_answers=False,
                chat_model=f"openai:{CHAT_MODEL}",
                chat_base_url=self.chat_url,
                chat_context_tokens=CONTEXT_TOKENS,
                max_reply_tokens=150,
                top_k=3,
                evidence_tokens=0,
                request_timeout=self.deadline_s,
                **settings,
            )
        )
        service.job.run(service.job.new_run("start"))
        chunks = service.collection.sample(service.collection.manifest.rows)
        self.documents = "\n".join(chunk.text for chunk in chunks)
        try:
            with (
                live_server(service) as url,
                httpx.Client(base_url=url, timeout=2 * self.deadline_s) as client,
            ):
                yield client
        finally:
            service.job.close()

    def ask(self, part: str, client: httpx.Client, ask: Ask, question: str) -> Outcome:
        """Ask one question and check its answer."""
        self.clock.seconds()
        started = time.monotonic()
        answer: Answer | None = None
        found: tuple[str, ...] = ()
        try:
            answer = ask(client, question)
        except (httpx.HTTPError, ValueError, KeyError) as error:
            found = (f"{type(error).__name__}: {error}",)
        seconds = time.monotonic() - started
        if answer:
            deadline_s = self.deadline_s + GRACE_S
            found = tuple(problems(answer, question, self.documents, seconds, deadline_s))
        return Outcome(part, question, answer, seconds, self.clock.seconds(), found)


def ask_all_parts(harness: ServiceHarness) -> Iterator[Outcome]:
    """Ask 40 questions about the samples: over each interface, and with each step that calls a model."""
    embedding = EMBEDDING | {"embedding_base_url": harness.embedding_url}
    judge = {
        "judge_model": f"openai:{CHAT_MODEL}",
        "judge_base_url": harness.chat_url,
        "judge_timeout": harness.deadline_s,
        "rerank": "model",
        "rerank_timeout": harness.deadline_s,
    }
    questions = iter(sample_questions())
    with harness.serving(SAMPLE_PLATFORM, **embedding) as client:
        _check(client)
        for part, ask, count in (
            ("/ask", ask_json, 16),
            ("events", ask_events, 5),
            ("/v1 stream", ask_openai, 5),
            ("mode `tools`", ask_tools, 3),
            ("conversation", ask_in_session, 5),
        ):
            for question in islice(questions, count):
                yield harness.ask(part, client, ask, question)
        client.get("/insights").raise_for_status()
    with harness.serving(SAMPLE_PLATFORM, **judge) as client:
        for question in islice(questions, 6):
            yield harness.ask("judge and rerank", client, ask_json, question)


def ask_many(harness: ServiceHarness, count: int) -> Iterator[Outcome]:
    """Ask `count` questions about the samples and the two invented platforms, full text only."""
    invented = {corpus.name: corpus for corpus in CORPORA if corpus.origin == "invented"}
    sets = [("samples", SAMPLE_PLATFORM, sample_questions())]
    for name, corpus in invented.items():
        platform = harness.folder / f"{name}.toml"
        platform.write_text(corpus.platform_toml(Path()), encoding="utf-8")
        sets.append((name, platform, questions_of(QUESTIONS / "work" / f"{name}.jsonl")))
    shares = [len(questions) for *_, questions in sets]
    for (name, platform, questions), share in zip(sets, shares, strict=True):
        with harness.serving(platform) as client:
            for question in questions[: round(count * share / sum(shares))]:
                yield harness.ask(name, client, ask_json, question)


def sample_questions() -> list[str]:
    """Return the questions about the samples, without those of the measuring part."""
    data = Path(__file__).resolve().parents[1] / "data"
    files = [QUESTIONS / "work/everyday.jsonl", *(data / f"{name}.jsonl" for name in SAMPLE_FILES)]
    return [question for file in files for question in questions_of(file)]


def questions_of(file: Path) -> list[str]:
    """Return the questions in a file with one JSON object per line."""
    return [json.loads(line)["question"] for line in file.read_text(encoding="utf-8").splitlines()]


def ask_json(client: httpx.Client, question: str, **body: object) -> Answer:
    """Ask over `POST /ask`."""
    response = client.post("/ask", json={"question": question, **body})
    response.raise_for_status()
    return Answer.model_validate(response.json())


def ask_tools(client: httpx.Client, question: str) -> Answer:
    """Ask in mode `tools`."""
    return ask_json(client, question, mode="tools")


def ask_in_session(client: httpx.Client, question: str) -> Answer:
    """Ask as a turn of one conversation."""
    return ask_json(client, question, session="real-models")


def ask_events(client: httpx.Client, question: str) -> Answer:
    """Ask over `POST /ask` with events, and return the answer in the last event."""
    headers = {"Accept": "text/event-stream"}
    with client.stream("POST", "/ask", json={"question": question}, headers=headers) as response:
        response.raise_for_status()
        data = [
            line[len("data: ") :] for line in response.iter_lines() if line.startswith("data: ")
        ]
    return Answer.model_validate(json.loads(data[-1]))


def ask_openai(client: httpx.Client, question: str) -> Answer:
    """Ask over `POST /v1/chat/completions` as a stream; the streamed text is the only step of the answer."""
    body = {"model": "apidesk", "stream": True, "messages": [{"role": "user", "content": question}]}
    text = ""
    details: dict[str, Any] = {}
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line.removeprefix("data: "))["choices"]:
                    text += choice["delta"].get("content") or ""
                    details = choice["delta"].get("apidesk") or details
    if not text.strip():
        raise ValueError("the stream has no text")
    defaults = {"question": question, "introduction": "", "answer": [text], "language": "en"}
    return Answer.model_validate(defaults | details)


def _check(client: httpx.Client) -> None:
    """Raise ValueError unless the models are ready."""
    ready = client.get("/health/ready").json()
    if ready["status"] != "ok":
        raise ValueError(f"not ready: {ready}")
