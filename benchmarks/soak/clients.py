"""Clients that ask all the time, each question with what its answer has to say."""

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

SLACK = 2.0
"""Seconds in which a worker may not have noticed yet what was indexed."""

TURNS = 5
"""Questions of a session."""

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
class Asked:
    """One question, and how it went."""

    kind: str
    at: float
    """When it was asked (`time.monotonic`)."""
    seconds: float
    outcome: str
    """`answered`, `degraded`, `busy`, `store away`, `left`, or `wrong` and `failed`, which must not be."""
    detail: str = ""


@dataclass(frozen=True)
class Question:
    """What is asked, and what for."""

    kind: str
    text: str
    nonce: str
    topic: Topic | None
    aspect: Aspect
    session: str | None = None
    events: bool = False
    leaves: bool = False

    @property
    def body(self) -> dict[str, Any]:
        """What POST /ask takes."""
        body: dict[str, Any] = {"question": self.text}
        if self.session:
            body["session"] = self.session
        return body | ({"mode": "tools"} if self.kind == "tools" else {})


@dataclass
class Record:
    """What all clients have seen."""

    asked: list[Asked] = field(default_factory=list)
    turns: list[tuple[str, str]] = field(default_factory=list)
    """Session and text of each answer that has to be remembered."""
    answers: set[str] = field(default_factory=set)
    """The id of each answer, whose question has to be kept."""


class Client:
    """Somebody who asks, and checks what comes back."""

    def __init__(self, number: int, url: str, documents: Documents, record: Record) -> None:
        self._random = random.Random(number)
        self._url = url
        self._documents = documents
        self._record = record
        self._name = f"client-{number}"
        self._sessions = 0

    async def run(self, until: Callable[[], bool]) -> None:
        """Ask until it is over."""
        async with httpx.AsyncClient(base_url=self._url, timeout=90, trust_env=False) as http:
            while not until():
                for question in self._questions():
                    asked = await self._ask(http, question)
                    self._record.asked.append(asked)
                    await asyncio.sleep(self._random.uniform(0.1, 1.0))
                    if asked.outcome not in ("answered", "degraded"):
                        break  # the session would not know what "it" is

    def _questions(self) -> list[Question]:
        """What is asked next: one question, or a session of them."""
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
        for _ in range(self._random.randrange(1, TURNS)):
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

    async def _ask(self, http: httpx.AsyncClient, question: Question) -> Asked:
        began = time.monotonic()
        try:
            outcome, detail = await self._outcome(http, question, began)
        except httpx.HTTPError as error:
            outcome, detail = "failed", f"{type(error).__name__}: {error}"
        except ValueError as error:  # no JSON
            outcome, detail = "failed", str(error)
        return Asked(question.kind, began, time.monotonic() - began, outcome, detail)

    async def _outcome(
        self, http: httpx.AsyncClient, question: Question, began: float
    ) -> tuple[str, str]:
        accept = {"Accept": "text/event-stream" if question.events else "application/json"}
        async with http.stream("POST", "/ask", json=question.body, headers=accept) as response:
            if response.status_code == 200 and question.events:
                if question.leaves:
                    await anext(response.aiter_lines(), "")
                    return "left", ""
                event, said = await _last_event(response)
                if event == "error":
                    return _refused(said["status"], said, True)
            else:
                said = json.loads(await response.aread())
                if response.status_code != 200:
                    again = "retry-after" in response.headers
                    return _refused(response.status_code, said, again)
        self._record.answers.add(said["id"])
        wrong = complaint(question, said, began)
        if wrong:
            return "wrong", f"{question.text!r}: {wrong}"
        if question.session:
            self._record.turns.append((question.session, "\n".join(said["answer"])))
        return ("degraded" if said["degraded"] else "answered"), ""


async def _last_event(response: httpx.Response) -> tuple[str, Any]:
    """The name and the data of what a stream ends with."""
    event, data = "", ""
    async for line in response.aiter_lines():
        if line.startswith("event:"):
            event = line.partition(":")[2].strip()
        elif line.startswith("data:"):
            data = line.partition(":")[2]
    if event not in ("answer", "error"):
        raise ValueError(f"the stream ends with {event!r}")
    return event, json.loads(data)


def _refused(status: int, problem: Any, says_when: bool) -> tuple[str, str]:
    """What a refusal counts as: 503 that can be tried again, and says when, is no failure."""
    known = {"busy": "busy", "store_unavailable": "store away"}
    if status == 503 and says_when and problem.get("code") in known:
        return known[problem["code"]], ""
    return "failed", f"{status} {problem.get('code')}: {problem.get('detail')}"


def complaint(question: Question, answer: Any, began: float) -> str:
    """What is wrong with an answer; empty where it is right."""
    said = "\n".join(answer["answer"])
    if question.topic is None:
        return "" if not answer["sources"] else f"an answer to what is off-topic: {said}"
    if answer["type"] == "unknown":
        return "taken for off-topic"
    allowed = question.topic.sentences(question.aspect, began, SLACK)
    if not any(sentence in said for sentence in allowed):
        return f"none of {allowed} in {said!r}"
    if question.topic.url not in {source["pageUrl"] for source in answer["sources"]}:
        return f"{question.topic.url} is not cited"
    if set(NONCE.findall(said)) - {question.nonce}:
        return f"the answer to another question: {said!r}"
    if answer["answeredBy"] != "extractive" and question.nonce not in said:
        return f"the question's own reference is missing: {said!r}"
    return ""
