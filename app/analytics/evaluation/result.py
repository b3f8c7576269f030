"""Models of evaluation results, which `apidesk evaluate --json` prints."""

from pydantic import Field

from app.analytics.evaluation.dataset import GeneratedFrom
from runnables.retrieval.retriever import RetrievalMode
from schemas.base import ApiModel
from schemas.question import QuestionType

MAX_K = 20
"""The largest k for which metrics are computed."""


class RankedDocument(ApiModel):
    """A retrieved document, represented by its best chunk."""

    document: str
    """Document key: `source/document_id`."""
    title: str
    section: str
    score: float
    relevant: bool = Field(alias="right")
    """Whether it is a gold document."""


class QuestionResult(ApiModel):
    """The result of one route for one question."""

    question: str
    gold: tuple[str, ...]
    generated_from: GeneratedFrom | None = Field(alias="made")
    recall: float
    """Recall at the evaluation's k."""
    rank: int | None
    """Rank of the first gold document, from 1; None if it is not among the first 20."""
    ranks: tuple[int | None, ...]
    """Rank of each document of `gold`."""
    milliseconds: float
    retrieved: tuple[RankedDocument, ...] = Field(alias="found")
    """The first k documents."""


class RouteResult(ApiModel):
    """The metrics of one route; `hit`, `recall` and `chunk_recall` contain values for k = 1 to 20."""

    mode: RetrievalMode
    hit: tuple[float, ...]
    recall: tuple[float, ...]
    interval: tuple[float, float]
    """95 % confidence interval of recall at the evaluation's k."""
    mrr: float
    """Mean reciprocal rank over the first 20 documents."""
    chunk_recall: tuple[float, ...]
    """Recall within the first k chunks, instead of the first k documents.

    APIDESK_TOP_K also counts chunks.
    """
    p50_ms: float
    p95_ms: float
    questions: tuple[QuestionResult, ...]

    @property
    def label(self) -> str:
        """Display name of the route."""
        return self.mode.replace("_", " ")


class ClassificationResult(ApiModel):
    """Predicted question types compared with their labels."""

    by: str
    """`extractive`, or the name of the model."""
    matrix: dict[QuestionType, dict[QuestionType, int]]
    """Confusion matrix: counts by label (outer key) and predicted type (inner key)."""
    accuracy: float
    unanswered: int
    """Questions that the model failed to classify; they count as `general`."""


class GeneratedQuestions(ApiModel):
    """Describes a generated dataset."""

    path: str
    """File in which the questions are saved."""
    counts: dict[GeneratedFrom, int]
    """Number of questions of each kind."""


class Evaluation(ApiModel):
    """A complete evaluation."""

    platform: str
    documents: int
    questions: int
    with_gold: int
    """Questions with gold documents, on which retrieval is measured."""
    k: int
    primary_mode: RetrievalMode = Field(alias="judged")
    """The configured route, or the only one that was measured."""
    routes: tuple[RouteResult, ...]
    classification: ClassificationResult | None = None
    generated: GeneratedQuestions | None = Field(default=None, alias="made")
    """None if the questions were read from a file."""
    experiments: tuple[str, ...] = ()
    """Names of the LangSmith experiments."""

    @property
    def primary_route(self) -> RouteResult:
        """The result of `primary_mode`."""
        return next(route for route in self.routes if route.mode == self.primary_mode)

    @property
    def recall(self) -> float:
        """Recall at k of the primary route."""
        return self.primary_route.recall[self.k - 1]
