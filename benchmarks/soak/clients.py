"""Clients that ask continuously and check the answers."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from benchmarks.soak.documents import Aspect, Documents, Topic
from benchmarks.soak.model import NONCE

INDEX_LAG_S = 2.0
"""Seconds within which a worker notices a new index."""

SESSION_TURNS = 5
"""Number of questions of a session."""

OFF_TOPIC = ("What will the weather be tomorrow?", "今天的天气怎么样？", "Who won the world cup?")

FIRST: dict[tuple[str, Aspect], str] = {
    ("en", "limit"): "How many messages does the {name} hold? {nonce}",
    ("en", "timeout"): "When does a call to the {name} time out? {nonce}",
    ("zh", "limit"): "{name}最多保存多少条消息？{nonce}",
    ("zh", "timeout"): "调用{name}多久超时？{nonce}",
}
FOLLOW_UP: dict[tuple[str, Aspect], str] = {
    ("en", "limit"): "And how many messages does it hold? {nonce}",
    ("en", "timeout"): "And when does a call to it time out? {nonce}",
    ("zh", "limit"): "那它最多保存多少条消息？{nonce}",
    ("zh", "timeout"): "那调用它多久超时？{nonce}",
}


@dataclass(frozen=True)
class AskedQuestion:
    """A question and its outcome."""

    kind: str
    at: float
    """Time of the question (`time.monotonic`)."""
    seconds: float
    outcome: str
    """`answered`, `degraded`, `busy`, `store unavailable` or `disconnected` (by the client).

    The failures are `wrong` and `failed`.
    """
    detail: str = ""


@dataclass(frozen=True)
class Question:
    """A question and its expected content."""

    kind: str
    text: str
    nonce: str
    topic: Topic | None
    aspect: Aspect
    session: str | None = None
    events: bool = False
    """Whether the client requests a stream of events."""
    leaves: bool = False
    """Whether the client disconnects after the first line of the stream."""

    @property
    def body(self) -> dict[str, Any]:
        """The body for POST /ask."""
        body: dict[str, Any] = {"question": self.text}
        if self.session:
            body["session"] = self.session
        return body | ({"mode": "tools"} if self.kind == "tools" else {})


@dataclass
class ClientLog:
    """The observations of all clients."""

    asked: list[AskedQuestion] = field(default_factory=list)
    turns: list[tuple[str, str]] = field(default_factory=list)
    """Session and text of each answer that must be in the history of its session."""
    answers: set[str] = field(default_factory=set)
    """Ids of answers whose questions must be recorded."""


class Client:
    """A client that asks and checks the answers."""

    def __init__(self, number: int, url: str, documents: Documents, record: ClientLog) -> None:
        self._random = random.Random(number)
        self._url = url
        self._documents = documents
        self._record = record
        self._name = f"client-{number}"
        self._sessions = 0

    async def run(self, until: Callable[[], bool]) -> None:
        """Ask until `until` returns true."""
        async with httpx.AsyncClient(base_url=self._url, timeout=90, trust_env=False) as http:
            while not until():
                for question in self._questions():
                    asked = await self._ask(http, question)
                    self._record.asked.append(asked)
                    await asyncio.sleep(self._random.uniform(0.1, 1.0))
                    if asked.outcome not in ("answered", "degraded"):
                        break  # without this answer, a follow-up cannot be understood

    def _questions(self) -> list[Question]:
        """Return the next question, or the questions of a session."""
        kind = self._random.choices(
            ("single", "session", "off-topic", "tools"), weights=(50, 20, 15, 15)
        )[0]
        topic = self._random.choice(self._documents.topics)
        aspect: Aspect = self._random.choice(("limit", "timeout"))
        if kind == "off-topic":
            text = self._random.choice(OFF_TOPIC)
            return [Question(kind, text, "", None, aspect, events=self._random.random() < 0.3)]
        if kind == "session":
            return self._session(topic, aspect)
        return [self._question(kind, FIRST, topic, aspect, None)]

    def _session(self, topic: Topic, aspect: Aspect) -> list[Question]:
        self._sessions += 1
        name = f"{self._name}-{self._sessions}"
        questions = [self._question("session", FIRST, topic, aspect, name)]
        for _ in range(self._random.randrange(1, SESSION_TURNS)):
            aspect = "timeout" if aspect == "limit" else "limit"
            questions.append(self._question("follow-up", FOLLOW_UP, topic, aspect, name))
        return questions

    def _question(
        self,
        kind: str,
        texts: dict[tuple[str, Aspect], str],
        topic: Topic,
        aspect: Aspect,
        session: str | None,
    ) -> Question:
        nonce = f"ref{self._random.getrandbits(32):08x}"
        text = texts[topic.language, aspect].format(name=topic.name, nonce=nonce)
        events = self._random.random() < 0.4
        leaves = events and session is None and self._random.random() < 0.15
        return Question(kind, text, nonce, topic, aspect, session, events, leaves)

    async def _ask(self, http: httpx.AsyncClient, question: Question) -> AskedQuestion:
        began = time.monotonic()
        try:
            outcome, detail = await self._outcome(http, question, began)
        except httpx.HTTPError as error:
            outcome, detail = "failed", f"{type(error).__name__}: {error}"
        except ValueError as error:  # no valid JSON, or an incomplete stream
            outcome, detail = "failed", str(error)
        return AskedQuestion(question.kind, began, time.monotonic() - began, outcome, detail)

    async def _outcome(
        self, http: httpx.AsyncClient, question: Question, began: float
    ) -> tuple[str, str]:
        accept = {"Accept": "text/event-stream" if question.events else "application/json"}
        async with http.stream("POST", "/ask", json=question.body, headers=accept) as response:
            if response.status_code == 200 and question.events:
                if question.leaves:
                    await anext(response.aiter_lines(), "")
                    return "disconnected", ""
                event, body = await _last_event(response)
                if event == "error":
                    return _refused(body["status"], body, True)
            else:
                body = json.loads(await response.aread())
                if response.status_code != 200:
                    has_retry_after = "retry-after" in response.headers
                    return _refused(response.status_code, body, has_retry_after)
        self._record.answers.add(body["id"])
        wrong = find_error(question, body, began)
        if wrong:
            return "wrong", f"{question.text!r}: {wrong}"
        if question.session:
            self._record.turns.append((question.session, "\n".join(body["answer"])))
        return ("degraded" if body["degraded"] else "answered"), ""


async def _last_event(response: httpx.Response) -> tuple[str, Any]:
    """Return the name and data of the last event of a stream."""
    event, data = "", ""
    async for line in response.aiter_lines():
        if line.startswith("event:"):
            event = line.partition(":")[2].strip()
        elif line.startswith("data:"):
            data = line.partition(":")[2]
    if event not in ("answer", "error"):
        raise ValueError(f"the stream ends with {event!r}")
    return event, json.loads(data)


def _refused(status: int, problem: Any, has_retry_after: bool) -> tuple[str, str]:
    """Return the outcome of a refusal and, if it is a failure, its details.

    A refusal with status 503 and Retry-After is not a failure.
    """
    known = {"busy": "busy", "store_unavailable": "store unavailable"}
    if status == 503 and has_retry_after and problem.get("code") in known:
        return known[problem["code"]], ""
    return "failed", f"{status} {problem.get('code')}: {problem.get('detail')}"


def find_error(question: Question, answer: Any, began: float) -> str:
    """Return what is wrong with an answer; empty if it is right."""
    text = "\n".join(answer["answer"])
    if question.topic is None:
        return "" if not answer["sources"] else f"an off-topic question is answered: {text}"
    if answer["type"] == "unknown":
        return "refused as off-topic"
    allowed = question.topic.sentences(question.aspect, began, INDEX_LAG_S)
    if not any(sentence in text for sentence in allowed):
        return f"none of {allowed} in {text!r}"
    if question.topic.url not in {source["pageUrl"] for source in answer["sources"]}:
        return f"{question.topic.url} is not cited"
    if set(NONCE.findall(text)) - {question.nonce}:
        return f"the answer to another question: {text!r}"
    if answer["answeredBy"] != "extractive" and question.nonce not in text:
        return f"the question's own reference is missing: {text!r}"
    return ""
