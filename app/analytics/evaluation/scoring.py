"""Computes the metrics of retrieval routes. `apidesk evaluate --json` prints an `Evaluation`.

A route is a retrieval mode: full text, dense or hybrid. All metrics except ranks and latencies are between
0 and 1, and higher is better.

A ranking is a list of documents, best first. The gold documents of a question are a list of sets, one set
per name in its field `gold`. A name can refer to several documents; it is enough to find one of them.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from pydantic import Field

from app.analytics.evaluation.dataset import (
    EvaluationQuestion,
    GeneratedFrom,
    GoldDocuments,
    qualified_id,
)
from runnables.retrieval.retriever import RetrievalMode
from schemas.base import ApiModel
from schemas.document import RetrievedChunk
from schemas.question import QuestionType

MAX_K = 20
"""The largest k for which metrics are computed."""

Ranking = Sequence[str]
"""Document keys, best first."""

NORMAL_95 = 1.96
"""The 97.5th percentile of the standard normal distribution, for two-sided 95% intervals."""


class RankedDocument(ApiModel):
    """A retrieved document, represented by its best chunk."""

    document: str
    """Document key: `source/document_id`."""
    title: str
    section: str
    score: float
    relevant: bool = Field(alias="right")
    """Whether the document is a gold document."""


class QuestionResult(ApiModel):
    """The result of one route for one question."""

    question: str
    gold: tuple[str, ...]
    generated_from: GeneratedFrom | None = Field(alias="made")
    recall: float
    """Recall at the evaluation's k."""
    rank: int | None
    """Rank of the first gold document, from 1; None if it is not among the first 20 documents."""
    ranks: tuple[int | None, ...]
    """For each name in `gold`, the rank of the best-ranked document with this name, from 1.

    None if no document with this name is among the first 20 documents.
    """
    milliseconds: float
    retrieved: tuple[RankedDocument, ...] = Field(alias="found")
    """The first k documents."""


class RouteResult(ApiModel):
    """The metrics of one route; `hit`, `recall` and `chunk_recall` contain values for k = 1 to 20."""

    mode: RetrievalMode
    hit: tuple[float, ...]
    recall: tuple[float, ...]
    interval: tuple[float, float]
    """95% confidence interval of recall at the evaluation's k."""
    mrr: float
    """Mean reciprocal rank over the first 20 documents."""
    chunk_recall: tuple[float, ...]
    """Recall within the first k chunks instead of documents, because APIDESK_TOP_K counts chunks."""
    p50_ms: float
    p95_ms: float
    questions: tuple[QuestionResult, ...]

    @property
    def label(self) -> str:
        """Display name of the route."""
        return self.mode.replace("_", " ")


class ClassificationResult(ApiModel):
    """Predicted question types, compared with the expected types (labels)."""

    by: str
    """`extractive`, or the name of the model."""
    matrix: dict[QuestionType, dict[QuestionType, int]]
    """Confusion matrix: counts by label (outer key) and predicted type (inner key)."""
    accuracy: float
    unclassified: int = Field(alias="unanswered")
    """Number of questions that no model could classify; they count as `general`."""


class GeneratedQuestions(ApiModel):
    """Describes a generated dataset."""

    path: str
    """File in which the questions are saved."""
    counts: dict[GeneratedFrom, int]
    """Number of questions generated from each part of a document, such as the title."""


class Evaluation(ApiModel):
    """A complete evaluation of retrieval."""

    platform: str
    documents: int
    questions: int
    with_gold: int
    """Number of questions with gold documents. Retrieval is measured on these questions."""
    repeated: int = 0
    """Number of questions that were left out, because they repeat an earlier one in the file."""
    k: int
    primary_mode: RetrievalMode = Field(alias="judged")
    """The configured route, or the first measured route if the configured route was not measured."""
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


class ProbeResult(NamedTuple):
    """The chunks retrieved for a question, best first, and the latency."""

    chunks: list[RetrievedChunk]
    milliseconds: float

    @property
    def documents(self) -> list[str]:
        """The document key of each chunk."""
        return [qualified_id(retrieved.chunk) for retrieved in self.chunks]

    @property
    def ranking(self) -> list[str]:
        """The first 20 distinct documents."""
        return list(dict.fromkeys(self.documents))[:MAX_K]


def route_result(
    mode: RetrievalMode,
    questions: Sequence[EvaluationQuestion],
    golds: Sequence[GoldDocuments],
    results: Sequence[ProbeResult],
    k: int,
) -> RouteResult:
    """Compute the metrics of the route `mode`. `golds` and `results` are in the order of `questions`."""
    by_document = list(zip([result.ranking for result in results], golds, strict=True))
    by_chunk = list(zip([result.documents for result in results], golds, strict=True))
    times = [result.milliseconds for result in results]
    return RouteResult(
        mode=mode,
        hit=_curve(hit_at, by_document),
        recall=_curve(recall_at, by_document),
        interval=_interval([recall_at(k, ranking, gold) for ranking, gold in by_document]),
        mrr=round(fmean(reciprocal_rank(ranking, gold) for ranking, gold in by_document), 4),
        chunk_recall=_curve(recall_at, by_chunk),
        p50_ms=round(percentile(times, 0.5), 2),
        p95_ms=round(percentile(times, 0.95), 2),
        questions=tuple(
            _question_result(question, gold, result, k)
            for question, gold, result in zip(questions, golds, results, strict=True)
        ),
    )


def question_scores(result: ProbeResult, gold: GoldDocuments, k: int) -> dict[str, float]:
    """Return the metrics of one question, by name."""
    ranking = result.ranking
    return {
        f"hit@{k}": hit_at(k, ranking, gold),
        f"recall@{k}": recall_at(k, ranking, gold),
        "reciprocal rank": reciprocal_rank(ranking, gold),
    }


def best_documents(result: ProbeResult, gold: GoldDocuments, k: int) -> list[RankedDocument]:
    """Return the first k documents, each represented by its best chunk."""
    relevant = frozenset[str]().union(*gold)
    best: dict[str, RetrievedChunk] = {}
    for key, retrieved in zip(result.documents, result.chunks, strict=True):
        best.setdefault(key, retrieved)
    return [
        RankedDocument(
            document=key,
            title=retrieved.chunk.title,
            section=retrieved.chunk.section,
            score=round(retrieved.score, 4),
            relevant=key in relevant,
        )
        for key, retrieved in list(best.items())[:k]
    ]


def _curve(
    measure: Callable[[int, Ranking, GoldDocuments], float],
    pairs: Sequence[tuple[Ranking, GoldDocuments]],
) -> tuple[float, ...]:
    """Return the mean of `measure` over all rankings, for k = 1 to 20."""
    ks = range(1, MAX_K + 1)
    return tuple(round(fmean(measure(k, ranking, gold) for ranking, gold in pairs), 4) for k in ks)


def _interval(recalls: Sequence[float]) -> tuple[float, float]:
    low, high = wilson_interval(fmean(recalls), len(recalls))
    return round(low, 4), round(high, 4)


def _question_result(
    question: EvaluationQuestion, gold: GoldDocuments, result: ProbeResult, k: int
) -> QuestionResult:
    return QuestionResult(
        question=question.question,
        gold=question.gold,
        generated_from=question.generated_from,
        recall=round(recall_at(k, result.ranking, gold), 4),
        rank=first_rank(result.ranking, gold),
        ranks=tuple(first_rank(result.ranking, [documents]) for documents in gold),
        milliseconds=round(result.milliseconds, 2),
        retrieved=tuple(best_documents(result, gold, k)),
    )


# --- metrics --------------------------------------------------------------------------------------


def hit_at(k: int, ranking: Ranking, gold: GoldDocuments) -> float:
    """Return 1 if a gold document is among the first `k`, and 0 otherwise.

    Also called success@k, and top-k accuracy by Karpukhin et al., Dense Passage Retrieval, EMNLP 2020.
    """
    return float(recall_at(k, ranking, gold) > 0)


def recall_at(k: int, ranking: Ranking, gold: GoldDocuments) -> float:
    """Return the share of the sets in `gold` that have a document among the first `k`.

    Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, sections 8.3 and 8.4.
    """
    top = set(ranking[:k])
    return fmean(not top.isdisjoint(documents) for documents in gold)


def first_rank(ranking: Ranking, gold: GoldDocuments) -> int | None:
    """Return the rank of the first gold document, from 1; None if `ranking` has no gold document."""
    relevant = frozenset[str]().union(*gold)
    return next((rank for rank, document in enumerate(ranking, 1) if document in relevant), None)


def reciprocal_rank(ranking: Ranking, gold: GoldDocuments) -> float:
    """Return 1 / `first_rank`, or 0 if `ranking` contains no gold document.

    Voorhees, The TREC-8 Question Answering Track Report, 1999.
    """
    rank = first_rank(ranking, gold)
    return 1 / rank if rank else 0.0


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95% confidence interval (Wilson score) of `share`, the mean of `count` values from 0 to 1.

    Wilson, Probable Inference, the Law of Succession, and Statistical Inference, 1927. The interval is
    meant for values of 0 or 1, and slightly too wide for values in between, such as recall.
    """
    z2 = NORMAL_95**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    spread = math.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    half = NORMAL_95 * spread / (1 + z2 / count)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile of `values` for `share`, a number from 0 to 1.

    At least this share of the values are less than or equal to the result.

    Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996, type 1.
    """
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def confusion_matrix(
    pairs: Iterable[tuple[QuestionType, QuestionType]],
) -> dict[QuestionType, dict[QuestionType, int]]:
    """Count the `pairs` of each label (outer key) and predicted type (inner key).

    Manning, Raghavan and Schütze, 2008, section 13.6.
    """
    types: tuple[QuestionType, ...] = ("api_call", "general", "unknown")
    counts = Counter(pairs)
    return {label: {type_: counts[label, type_] for type_ in types} for label in types}
