"""The task of every peer: classify the question, then answer it from five passages with citations."""

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

K = 5
"""Passages per answer."""

CHAT_MODEL = "scripted-chat"
EMBEDDING_MODEL = "scripted-embedding"
API_KEY = "none"

CLASSIFY = """\
CLASSIFY the question of a developer who uses the open platform.
api_call: how to call an interface, its parameters, its errors.
general: anything else about the platform: rules, accounts, how things work.
unknown: not about the platform at all.
Give the type, and the reason in one sentence."""

ANSWER = """\
Answer the developer's question from the numbered passages alone, in the language of the question.
Cite each passage that a statement comes from by its number in brackets, such as [1].
Say so where the passages do not answer the question."""

REFUSAL = "That is not about this platform."

_CITATION = re.compile(r"\[(\d+)\]")


class Classification(BaseModel):
    """The topic of a question."""

    type: Literal["api_call", "general", "unknown"]
    reason: str


class Question(BaseModel):
    """A question to a peer."""

    question: str


class Source(BaseModel):
    """A passage that an answer cites."""

    number: int
    title: str
    url: str


class Reply(BaseModel):
    """The reply of a peer."""

    type: str
    answer: str
    sources: list[Source]


def refusal() -> Reply:
    """Return the reply to an off-topic question, without a second model call."""
    return Reply(type="unknown", answer=REFUSAL, sources=[])


def cited(answer: str, passages: Sequence[tuple[str, str]]) -> list[Source]:
    """Return the sources that `answer` cites."""
    numbers = sorted({int(number) for number in _CITATION.findall(answer)})
    return [
        Source(number=number, title=passages[number - 1][0], url=passages[number - 1][1])
        for number in numbers
        if 1 <= number <= len(passages)
    ]
