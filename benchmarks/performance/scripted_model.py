"""Replies of the scripted model, with the same number of tokens for all systems."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

Kind = Literal["classification", "answer", "embedding"]

CLASSIFICATION_TOKENS = 30
ANSWER_TOKENS = 150

STEPS = 4
"""Maximum number of steps in an answer, each from another document."""

STEP_CHARACTERS = 110

CLASSIFY = "CLASSIFY"
"""Marks the system prompt of a client that classifies without a schema."""

OFF_TOPIC = (
    "What will the weather be in Paris tomorrow?",
    "Who won the football world cup in 1998?",
    "How do I bake sourdough bread at home?",
    "今天北京的天气怎么样？",
    "帮我写一首关于秋天的诗",
    "红烧肉怎么做才好吃？",
)
"""Questions that the model classifies as off-topic, also if a unique word is appended to them."""

TOPIC = "It asks how something is done on the platform, which the documents describe."
NO_TOPIC = "It has nothing to do with the platform that the documents describe."
PLAIN = " ".join(
    f"According to the documents, this is done in the way that part {n} describes in detail [{n}]."
    for n in range(1, STEPS + 1)
)

_DOCUMENT = re.compile(r'<document number="(\d+)">(.*?)</document>', re.DOTALL)
_QUESTION = re.compile(r"<question>\s*(.*?)\s*</question>", re.DOTALL)


@dataclass(frozen=True)
class ScriptedReply:
    """A reply that is split into a given number of tokens."""

    kind: Kind
    text: str

    @property
    def tokens(self) -> list[str]:
        """The text, split into the number of tokens of this kind of reply."""
        count = CLASSIFICATION_TOKENS if self.kind == "classification" else ANSWER_TOKENS
        ends = [len(self.text) * place // count for place in range(count + 1)]
        return [self.text[a:b] for a, b in pairwise(ends)]


def reply_to(request: dict[str, Any]) -> ScriptedReply:
    """Return the reply to a chat completion, in the requested schema or as plain text."""
    prompt = "\n".join(_texts(request["messages"]))
    on_topic = not any(question in prompt for question in OFF_TOPIC)
    if properties := _properties(request):
        values = _values(prompt, on_topic)
        reply = {name: values.get(name) for name in properties}  # in the order of the schema
        kind: Kind = "answer" if "answer" in properties else "classification"
        return ScriptedReply(kind, json.dumps(reply, ensure_ascii=False))
    if any(CLASSIFY in text for text in _texts(request["messages"], "system")):
        return ScriptedReply("classification", json.dumps(_classified(on_topic)))
    return ScriptedReply("answer", PLAIN)


def _texts(messages: list[dict[str, Any]], role: str | None = None) -> Iterator[str]:
    for message in messages:
        content = message.get("content") or ""
        if role in (None, message["role"]):
            yield content if isinstance(content, str) else "".join(p["text"] for p in content)


def _properties(request: dict[str, Any]) -> list[str]:
    """Return the fields of the requested schema, in order; empty without one."""
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return list(schema.get("properties", ()))


def _values(prompt: str, on_topic: bool) -> dict[str, Any]:
    """Return the values of the fields that the scripted model fills."""
    asked = _QUESTION.findall(prompt)
    question = asked[-1] if asked else ""
    return {
        **_classified(on_topic),
        "requestParam": {},
        "searchTerms": _terms(question),
        "question": question,
        "introduction": "Hello.",
        "answer": _steps(prompt),
        "relatedUrl": [],
    }


def _classified(on_topic: bool) -> dict[str, str]:
    if on_topic:
        return {"type": "general", "reason": TOPIC}
    return {"type": "unknown", "reason": NO_TOPIC}


def _terms(question: str) -> list[str]:
    """Return three short searches in the other language than the question."""
    return ["订单", "发货", "接口"] if question.isascii() else ["order", "shipment", "interface"]


def _steps(prompt: str) -> list[str]:
    """Return a cited sentence from each of the first documents."""
    found = [(number, _sentence(text)) for number, text in _DOCUMENT.findall(prompt)]
    return [f"{sentence} [{number}]" for number, sentence in found[:STEPS] if sentence]


def _sentence(document: str) -> str:
    """Return the last long line of a document, truncated."""
    lines = [line.strip() for line in document.splitlines()]
    long = [line for line in lines if len(line) > STEP_CHARACTERS // 4]
    return long[-1][:STEP_CHARACTERS] if long else ""
