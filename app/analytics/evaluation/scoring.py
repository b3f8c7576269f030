"""Computes the metrics of a route from its retrieval results."""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from app.analytics.evaluation.dataset import EvaluationQuestion
from app.analytics.evaluation.documents import document_key
from app.analytics.evaluation.measures import (
    GoldDocuments,
    RankedDocuments,
    distinct,
    first_rank,
    hit_at,
    percentile,
    recall_at,
    reciprocal_rank,
    wilson_interval,
)
from app.analytics.evaluation.result import MAX_K, QuestionResult, RankedDocument, RouteResult
from runnables.retrieval.retriever import RetrievalMode
from schemas.document import RetrievedChunk


class ProbeResult(NamedTuple):
    """The chunks retrieved for a question, best first, and the latency."""

    chunks: list[RetrievedChunk]
    milliseconds: float

    @property
    def documents(self) -> list[str]:
        """The document key of each chunk."""
        return [document_key(retrieved.chunk) for retrieved in self.chunks]

    @property
    def ranking(self) -> list[str]:
        """The first 20 distinct documents."""
        return distinct(self.documents)[:MAX_K]


def route_result(
    mode: RetrievalMode,
    questions: Sequence[EvaluationQuestion],
    golds: Sequence[GoldDocuments],
    results: Sequence[ProbeResult],
    k: int,
) -> RouteResult:
    """Compute the metrics of the route `mode`. `golds` and `results` have the order of `questions`."""
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


def best_chunks(result: ProbeResult, gold: GoldDocuments, k: int) -> list[RankedDocument]:
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
    measure: Callable[[int, RankedDocuments, GoldDocuments], float],
    rankings: Iterable[tuple[list[str], GoldDocuments]],
) -> tuple[float, ...]:
    """Return the mean of `measure` over all rankings, for k = 1 to 20."""
    pairs = list(rankings)
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
        retrieved=tuple(best_chunks(result, gold, k)),
    )
