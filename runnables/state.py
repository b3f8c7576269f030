"""The value that travels through the pipeline: each step takes it and adds to it."""

from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

from schemas.answer import AnswerDraft, Round
from schemas.degraded import DegradedReason
from schemas.document import RetrievedChunk
from schemas.question import Question, StructuredQuestion


@dataclass(frozen=True)
class Classification:
    """What a question is about."""

    structured: StructuredQuestion
    degraded: DegradedReason | None = None
    """Why no model classified the question, if a model should have."""


@dataclass(frozen=True)
class Research:
    """What a model looked up with tools."""

    rounds: tuple[Round, ...] = ()
    degraded: DegradedReason | None = None
    """Why the research was cut short or skipped."""


@dataclass(frozen=True)
class Draft:
    """An answer before grounding."""

    draft: AnswerDraft
    answered_by: str
    as_text: bool = False
    """True if the model replied with text in which no JSON could be found."""
    degraded: DegradedReason | None = None
    """Why the answer is not the one that the settings ask for."""


class PipelineState(TypedDict):
    """A question and everything that the steps have found out about it."""

    question: Question
    classification: Classification
    retrieved: list[RetrievedChunk]
    """The `k` best chunks, best first."""
    chunks: NotRequired[list[RetrievedChunk]]
    """The chunks that the answer may cite; the first one is number 1. Set by `boost-named-api`."""
    research: NotRequired[Research]
    """Set only in mode `tools`."""
    draft: NotRequired[Draft]
    """Set by `answer`."""


def with_draft(state: PipelineState, chunks: list[RetrievedChunk], draft: Draft) -> PipelineState:
    """Return `state` with an answer and the chunks that its citations number."""
    return {**state, "chunks": chunks, "draft": draft}


def mark_degraded(state: PipelineState, reason: DegradedReason) -> PipelineState:
    """Return `state` with its draft marked as degraded for `reason`."""
    return {**state, "draft": replace(state["draft"], degraded=reason)}
