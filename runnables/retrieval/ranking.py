"""Operations on rankings: fusion, interleaving and diversification."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import zip_longest
from typing import TypeVar

from ingestion.store.catalogue import DocumentKey
from ingestion.store.manifest import RouteCalibration
from schemas.document import RetrievedChunk

UNCALIBRATED_DENSE_WEIGHT = 0.4
"""Weight of the dense route if its reliability has not been measured."""

MAX_DENSE_WEIGHT = 0.5
"""Upper bound of the dense weight, which keeps the best full-text hit ahead of dense-only hits."""

FUSION_DEPTH = 200
"""Number of chunks of each ranking to fuse; large enough that both rankings share chunks."""

BASELINE_RANK = 50
"""Rank whose cosine similarity is scaled to 0, as every page has some similarity to a question."""

DIVERSITY_WINDOW = 5
"""Size of the windows (results 1 to 5, 6 to 10, ...) in which the share of a document is limited."""

MAX_PER_DOCUMENT = 3
"""Maximum number of chunks of one document in a window, so that one page does not displace the others."""

Key = TypeVar("Key", bound=Hashable)
"""Type of the identifier of a chunk in the rankings to fuse."""

Item = TypeVar("Item")


# --- fusion ---------------------------------------------------------------------------------------


def dense_weight(calibration: RouteCalibration | None) -> float:
    """Return the weight of the dense route, 0 to 0.5.

    The weight is `dense / full_text - 0.5`, calculated from the mean reciprocal rank (MRR) of each route. A
    dense route that is at most half as good as full text has weight 0, because it would only displace
    better hits. A dense route that is at least as good as full text has the same weight.
    docs/explanation/retrieval.md has the measurements.
    """
    if calibration is None:
        return UNCALIBRATED_DENSE_WEIGHT
    if not calibration.full_text:
        return MAX_DENSE_WEIGHT if calibration.dense else 0.0
    return min(MAX_DENSE_WEIGHT, max(0.0, calibration.dense / calibration.full_text - 0.5))


def fuse(full_text: dict[Key, float], dense: dict[Key, float], weight: float) -> dict[Key, float]:
    """Return the chunks of both rankings, best first, with scores from 0 to 1.

    The rankings are scores by chunk, best first. `weight` is the weight of the dense route. The result is
    a convex combination, after Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid
    Retrieval" (2023). BM25 scores are divided by the best one. Cosine similarities are scaled so that the
    best one becomes 1, and that of rank 50 becomes 0. Reciprocal rank fusion ignores scores, so a weak
    route worsens a strong one; docs/explanation/retrieval.md compares both methods.
    """
    lexical = _scale(full_text, 0.0)
    semantic = _scale(dense, list(dense.values())[:BASELINE_RANK][-1] if dense else 0.0)
    fused = {
        key: (1 - weight) * lexical.get(key, 0.0) + weight * semantic.get(key, 0.0)
        for key in {**full_text, **dense}
    }
    return dict(sorted(fused.items(), key=lambda item: -item[1]))


def _scale(ranking: dict[Key, float], baseline: float) -> dict[Key, float]:
    """Scale scores so that the best is 1 and `baseline` or less is 0."""
    best = max(ranking.values(), default=0.0)
    if best <= baseline:
        return dict.fromkeys(ranking, 0.0)
    return {key: max(0.0, (score - baseline) / (best - baseline)) for key, score in ranking.items()}


# --- interleaving and diversity -------------------------------------------------------------------


def interleave(rankings: Sequence[Sequence[RetrievedChunk]]) -> list[RetrievedChunk]:
    """Merge rankings round robin, without duplicates: the first chunk of each, then the second of each."""
    merged: dict[str, RetrievedChunk] = {}
    for row in zip_longest(*rankings):
        for retrieved in row:
            if retrieved is not None:
                merged.setdefault(retrieved.chunk.id, retrieved)
    return list(merged.values())


def diversify(ranking: Iterable[Item], k: int, document: Callable[[Item], Hashable]) -> list[Item]:
    """Return the `k` best items, with at most `MAX_PER_DOCUMENT` of one document in each window.

    `document` returns the key of an item's document. Items over the limit come later, after items of other
    documents. If only items of one document are left, the limit does not apply.
    """
    selected: list[Item] = []
    remaining = [(item, document(item)) for item in ranking]
    counts = Counter[Hashable]()
    while remaining and len(selected) < k:
        if len(selected) % DIVERSITY_WINDOW == 0:
            counts.clear()
        allowed = (i for i, (_, key) in enumerate(remaining) if counts[key] < MAX_PER_DOCUMENT)
        item, key = remaining.pop(next(allowed, 0))
        selected.append(item)
        counts[key] += 1
    return selected


def repeated_bodies(ranking: Sequence[RetrievedChunk]) -> set[str]:
    """Return the ids of the chunks whose body is the same as that of a better chunk in `ranking`."""
    best = dict[str, str]()
    for retrieved in ranking:
        best.setdefault(retrieved.chunk.body, retrieved.chunk.id)
    return {retrieved.chunk.id for retrieved in ranking} - set(best.values())


def retrieved_document(retrieved: RetrievedChunk) -> DocumentKey:
    """Return the key of the document of a retrieved chunk, for `diversify`."""
    return retrieved.chunk.source, retrieved.chunk.document_id
