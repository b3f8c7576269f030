"""Operations on rankings: fuse two, interleave several, diversify one, and put definitions first."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from ingestion.store.manifest import RouteCalibration
from ingestion.text.markdown_blocks import parse_table, plain_text
from schemas.document import Chunk, RetrievedChunk

UNCALIBRATED_DENSE_WEIGHT = 0.4
"""Weight of the dense route as long as its reliability has not been measured."""

MAX_DENSE_WEIGHT = 0.5
"""Upper bound of the dense weight: the best full-text hit always stays ahead of dense-only hits."""

FUSION_DEPTH = 200
"""Chunks of each ranking that are fused. Deep enough for chunks that both routes rank."""

BASELINE_RANK = 50
"""Rank whose cosine similarity is scaled to 0. The pages of one platform are all similar to each other."""

DIVERSITY_WINDOW = 5
"""Number of consecutive results in which the share of one document is limited."""

MAX_PER_DOCUMENT = 3
"""Chunks of one document in a window. One page that repeats itself would crowd out the others."""

ScoredIds = dict[str, float]
"""Score by chunk id, best first."""

_LAST_PART = re.compile(r"[^.\[\]]+(?=(?:\[\])?$)")


# --- fusion ---------------------------------------------------------------------------------------


def dense_weight(calibration: RouteCalibration | None) -> float:
    """Return the weight of the dense route, 0 to 0.5.

    It is the quality of the dense route (mean reciprocal rank) relative to that of full text, minus one
    half: a route at most half as good only displaces better hits and weighs nothing; a route as good
    weighs as much. docs/explanation/retrieval.md has the measurements.
    """
    if calibration is None:
        return UNCALIBRATED_DENSE_WEIGHT
    if not calibration.full_text:
        return MAX_DENSE_WEIGHT if calibration.dense else 0.0
    return min(MAX_DENSE_WEIGHT, max(0.0, calibration.dense / calibration.full_text - 0.5))


def fuse(full_text: ScoredIds, dense: ScoredIds, weight: float) -> ScoredIds:
    """Return the chunks of both rankings, best first, with scores from 0 to 1.

    `weight` is the weight of the dense route. This is a convex combination of scores, after Bruch, Gai
    and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (2023): BM25 is scaled by its
    best score, cosine similarity from rank 50 to its best. Reciprocal rank fusion ignores how far the
    first hit leads, so a weak route drags down a strong one; docs/explanation/retrieval.md compares both.
    """
    lexical = _scale(full_text, 0.0)
    semantic = _scale(dense, list(dense.values())[:BASELINE_RANK][-1] if dense else 0.0)
    fused = {
        chunk_id: (1 - weight) * lexical.get(chunk_id, 0.0) + weight * semantic.get(chunk_id, 0.0)
        for chunk_id in {**full_text, **dense}
    }
    return dict(sorted(fused.items(), key=lambda item: -item[1]))


def _scale(ranking: ScoredIds, baseline: float) -> ScoredIds:
    """Scale scores to 0 at `baseline` or below and 1 at the best."""
    best = max(ranking.values(), default=0.0)
    if best <= baseline:
        return dict.fromkeys(ranking, 0.0)
    return {
        chunk_id: max(0.0, (score - baseline) / (best - baseline))
        for chunk_id, score in ranking.items()
    }


# --- interleaving and diversity -------------------------------------------------------------------


def interleave(rankings: Sequence[Sequence[RetrievedChunk]]) -> list[RetrievedChunk]:
    """Merge rankings round robin: the first of each, then the second of each; each chunk once."""
    merged: dict[str, RetrievedChunk] = {}
    for row in zip_longest(*rankings):
        for retrieved in row:
            if retrieved is not None:
                merged.setdefault(retrieved.chunk.id, retrieved)
    return list(merged.values())


def diversify(ranking: Iterable[RetrievedChunk], k: int) -> list[RetrievedChunk]:
    """Return the first `k` chunks with at most 3 of one document in each window of five.

    Chunks of other documents move up; if there are none left, the limit is lifted.
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


def is_dominated(ranking: Sequence[RetrievedChunk]) -> bool:
    """Whether one document exceeds its share in some window of five."""
    windows = (
        ranking[start : start + DIVERSITY_WINDOW]
        for start in range(0, len(ranking), DIVERSITY_WINDOW)
    )
    return any(
        max(Counter(map(_document_key, window)).values()) > MAX_PER_DOCUMENT for window in windows
    )


def _document_key(retrieved: RetrievedChunk) -> tuple[str, str]:
    return retrieved.chunk.source, retrieved.chunk.document_id


# --- definitions ----------------------------------------------------------------------------------


def rank_definitions_first(
    ranking: list[RetrievedChunk], identifiers: list[str]
) -> list[RetrievedChunk]:
    """Return `ranking` sorted by how many of `identifiers` a chunk defines; ties keep their order."""
    if not identifiers:
        return ranking
    return sorted(ranking, key=lambda r: -sum(is_definition(r.chunk, name) for name in identifiers))


def is_definition(chunk: Chunk, identifier: str) -> bool:
    """Whether `chunk` defines `identifier`, given in lower case.

    It does if `identifier` is the URL or name of its API, or the first cell of a row in one of its tables.
    """
    if identifier in (chunk.api_url.lower(), chunk.api_name.lower()):
        return True
    if identifier not in chunk.body.lower():
        return False
    rows = parse_table(chunk.body)
    return any(identifier in _field_names(row[0]) for row in rows[1:] if row)


def _field_names(cell: str) -> tuple[str, str]:
    """The field that the first cell of a row names: with its parents, and without them."""
    whole = plain_text(cell).lower()
    last = _LAST_PART.search(whole)
    return whole, last[0] if last else whole
