"""Finds documents of a source that have become identical, for example because a site asks for a login.

The new versions of indexed documents are held back until the whole source has been read. Before that, the
first login page looks like any changed page.
"""

import hashlib
import pickle
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from tempfile import SpooledTemporaryFile

from ingestion.worker_processes import ChunkedDocument
from schemas.document import Chunk

MIN_IDENTICAL = 6
"""Minimum number of documents with the same new text that are not accepted."""

MAX_MEMORY_BYTES = 10_000_000
"""Maximum size of the held documents in memory, in bytes."""

_LINK_TARGET = re.compile(r"\]\([^)\s]*")


class HeldDocuments:
    """The new versions of indexed documents, in a temporary file if they are large."""

    def __init__(self) -> None:
        # The file is deleted when this object is freed.
        self._file = SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES)  # noqa: SIM115
        self._ids: dict[str, set[str]] = defaultdict(set)
        """Ids of the documents by the digest of their text."""

    def add(self, document: ChunkedDocument) -> None:
        """Add the new version of a document."""
        self._ids[text_digest(document.chunks)].add(document.id)
        pickle.dump(document, self._file)

    def identical(self, more_than: float) -> list[Set[str]]:
        """Return the ids of each group of more than `more_than` documents with the same text."""
        return [ids for ids in self._ids.values() if len(ids) > more_than]

    def __iter__(self) -> Iterator[ChunkedDocument]:
        """Yield the documents in the order in which they were added."""
        self._file.seek(0)
        for _ in range(sum(map(len, self._ids.values()))):
            document: ChunkedDocument = pickle.load(self._file)
            yield document


def text_digest(chunks: Iterable[Chunk]) -> str:
    """Return a digest of a document's title and text without link targets, which name the document."""
    digest = hashlib.sha256()
    for chunk in chunks:
        text = _LINK_TARGET.sub("]", chunk.body)
        digest.update(f"{chunk.title}\0{chunk.section}\0{text}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
