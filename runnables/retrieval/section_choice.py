"""Choice of the sections of an API's document that answer a question."""

from collections.abc import Mapping, Sequence

from ingestion.store.collection import ChunkHit, Collection
from runnables.question.question_needs import Need, fits, needs_of
from schemas.document import Chunk, RetrievedChunk, SectionKind
from schemas.question import Filters

FITTING_FACTOR = 1.2
"""Factor for the score of a section of the kind that usually contains what the question asks for."""

SHARED_FACTOR = 0.7
"""Factor for the score of a section that most APIs share, unless the question asks for it."""

PARAMETERS_INDEX = 2
"""Maximum index, from 0, at which the request parameters of the best API are placed."""

_SHARED_SECTIONS: frozenset[SectionKind] = frozenset(
    {"request_headers", "public_parameters", "permission_package"}
)


def weigh_sections(hits: Mapping[ChunkHit, float], question: str) -> dict[ChunkHit, float]:
    """Return `hits`, best first, with scores that depend on what `question` asks for.

    All sections of an API's document contain its title, so full text alone ranks them by their
    lengths. Words for errors, parameters, limits and so on say which section is meant.
    """
    needs = needs_of(question)
    weighed = {hit: score * _factor(hit.kind, needs) for hit, score in hits.items()}
    return dict(sorted(weighed.items(), key=lambda item: -item[1]))


def lacks_request_parameters(ranking: Sequence[RetrievedChunk]) -> bool:
    """Return whether the first chunk is of an API whose request parameters are not in the first three."""
    if not ranking or ranking[0].chunk.kind == "prose":
        return False
    first = ranking[: PARAMETERS_INDEX + 1]
    return not any(_is_parameters_of(ranking[0].chunk, retrieved.chunk) for retrieved in first)


def add_request_parameters(
    ranking: Sequence[RetrievedChunk], collection: Collection, filters: Filters
) -> list[RetrievedChunk]:
    """Return `ranking` with the request parameters of its first API in third place.

    The ranking is unchanged if the API has no request parameters. `lacks_request_parameters` must be true
    for `ranking`. A caller of the API needs its parameters, even if the words of the question are in
    another section. Blocks the event loop.
    """
    best = ranking[0].chunk
    ranked = [r for r in ranking if _is_parameters_of(best, r.chunk)]
    parameters = (
        ranked[:1]
        or [
            RetrievedChunk(chunk=chunk, score=0.0)
            for chunk in collection.chunks_of_document(best.document_id, best.source)
            if _is_parameters_of(best, chunk) and filters.allow(chunk)
        ][:1]
    )
    ids = {retrieved.chunk.id for retrieved in parameters}
    others = [retrieved for retrieved in ranking if retrieved.chunk.id not in ids]
    return [*others[:PARAMETERS_INDEX], *parameters, *others[PARAMETERS_INDEX:]]


def _factor(kind: SectionKind, needs: frozenset[Need]) -> float:
    if fits(kind, needs):
        return FITTING_FACTOR
    return SHARED_FACTOR if kind in _SHARED_SECTIONS else 1.0


def _is_parameters_of(best: Chunk, chunk: Chunk) -> bool:
    same_document = (chunk.source, chunk.document_id) == (best.source, best.document_id)
    return same_document and chunk.kind == "request_parameters"
