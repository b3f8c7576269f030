"""Two rankings of the same chunks as one."""

from ingestion.store.schema import RouteCalibration

UNMEASURED = 0.4
"""The dense route's weight where nobody has measured yet how far its vectors can be trusted."""

MOST_DENSE = 0.5
"""The most that it weighs: what full text is sure of stays in front of what only vectors say."""

POOL = 200
"""Chunks of each ranking that are fused: what both rank has to be seen in both."""

BASELINE = 50
"""The rank whose cosine counts as nothing: vectors of one platform's pages are all alike."""

ScoredIds = dict[str, float]
"""Score by chunk id, best first."""


def dense_weight(measured: RouteCalibration | None) -> float:
    """What the dense route weighs, 0 to 0.5: by how much it exceeds the half of full text's rank.

    Vectors that find half as well as words, or less, only ever displace what words had found; those
    that find as well weigh as much. docs/retrieval.md has what led to it.
    """
    if measured is None:
        return UNMEASURED
    if not measured.full_text:
        return MOST_DENSE if measured.dense else 0.0
    return min(MOST_DENSE, max(0.0, measured.dense / measured.full_text - 0.5))


def fuse(full_text: ScoredIds, dense: ScoredIds, weight: float) -> ScoredIds:
    """The chunks of both, best first, each with a score from 0 to 1; `weight` is the dense route's.

    A convex combination of scores, after Bruch, Gai and Ingber, "An Analysis of Fusion Functions for
    Hybrid Retrieval" (2023): BM25 as a share of its best, cosine from its 50th up to its best. Ranks
    alone (reciprocal rank fusion) forget by how much the first hit leads, so that a weak route drags a
    strong one down; docs/retrieval.md has both measured.
    """
    lexical = _scaled(full_text, 0.0)
    semantic = _scaled(dense, list(dense.values())[:BASELINE][-1] if dense else 0.0)
    fused = {
        chunk: (1 - weight) * lexical.get(chunk, 0.0) + weight * semantic.get(chunk, 0.0)
        for chunk in {**full_text, **dense}
    }
    return dict(sorted(fused.items(), key=lambda item: -item[1]))


def _scaled(ranking: ScoredIds, nothing: float) -> ScoredIds:
    """Scores from 0, at `nothing` or below, to 1 at the best."""
    best = max(ranking.values(), default=0.0)
    if best <= nothing:
        return dict.fromkeys(ranking, 0.0)
    return {c: max(0.0, (score - nothing) / (best - nothing)) for c, score in ranking.items()}
