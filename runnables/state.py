"""What travels from step to step: each step takes one of these and adds to it."""

from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

from schemas.answer import AnswerDraft, Round
from schemas.document import RetrievedChunk
from schemas.question import Question, StructuredQuestion


@dataclass(frozen=True)
class Classified:
    """What a question is about, and why nobody could tell, when that was so."""

    structured: StructuredQuestion
    degraded: str | None = None


class Understood(TypedDict):
    """A question, what it is about, and what was found for it."""

    asked: Question
    classified: Classified
    retrieved: list[RetrievedChunk]


@dataclass(frozen=True)
class Researched:
    """What a model looked up with tools, and what went wrong with that."""

    rounds: tuple[Round, ...] = ()
    degraded: str | None = None


class Evidence(Understood):
    """With the chunks that the answer may rest on; the first is number 1."""

    chunks: list[RetrievedChunk]
    researched: NotRequired[Researched]
    """Where tools were asked for."""


@dataclass(frozen=True)
class Written:
    """An answer that nobody has checked yet: who wrote it, and what went wrong on the way."""

    draft: AnswerDraft
    answered_by: str
    as_text: bool = False
    """Whether the model gave text in which no JSON could be found."""
    degraded: str | None = None


class Drafted(Evidence):
    """With an answer."""

    written: Written


def with_answer(evidence: Evidence, chunks: list[RetrievedChunk], written: Written) -> Drafted:
    """The evidence with an answer, and the chunks that its citations number."""
    return {**evidence, "chunks": chunks, "written": written}


def degraded(drafted: Drafted, reason: str) -> Drafted:
    """`drafted`, marked with what went wrong on the way."""
    return {**drafted, "written": replace(drafted["written"], degraded=reason)}
