"""What a route found -> its measures."""

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
    interval,
    percentile,
    recall_at,
    reciprocal_rank,
)
from app.analytics.evaluation.result import MOST_K, FoundDocument, QuestionResult, RouteResult
from runnables.retrieval.retriever import RetrievalMode
from schemas.document import RetrievedChunk


class ProbeResult(NamedTuple):
    """What was found for a question, best first, and how long it took."""

    chunks: list[RetrievedChunk]
    milliseconds: float

    @property
    def documents(self) -> list[str]:
        """The document of each chunk."""
        return [document_key(retrieved.chunk) for retrieved in self.chunks]

    @property
    def ranking(self) -> list[str]:
        """The first 20 documents."""
        return distinct(self.documents)[:MOST_K]


def route_result(
    mode: RetrievalMode,
    questions: Sequence[EvaluationQuestion],
    golds: Sequence[GoldDocuments],
    found: Sequence[ProbeResult],
    k: int,
) -> RouteResult:
    """The measures of the route `mode`, from what it found for each of `questions`."""
    judged = list(zip([each.ranking for each in found], golds, strict=True))
    by_chunk = list(zip([each.documents for each in found], golds, strict=True))
    times = [each.milliseconds for each in found]
    return RouteResult(
        mode=mode,
        hit=_curve(hit_at, judged),
        recall=_curve(recall_at, judged),
        interval=_interval([recall_at(k, *each) for each in judged]),
        mrr=round(fmean(reciprocal_rank(*each) for each in judged), 4),
        chunk_recall=_curve(recall_at, by_chunk),
        p50_ms=round(percentile(times, 0.5), 2),
        p95_ms=round(percentile(times, 0.95), 2),
        questions=tuple(
            _question_result(*each, k) for each in zip(questions, golds, found, strict=True)
        ),
    )


def scores(found: ProbeResult, gold: GoldDocuments, k: int) -> dict[str, float]:
    """The measures of one question, by name."""
    ranking = found.ranking
    return {
        f"hit@{k}": hit_at(k, ranking, gold),
        f"recall@{k}": recall_at(k, ranking, gold),
        "reciprocal rank": reciprocal_rank(ranking, gold),
    }


def best_chunks(found: ProbeResult, gold: GoldDocuments, k: int) -> list[FoundDocument]:
    """The first k documents, each by its best chunk."""
    wanted = frozenset[str]().union(*gold)
    first: dict[str, RetrievedChunk] = {}
    for name, retrieved in zip(found.documents, found.chunks, strict=True):
        first.setdefault(name, retrieved)
    return [
        FoundDocument(
            document=name,
            title=retrieved.chunk.title,
            section=retrieved.chunk.section,
            score=round(retrieved.score, 4),
            right=name in wanted,
        )
        for name, retrieved in list(first.items())[:k]
    ]


def _curve(
    measure: Callable[[int, RankedDocuments, GoldDocuments], float],
    judged: Iterable[tuple[list[str], GoldDocuments]],
) -> tuple[float, ...]:
    """The mean of `measure` for k = 1 to 20."""
    pairs = list(judged)
    ks = range(1, MOST_K + 1)
    return tuple(round(fmean(measure(k, *each) for each in pairs), 4) for k in ks)


def _interval(recalls: Sequence[float]) -> tuple[float, float]:
    low, high = interval(fmean(recalls), len(recalls))
    return round(low, 4), round(high, 4)


def _question_result(
    question: EvaluationQuestion, gold: GoldDocuments, found: ProbeResult, k: int
) -> QuestionResult:
    return QuestionResult(
        question=question.question,
        gold=question.gold,
        made=question.made,
        recall=round(recall_at(k, found.ranking, gold), 4),
        rank=first_rank(found.ranking, gold),
        ranks=tuple(first_rank(found.ranking, [each]) for each in gold),
        milliseconds=round(found.milliseconds, 2),
        found=tuple(best_chunks(found, gold, k)),
    )
