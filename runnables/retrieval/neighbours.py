"""Extends short retrieved sections with neighbouring sections, for callers that show only few results.

A section is often too short to be read alone: the section before it introduces its table, or the section
after it states an exception. Search still compares single sections, which is more precise. This is
known as parent-document or small-to-big retrieval.
"""

from collections import defaultdict
from collections.abc import Sequence

from ingestion.store.catalogue import DocumentKey
from ingestion.store.collection import Collection
from schemas.document import Chunk, RetrievedChunk
from schemas.question import Filters

MAX_BYTES = 2_000
"""Maximum total size of the bodies of a section and its neighbours, in bytes of UTF-8 (about 500 tokens).

Sections of at least this size are left unchanged.
"""

MAX_DISTANCE = 2
"""Maximum number of neighbours on each side."""

Sections = dict[int, Chunk]
"""The sections of a document by position."""


def add_neighbours(
    collection: Collection, retrieved: Sequence[RetrievedChunk], filters: Filters
) -> list[RetrievedChunk]:
    """Return `retrieved` with the bodies and texts of short sections extended.

    Blocking; pass it to `Collection.run`.

    The sections after and before a short section are added alternately, beginning with the one after, as
    long as the bodies have at most `MAX_BYTES` together. On each side, adding ends after `MAX_DISTANCE`
    sections, or at the first section that does not fit, does not match `filters` or is already in the
    results.
    """
    short = [r.chunk for r in retrieved if _size(r.chunk) < MAX_BYTES]
    sections: defaultdict[DocumentKey, Sections] = defaultdict(dict)
    for chunk in collection.neighbours(short, MAX_DISTANCE):
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
        is_near = abs(position - chunk.position) <= MAX_DISTANCE
        section = sections.get(position) if is_near else None
        if section is not None and section.id not in shown and _size(section) <= bytes_left:
            passage = [*passage, section] if side > 0 else [section, *passage]
            bytes_left -= _size(section)
            open_sides.append(side)
    return passage


def _merge(retrieved: RetrievedChunk, passage: Sequence[Chunk]) -> RetrievedChunk:
    """Return `retrieved` with the bodies of `passage`, each below its headings."""
    chunk = retrieved.chunk
    body = "\n\n".join(f"## {each.section or each.title}\n\n{each.body}" for each in passage)
    text = chunk.text.removesuffix(chunk.body) + body
    extended = chunk.model_copy(update={"body": body, "text": text})
    return RetrievedChunk(chunk=extended, score=retrieved.score)


def _size(chunk: Chunk) -> int:
    return len(chunk.body.encode())
