"""What an evaluation found: the body that `apidesk evaluate --json` prints."""

from app.analytics.evaluation.dataset import MadeBy
from runnables.retrieval.retriever import RetrievalMode
from schemas.base import ApiModel
from schemas.question import QuestionType

MOST_K = 20
"""Measures are taken for k = 1 to here."""


class FoundDocument(ApiModel):
    """A document that was found, by the best of its chunks."""

    document: str
    """Source and id, with a slash between."""
    title: str
    section: str
    score: float
    right: bool
    """Whether it is one that was to be found."""


class QuestionResult(ApiModel):
    """What one route found for one question."""

    question: str
    gold: tuple[str, ...]
    made: MadeBy | None
    recall: float
    """At the evaluation's k."""
    rank: int | None
    """Place of the first right document, from 1; None where it is not among the first 20."""
    ranks: tuple[int | None, ...]
    """The same for each of `gold`."""
    milliseconds: float
    found: tuple[FoundDocument, ...]
    """The first k."""


class RouteResult(ApiModel):
    """The measures of one route; curves hold k = 1 to 20."""

    mode: RetrievalMode
    hit: tuple[float, ...]
    recall: tuple[float, ...]
    interval: tuple[float, float]
    """Of recall at the evaluation's k, with 95 % confidence."""
    mrr: float
    """Over the first 20 documents."""
    chunk_recall: tuple[float, ...]
    """Recall when k counts chunks, as APIDESK_TOP_K does, and not documents."""
    p50_ms: float
    p95_ms: float
    questions: tuple[QuestionResult, ...]

    @property
    def label(self) -> str:
        """The route's name for people."""
        return self.mode.replace("_", " ")


class ClassificationResult(ApiModel):
    """How the questions' types were told, against their labels."""

    by: str
    """`extractive`, or the model."""
    matrix: dict[QuestionType, dict[QuestionType, int]]
    """How many of each label (outer) were given each type (inner)."""
    accuracy: float
    unanswered: int
    """Questions that no model could classify; they stand as `general`."""


class MadeQuestions(ApiModel):
    """That apidesk made the questions, of what, and where they are kept."""

    path: str
    counts: dict[MadeBy, int]


class Evaluation(ApiModel):
    """A whole evaluation."""

    platform: str
    documents: int
    questions: int
    with_gold: int
    """Those of them that retrieval is judged by."""
    k: int
    judged: RetrievalMode
    """The route that the settings name, or the one that was asked for alone."""
    routes: tuple[RouteResult, ...]
    classification: ClassificationResult | None = None
    made: MadeQuestions | None = None
    experiments: tuple[str, ...] = ()
    """Names of the experiments in LangSmith."""

    @property
    def judged_route(self) -> RouteResult:
        """The route that decides."""
        return next(route for route in self.routes if route.mode == self.judged)

    @property
    def recall(self) -> float:
        """Recall at k of the route that decides."""
        return self.judged_route.recall[self.k - 1]
