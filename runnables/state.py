"""The state of the pipeline, and the results of its steps."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NotRequired, TypedDict, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

from runnables.page_versions import PageVersions
from schemas.answer import Answer, AnswerDraft, DegradedReason, Round
from schemas.document import Chunk, RetrievedChunk
from schemas.question import Question, StructuredQuestion

_Input = TypeVar("_Input")


@dataclass(frozen=True)
class Classification:
    """The result of the step `structured-question`."""

    structured: StructuredQuestion
    degraded: DegradedReason | None = None
    """Set if no model could classify the question."""
    on_topic: float | None = None
    """The probability that the question is about the platform; None if rules did not estimate it."""
    is_exact: bool = False
    """Whether rules found an indexed error code, or the path or whole name of an API, in the question."""


@dataclass(frozen=True)
class Research:
    """The result of the step `research`."""

    rounds: tuple[Round, ...] = ()
    degraded: DegradedReason | None = None
    """Why the research is incomplete or was skipped; None if it succeeded."""


@dataclass(frozen=True)
class Draft:
    """An answer before grounding."""

    answer: AnswerDraft
    answered_by: str
    """`provider:model`, or `extractive` if no model wrote the answer."""
    is_plain_text: bool = False
    """Whether plain text became the answer, because no model wrote valid JSON."""
    degraded: DegradedReason | None = None
    """Why the answer was not made as the settings require; None if it was."""
    probability: float | None = None
    """The estimated probability that the best quotes are right; None if no quotes were looked for."""


class PipelineState(TypedDict):
    """A question and the results of the steps so far."""

    question: Question
    """The question. If it was a follow-up, `condense` has made it standalone."""
    classification: Classification
    """What the question is about. Set by `structured-question`."""
    retrieved: list[RetrievedChunk]
    """The `k` best chunks, best first.

    Set by `retrieve`; `expand-query` merges in the results of additional searches, and `boost-named-api`
    selects versions.
    """
    further: list[RetrievedChunk]
    """The next best chunks. A model may read them, and a quote may come from them. Set with `retrieved`."""
    chunks: NotRequired[list[RetrievedChunk]]
    """The chunks that the answer may cite; the first one is number 1.

    Set by `boost-named-api`; `research`, `web` and `add-evidence` add chunks. `answer` keeps those that the
    model was shown or, without a model, puts the quoted chunks first.
    """
    versions: NotRequired[PageVersions]
    """The versions of the chunks' pages. Set by `boost-named-api`."""
    compared: NotRequired[Sequence[Chunk]]
    """The chunks of the APIs that the question compares; empty if it compares none.

    Set by `boost-named-api` (see `chunks_of_compared_apis`).
    """
    missing_identifiers: NotRequired[Mapping[str, Sequence[str]]]
    """Error codes, paths, names and products in the question that no document contains.

    Each is mapped to similar ones that the documents contain. Set by `boost-named-api`.
    """
    research: NotRequired[Research]
    """Set by `research`, in mode `tools`."""
    draft: NotRequired[Draft]
    """Set by `answer` or, for a question that is probably off-topic, by `decline`."""


StateStep = Runnable[PipelineState, PipelineState]
"""A step that is shown as a run in traces."""

StateFunction = Callable[[PipelineState, RunnableConfig], Coroutine[Any, Any, PipelineState]]
"""A step that is not shown as a run in traces. The runs that it starts are shown."""

AnswerFunction = Callable[[_Input, RunnableConfig], Coroutine[Any, Any, Answer]]
"""A function that ends the pipeline with an answer."""


def with_retrieved(state: PipelineState, found: Sequence[RetrievedChunk]) -> PipelineState:
    """Return `state` with the first `k` chunks in `found` as `retrieved`, and the others as `further`."""
    k = state["question"].k
    return {**state, "retrieved": list(found[:k]), "further": list(found[k:])}


def with_draft(state: PipelineState, chunks: list[RetrievedChunk], draft: Draft) -> PipelineState:
    """Return `state` with `chunks` and `draft`, whose citations are positions in `chunks`, from 1."""
    return {**state, "chunks": chunks, "draft": draft}


def mark_degraded(state: PipelineState, reason: DegradedReason) -> PipelineState:
    """Return `state` with its draft marked as degraded for `reason`."""
    return {**state, "draft": replace(state["draft"], degraded=reason)}
