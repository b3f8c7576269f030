"""Operations on rankings: fusion, interleaving, diversification, and weighting of sections.

A search has one or two routes: full text, and dense vectors. Short sections can be extended with their
neighbours.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

from ingestion.store.catalogue import DocumentKey
from ingestion.store.collection import ChunkHit, Collection
from ingestion.store.manifest import RouteCalibration
from runnables.question.needs import Need, fits, needs_of
from schemas.document import Chunk, RetrievedChunk, SectionKind
from schemas.question import Filters

UNCALIBRATED_DENSE_WEIGHT = 0.3
"""Weight of the dense route if the routes have not been calibrated."""

MIN_DENSE_WEIGHT = 0.1
"""Minimum weight of the dense route. A smaller weight becomes 0, so that no question has to be embedded."""

MAX_DENSE_WEIGHT = 0.45
"""Weight of a dense route that is at least as good as full text; a weaker dense route gets less.

With 0.5, hybrid search with a mediocre embedding found fewer documents than full text.
"""

RANK_CONSTANT = 5
"""Constant of reciprocal rank fusion.

With the usual 60, a chunk that is far down in both rankings scores higher than a chunk that is first in one
and missing from the other.
"""

DIVERSITY_WINDOW = 5
"""Size of the windows (results 1 to 5, 6 to 10, ...) in which the share of a document is limited."""

MAX_PER_DOCUMENT = 3
"""Maximum number of chunks of one document in a window, so that one page does not displace the others."""

Key = TypeVar("Key", bound=Hashable)
"""Type that identifies a chunk in the rankings to fuse."""

Item = TypeVar("Item", ChunkHit, RetrievedChunk)


# --- fusion ---------------------------------------------------------------------------------------


def dense_weight(calibration: RouteCalibration | None) -> float:
    """Return the weight of the dense route: 0, or from `MIN_DENSE_WEIGHT` to `MAX_DENSE_WEIGHT`.

    `calibration` contains the mean reciprocal rank of each route. The weight grows with the ratio of the
    dense route's value to that of full text. Without a calibration, the weight is
    `UNCALIBRATED_DENSE_WEIGHT`. docs/explanation/retrieval.md has the measurements.
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


def interleave(rankings: Sequence[Sequence[object]]) -> list[RetrievedChunk]:
    """Merge rankings round robin, without duplicates: the first chunk of each, then the second of each.

    Objects that are not chunks, such as catalogue entries, are dropped.
    """
    return without_duplicates(chain.from_iterable(zip_longest(*rankings)))


def without_duplicates(results: Iterable[object]) -> list[RetrievedChunk]:
    """Return the chunks among `results`, in order of their first occurrence."""
    chunks: dict[str, RetrievedChunk] = {}
    for result in results:
        if isinstance(result, RetrievedChunk):
            chunks.setdefault(result.chunk.id, result)
    return list(chunks.values())


def diversify(ranking: Iterable[Item], k: int) -> list[Item]:
    """Return the `k` best items, with at most `MAX_PER_DOCUMENT` of one document in each window.

    Items over the limit are moved to a later window. If only such items are left, the limit is ignored.
    """
    selected: list[Item] = []
    remaining = [(item, item.document_key) for item in ranking]
    counts = Counter[DocumentKey]()
    while remaining and len(selected) < k:
        if len(selected) % DIVERSITY_WINDOW == 0:
            counts.clear()
        allowed = (i for i, (_, key) in enumerate(remaining) if counts[key] < MAX_PER_DOCUMENT)
        item, key = remaining.pop(next(allowed, 0))
        selected.append(item)
        counts[key] += 1
    return selected


def repeated_chunks(ranking: Sequence[RetrievedChunk]) -> set[str]:
    """Return the ids of the chunks with the same content as an earlier chunk in `ranking`."""
    best = dict[tuple[str, str, str], str]()
    for retrieved in ranking:
        best.setdefault(content_of(retrieved), retrieved.chunk.id)
    return {retrieved.chunk.id for retrieved in ranking} - set(best.values())


def content_of(retrieved: RetrievedChunk) -> tuple[str, str, str]:
    """Return the title, section and body of a chunk, which copies of a page have in common.

    Pages about several editions of a product, for example, may be copies of each other.
    """
    return retrieved.chunk.title, retrieved.chunk.section, retrieved.chunk.body


# --- sections of an API ---------------------------------------------------------------------------

FITTING_FACTOR = 1.2
"""Factor for the score of a section whose kind fits the question, such as error codes for an error."""

SHARED_FACTOR = 0.7
"""Factor for the score of a section that is similar in most APIs, unless its kind fits the question."""

PARAMETERS_INDEX = 2
"""Index, from 0, at which the request parameters of the first chunk's API are inserted."""

_SHARED_SECTIONS: frozenset[SectionKind] = frozenset(
    {"request_headers", "public_parameters", "permission_package"}
)


def weigh_sections(hits: Mapping[ChunkHit, float], question: str) -> dict[ChunkHit, float]:
    """Return `hits` with their scores adjusted to what `question` asks for, best first.

    Every section of an API document contains the document's title. A question that only names the API
    therefore matches all sections, and full text ranks the shortest one first. Other words of the question,
    such as "error", "parameter" or "limit", show which kind of section it asks for.
    """
    needs = needs_of(question)
    weighed = {hit: score * _factor(hit.kind, needs) for hit, score in hits.items()}
    return dict(sorted(weighed.items(), key=lambda item: -item[1]))


def lacks_request_parameters(ranking: Sequence[RetrievedChunk]) -> bool:
    """Return whether the first three chunks lack the request parameters of the first chunk's API.

    False if `ranking` is empty, or if its first chunk does not belong to an API.
    """
    if not ranking or ranking[0].chunk.kind == "prose":
        return False
    first = ranking[: PARAMETERS_INDEX + 1]
    return not any(_is_parameters_of(ranking[0].chunk, retrieved.chunk) for retrieved in first)


def add_request_parameters(
    ranking: Sequence[RetrievedChunk], collection: Collection, filters: Filters
) -> list[RetrievedChunk]:
    """Return `ranking` with the request parameters of the first chunk's API in third place.

    A caller of the API needs its parameters, even if the words of the question are in another section.
    `lacks_request_parameters(ranking)` must be true. If the API has no request parameters, or `filters`
    exclude them, `ranking` is unchanged.

    This function blocks: call it in a worker thread.
    """
    best = ranking[0].chunk
    parameters = [r for r in ranking if _is_parameters_of(best, r.chunk)] or [
        RetrievedChunk(chunk=chunk, score=0.0)
        for chunk in collection.chunks_of_document(best.document_id, best.source)
        if _is_parameters_of(best, chunk) and filters.allow(chunk)
    ]
    if not parameters:
        return list(ranking)
    first = parameters[0]
    others = [r for r in ranking if r.chunk.id != first.chunk.id]
    return [*others[:PARAMETERS_INDEX], first, *others[PARAMETERS_INDEX:]]


def _factor(kind: SectionKind, needs: frozenset[Need]) -> float:
    if fits(kind, needs):
        return FITTING_FACTOR
    return SHARED_FACTOR if kind in _SHARED_SECTIONS else 1.0


def _is_parameters_of(best: Chunk, chunk: Chunk) -> bool:
    return chunk.document_key == best.document_key and chunk.kind == "request_parameters"


# --- neighbouring sections ------------------------------------------------------------------------
# These functions are for callers that show only few results. A section is often too short to be read alone:
# the section before it introduces its table, or the section after it states an exception. Search still
# compares single sections, which is more precise. This is known as parent-document or small-to-big
# retrieval.

MAX_BYTES = 2_000
"""Maximum total size of the bodies of a section and its neighbours, in bytes of UTF-8 (about 500 tokens).

Sections of at least this size are left unchanged.
"""

MAX_NEIGHBOURS_PER_SIDE = 2
"""Maximum number of neighbours on each side."""

Sections = dict[int, Chunk]
"""The sections of a document by position."""


def add_neighbours(
    collection: Collection, retrieved: Sequence[RetrievedChunk], filters: Filters
) -> list[RetrievedChunk]:
    """Return `retrieved`, with each short section extended by the sections before and after it.

    The bodies of the joined sections have at most `MAX_BYTES` in total. Sections that `filters` exclude and
    sections that are already in the results are not added.

    This function blocks: pass it to `Collection.run`.
    """
    short = [r.chunk for r in retrieved if _size(r.chunk) < MAX_BYTES]
    sections: defaultdict[DocumentKey, Sections] = defaultdict(dict)
    for chunk in collection.neighbours(short, MAX_NEIGHBOURS_PER_SIDE):
        if filters.allow(chunk):
            sections[chunk.document_key][chunk.position] = chunk
    shown = {r.chunk.id for r in retrieved}
    extended = []
    for each in retrieved:
        passage = _extend(each.chunk, sections[each.chunk.document_key], shown)
        shown |= {section.id for section in passage}
        extended.append(each if len(passage) == 1 else _merge(each, passage))
    return extended


def _extend(chunk: Chunk, sections: Sections, shown: set[str]) -> list[Chunk]:
    """Return `chunk` and the neighbours that fit and are not in `shown`, in document order."""
    passage, bytes_left = [chunk], MAX_BYTES - _size(chunk)
    open_sides = [1, -1]
    while open_sides:
        side = open_sides.pop(0)
        edge = passage[-1 if side > 0 else 0]
        position = edge.position + side
        # `sections` also has the neighbours of other results.
        is_near = abs(position - chunk.position) <= MAX_NEIGHBOURS_PER_SIDE
        section = sections.get(position) if is_near else None
        if section is not None and section.id not in shown and _size(section) <= bytes_left:
            passage = [*passage, section] if side > 0 else [section, *passage]
            bytes_left -= _size(section)
            open_sides.append(side)
    return passage


def _merge(retrieved: RetrievedChunk, passage: Sequence[Chunk]) -> RetrievedChunk:
    """Return `retrieved` with the bodies of `passage`, each preceded by its headings."""
    chunk = retrieved.chunk
    body = "\n\n".join(f"## {each.section or each.title}\n\n{each.body}" for each in passage)
    text = chunk.text.removesuffix(chunk.body) + body
    extended = chunk.model_copy(update={"body": body, "text": text})
    return RetrievedChunk(chunk=extended, score=retrieved.score)


def _size(chunk: Chunk) -> int:
    return len(chunk.body.encode())
