"""Finds the sections whose headings begin with the number of a version or chapter that a question names."""

import re
from collections.abc import Iterable

from ingestion.store.collection import Collection
from runnables.question.query_analysis import heading_numbers
from schemas.document import Chunk
from schemas.question import Filters

MAX_NUMBERED_DOCUMENTS = 3
"""Maximum number of documents in which headings with a number of the question are looked for."""

_VERSION_PREFIX = "(?:[vV]|[Vv]ersion |[Rr]elease |版本 ?)?"
"""What may precede the number of a version at the start of a heading."""


def chunks_by_heading_number(
    collection: Collection, question: str, filters: Filters
) -> list[Chunk]:
    """Return the chunks below headings that begin with a version or chapter number of `question`.

    For example, the heading "3.2.0 (2024-10-15)" for 3.2, and "4.2 Callbacks" for 4.2. If a heading has
    exactly the number of the question, it precedes the others.

    This function blocks: call it in a worker thread.
    """
    numbers = heading_numbers(question)
    documents = [
        (entry.source, entry.document_id)
        for entry in (collection.catalogue() if numbers else ())
        if any(_numbered_depth(path, numbers) for path in entry.outline)
    ]
    found = collection.chunks_of_documents(documents[:MAX_NUMBERED_DOCUMENTS]) if documents else []
    depths = {chunk.id: _numbered_depth(chunk.section, numbers) for chunk in found}
    chunks = [chunk for chunk in found if depths[chunk.id] and filters.allow(chunk)]
    return sorted(chunks, key=lambda chunk: depths[chunk.id])


def _numbered_depth(path: str, numbers: Iterable[str]) -> int:
    """Return how far the path of headings `path` is from having exactly one of `numbers`; 0 if none has.

    The result is 1 for the heading "3.2", 2 for "3.2.0", and more for headings below them.
    """
    contained = [number for number in numbers if number in path]  # faster than a pattern
    for below, heading in enumerate(reversed(path.split(" > ")) if contained else ()):
        for number in contained:
            if match := re.match(rf"\W*{_VERSION_PREFIX}{re.escape(number)}(?!\d)(\.\d)?", heading):
                return 1 + 2 * below + (match[1] is not None)
    return 0
