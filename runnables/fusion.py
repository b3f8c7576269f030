"""Two rankings of the same chunks as one."""

DENSE_WEIGHT = 0.4
"""Less than half: what full text is sure of stays in front, however wrong the vectors are."""

POOL = 200
"""Chunks of each ranking that are fused: what both rank has to be seen in both."""

BASELINE = 50
"""The rank whose cosine counts as nothing: vectors of one platform's pages are all alike."""

Ranking = dict[str, float]
"""Score by chunk id, best first."""


def fuse(full_text: Ranking, dense: Ranking, weight: float = DENSE_WEIGHT) -> Ranking:
    """The chunks of both, best first, each with a score from 0 to 1.

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


def _scaled(ranking: Ranking, nothing: float) -> Ranking:
    """Scores from 0, at `nothing` or below, to 1 at the best."""
    best = max(ranking.values(), default=0.0)
    if best <= nothing:
        return dict.fromkeys(ranking, 0.0)
    return {c: max(0.0, (score - nothing) / (best - nothing)) for c, score in ranking.items()}
