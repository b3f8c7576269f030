"""Finds the text that explains code which a question contains.

For example, a developer pastes a line of a log. A page shows this line in a section "Example", and explains
it in the following sections, such as "Cause". The answer is in these sections.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingestion.store.collection import Collection
from runnables.answer.passages import MAX_CHARS, RankedPassage
from runnables.answer.segments import Segment, split_chunk
from schemas.choices import Language
from schemas.document import Chunk

MAX_FOLLOWING_CHUNKS = 2
"""Maximum number of chunks from which the text after pasted code is quoted.

They share `MAX_CHARS`, so that the start of each is quoted.
"""


def text_after_pasted_code(
    passage: RankedPassage, collection: Collection, language: Language
) -> Iterator[RankedPassage]:
    """Yield the text after `passage` if it ends with code that the question contains.

    The text is from the same section, or from sections with the same parent heading. This function blocks:
    call it in a worker thread.
    """
    if not passage.ends_with_pasted:
        return
    chunk = passage.chunk
    document = collection.chunks_of_document(chunk.document_id, chunk.source)
    following = [each for each in document if each.position > chunk.position]
    related = [each for each in following if _belongs_together(chunk, each)]
    for each in related[:MAX_FOLLOWING_CHUNKS]:
        segments = list(_first_segments(split_chunk(each, language)))
        yield replace(passage, chunk=each, segments=segments, ends_with_pasted=False)


def _belongs_together(chunk: Chunk, following: Chunk) -> bool:
    """Return whether `following` is prose in the section of `chunk`, or below the same parent heading."""
    parent = chunk.section.rpartition(" > ")[0]
    is_sibling = bool(parent) and following.section.startswith(f"{parent} > ")
    return following.kind == "prose" and (is_sibling or following.section == chunk.section)


def _first_segments(segments: Sequence[Segment]) -> Iterator[Segment]:
    """Yield the first segments of a chunk that fit into its share of `MAX_CHARS`, but at least one."""
    chars_left = MAX_CHARS // MAX_FOLLOWING_CHUNKS
    for number, segment in enumerate(segments):
        chars_left -= len(segment.text)
        if number and chars_left < 0:
            return
        yield segment
