"""Models of evaluated answers, which `apidesk evaluate --answers --json` prints."""

from typing import Literal, get_args

from app.analytics.evaluation.dataset import Fact
from schemas.answer import Confidence
from schemas.base import ApiModel

K = 5
"""Number of retrieved chunks that are searched for the facts."""

Outcome = Literal["answered", "not_covered", "refused"]
"""`refused`: the question is off-topic; `not_covered`: no step cites a source."""

CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")

Grade = Literal["correct", "partly", "wrong"]
"""The verdict of a model on an answer, compared with the facts."""

GRADES: tuple[Grade, ...] = get_args(Grade)


class RetrievedSection(ApiModel):
    """A retrieved chunk."""

    document: str
    """Document key: `source/document_id`."""
    title: str
    section: str
    relevant: bool
    """Whether the chunk belongs to a gold document."""


class ScoredAnswer(ApiModel):
    """A question, its retrieved chunks and, unless only retrieval is measured, its answer."""

    id: str
    question: str
    kind: str
    gold: tuple[str, ...]
    facts: tuple[Fact, ...]
    unanswerable: bool
    """Whether the documents do not cover the question. A right answer then says so."""
    retrieved: tuple[RetrievedSection, ...]
    """The first five chunks."""
    page: bool | None
    """Whether the first five chunks include a gold document; None if the question has none."""
    evidence: bool | None
    """Whether the first five chunks state all facts; None if the question has no facts."""
    missing_evidence: tuple[Fact, ...]
    """The facts that the first five chunks do not state."""
    outcome: Outcome | None = None
    """None if only retrieval is measured. This also applies to the optional fields below."""
    confidence: Confidence | None = None
    right: bool | None = None
    """Answerable question: whether the answer states all facts; None if it has no facts.

    Unanswerable question: whether the answer cites no source.
    """
    missing_facts: tuple[Fact, ...] = ()
    """The facts that the answer does not state."""
    steps: tuple[str, ...] = ()
    grade: Grade | None = None
    """None if there is no judge, the question has no facts, or the answer cites no source."""
    degraded: str | None = None
    """The code of a DegradedReason; None if the answer is not degraded."""


class Reliability(ApiModel):
    """How many answers with one confidence level are right. Only answers that cite a source count."""

    confidence: Confidence
    answers: int
    right: float | None
    """Share of right answers; None if there are no answers."""


class AnswerScores(ApiModel):
    """Shares over the questions, from 0 to 1. A share is None if no question counts for it."""

    answerable: int
    page: float | None
    """A gold document is among the first five chunks."""
    evidence: float | None
    """The first five chunks state all facts."""
    right: float | None
    """The answer states all facts."""
    right_of_evidence: float | None
    """`right` divided by `evidence`."""
    high_and_wrong: float | None
    """The confidence is `high`, but the answer is not right."""
    refused: float | None
    """The question was refused as off-topic."""
    not_covered: float | None
    """The answer cites no source."""
    unanswerable: int
    honest: float | None
    """Share of the unanswerable questions refused, not covered or answered with confidence `low`."""
    unanswerable_high: float | None
    """Share of the unanswerable questions that were answered with confidence `high`."""
    reliability: tuple[Reliability, ...]
    """One entry per confidence level, highest first."""


class AnswerEvaluation(ApiModel):
    """The result of `apidesk evaluate --answers`."""

    platform: str
    documents: int
    answered_by: str
    """The configured chat model, or `extractive`."""
    judge: str | None
    """The model that graded the answers; None if no model did."""
    scores: AnswerScores
    grades: dict[Grade, int] | None
    """Number of answers with each grade; None if there is no judge."""
    questions: tuple[ScoredAnswer, ...]
