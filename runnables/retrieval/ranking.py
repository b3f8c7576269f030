"""Operations on rankings: fusion, interleaving and diversification."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from ingestion.store.manifest import RouteCalibration
from schemas.document import RetrievedChunk

UNCALIBRATED_DENSE_WEIGHT = 0.4
"""Weight of the dense route if its reliability has not been measured."""

MAX_DENSE_WEIGHT = 0.5
"""Upper bound of the dense weight, which keeps the best full-text hit ahead of dense-only hits."""

FUSION_DEPTH = 200
"""Number of chunks of each ranking to fuse; large enough that both rankings share chunks."""

BASELINE_RANK = 50
"""Rank whose cosine similarity is scaled to 0, because all pages of a platform have some similarity."""

DIVERSITY_WINDOW = 5
"""Number of consecutive results in which the share of one document is limited."""

MAX_PER_DOCUMENT = 3
"""Maximum number of chunks of one document in a window, so that one page does not displace the others."""

ScoredIds = dict[str, float]
"""Score by chunk id, best first."""


# --- fusion ---------------------------------------------------------------------------------------


def dense_weight(calibration: RouteCalibration | None) -> float:
    """Return the weight of the dense route, 0 to 0.5.

    It is the mean reciprocal rank of the dense route divided by that of full text, minus one half. A dense
    route that is at most half as good has weight 0, because it would only displace better hits. A route
    that is as good has the same weight as full text. docs/explanation/retrieval.md has the measurements.
    """
    if calibration is None:
        return UNCALIBRATED_DENSE_WEIGHT
    if not calibration.full_text:
        return MAX_DENSE_WEIGHT if calibration.dense else 0.0
    return min(MAX_DENSE_WEIGHT, max(0.0, calibration.dense / calibration.full_text - 0.5))


def fuse(full_text: ScoredIds, dense: ScoredIds, weight: float) -> ScoredIds:
    """Return the chunks of both rankings, best first, with scores from 0 to 1.

    `weight` is the weight of the dense route. The scores are a convex combination, after Bruch, Gai and
    Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (2023). BM25 is scaled to its best
    score, and cosine similarity to the range from rank 50 to the best. Reciprocal rank fusion ignores the
    distance between hits, so that a weak route worsens a strong one; docs/explanation/retrieval.md
    compares both.
    """
    lexical = _scale(full_text, 0.0)
    semantic = _scale(dense, list(dense.values())[:BASELINE_RANK][-1] if dense else 0.0)
    fused = {
        chunk_id: (1 - weight) * lexical.get(chunk_id, 0.0) + weight * semantic.get(chunk_id, 0.0)
        for chunk_id in {**full_text, **dense}
    }
    return dict(sorted(fused.items(), key=lambda item: -item[1]))


def _scale(ranking: ScoredIds, baseline: float) -> ScoredIds:
    """Scale scores so that the best is 1 and `baseline` or less is 0."""
    best = max(ranking.values(), default=0.0)
    if best <= baseline:
        return dict.fromkeys(ranking, 0.0)
    return {
        chunk_id: max(0.0, (score - baseline) / (best - baseline))
        for chunk_id, score in ranking.items()
    }


# --- interleaving and diversity -------------------------------------------------------------------


def interleave(rankings: Sequence[Sequence[RetrievedChunk]]) -> list[RetrievedChunk]:
    """Merge rankings round robin, without duplicates: the first chunk of each, then the second of each."""
    merged: dict[str, RetrievedChunk] = {}
    for row in zip_longest(*rankings):
        for retrieved in row:
            if retrieved is not None:
                merged.setdefault(retrieved.chunk.id, retrieved)
    return list(merged.values())


def diversify(ranking: Iterable[RetrievedChunk], k: int) -> list[RetrievedChunk]:
    """Return `k` chunks with at most `MAX_PER_DOCUMENT` chunks of one document in each window.

    Chunks of other documents move up. If none are left, the limit does not apply.
    """
    selected: list[RetrievedChunk] = []
    remaining = list(ranking)
    while remaining and len(selected) < k:
        window = selected[len(selected) - len(selected) % DIVERSITY_WINDOW :]
        counts = Counter(map(_document_key, window))
        best = next(
            (r for r in remaining if counts[_document_key(r)] < MAX_PER_DOCUMENT), remaining[0]
        )
        remaining.remove(best)
        selected.append(best)
    return selected


def _document_key(retrieved: RetrievedChunk) -> tuple[str, str]:
    return retrieved.chunk.source, retrieved.chunk.document_id
