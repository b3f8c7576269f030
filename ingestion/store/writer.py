"""The interface of the two writers of a collection.

`NextCollectionWriter` builds a new collection and moves the alias to it when it is complete, so that
searches see the old collection until then. Rebuilds use it everywhere. Milvus Lite uses it for every
run because it weights words per segment and can miss rows during a flush (see `docs/decisions`).
`InPlaceWriter` updates and deletes rows of a server's collection.

Both keep two smaller collections up to date: the vocabulary with the count of every word in the
chunks, and the catalogue with one row per document.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection as Sized
from collections.abc import Sequence

from ingestion.store.manifest import CollectionManifest
from ingestion.store.schema import Vector
from schemas.document import Chunk


class CollectionWriter(ABC):
    """Writes the chunks of one ingestion run. Deletes nothing before `finish`."""

    @abstractmethod
    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Write new or changed `chunks`; `vectors` has one per chunk, or is None without a model."""

    @abstractmethod
    def finish(self, dropped: Sized[str]) -> CollectionManifest:
        """Delete the chunks with the ids `dropped` and publish everything that was written."""

    @abstractmethod
    def abandon(self) -> None:
        """Clean up after a failure."""
