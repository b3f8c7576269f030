"""Operations on rankings: fusion, interleaving and diversification."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import zip_longest
from typing import TypeVar

from ingestion.store.catalogue import DocumentKey
from ingestion.store.manifest import RouteCalibration
from schemas.document import RetrievedChunk

UNCALIBRATED_DENSE_WEIGHT = 0.3
"""Weight of the dense route if its reliability has not been measured."""

MIN_DENSE_WEIGHT = 0.1
"""Weight below which the dense route is not used, so that questions need not be embedded."""

MAX_DENSE_WEIGHT = 0.45
"""Weight of a dense route that is at least as good as full text; mediocre embeddings lose more with 0.5."""

RANK_CONSTANT = 5
"""Constant of reciprocal rank fusion.

With the usual 60, a chunk that is far down in both rankings is better than the best chunk of one ranking.
"""

DIVERSITY_WINDOW = 5
"""Size of the windows (results 1 to 5, 6 to 10, ...) in which the share of a document is limited."""

MAX_PER_DOCUMENT = 3
"""Maximum number of chunks of one document in a window, so that one page does not displace the others."""

Key = TypeVar("Key", bound=Hashable)
"""Type of the identifier of a chunk in the rankings to fuse."""

Item = TypeVar("Item")


# --- fusion ---------------------------------------------------------------------------------------


def dense_weight(calibration: RouteCalibration | None) -> float:
    """Return the weight of the dense route, 0 or from 0.1 to 0.45.

    The weight is 0.45 times `dense / full_text`, the ratio of the mean reciprocal ranks (MRR) of the
    routes, which counts as 1 if it is larger. A weight below 0.1 becomes 0. docs/explanation/retrieval.md
    has the measurements.
    """
    if calibration is None:
        return UNCALIBRATED_DENSE_WEIGHT
    if not calibration.full_text:
        return MAX_DENSE_WEIGHT if calibration.dense else 0.0
    weight = MAX_DENSE_WEIGHT * min(1.0, calibration.dense / calibration.full_text)
    return weight if weight >= MIN_DENSE_WEIGHT else 0.0


def fuse(full_text: Iterable[Key], dense: Iterable[Key], weight: float) -> dict[Key, float]:
    """Return the chunks of both rankings with their scores, 0 to 1, best first.

    The rankings are sorted, best first. `weight` is the weight of the dense route. The result is a weighted
    reciprocal rank fusion, after Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion Outperforms
    Condorcet and Individual Rank Learning Methods", SIGIR 2009.
    """
    scores = dict[Key, float]()
    for ranking, share in ((full_text, 1 - weight), (dense, weight)):
        for rank, key in enumerate(ranking):
            score = share * RANK_CONSTANT / (RANK_CONSTANT + rank)
            scores[key] = scores.get(key, 0.0) + score
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


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


def repeated_chunks(ranking: Sequence[RetrievedChunk]) -> set[str]:
    """Return the ids of the chunks with the same content as a better chunk in `ranking`, best first."""
    best = dict[tuple[str, str, str], str]()
    for retrieved in ranking:
        best.setdefault(content_of(retrieved), retrieved.chunk.id)
    return {retrieved.chunk.id for retrieved in ranking} - set(best.values())


def content_of(retrieved: RetrievedChunk) -> tuple[str, str, str]:
    """Return the title, section and body of a chunk, which pages about several editions may share."""
    return retrieved.chunk.title, retrieved.chunk.section, retrieved.chunk.body


def retrieved_document(retrieved: RetrievedChunk) -> DocumentKey:
    """Return the key of the document of a retrieved chunk, for `diversify`."""
    return retrieved.chunk.source, retrieved.chunk.document_id
