"""Writing a collection without sources."""

from collections.abc import Callable, Iterable

from ingestion.store.client import batches
from ingestion.store.collection import Collection
from ingestion.store.manifest import CollectionManifest
from ingestion.store.schema import Vector, embedded_text
from schemas.document import Chunk

Embed = Callable[[list[str]], list[Vector]]


def write(
    collection: Collection,
    chunks: Iterable[Chunk],
    embed: Embed | None = None,
    rebuild: bool = True,
    dropped: Iterable[str] = (),
) -> CollectionManifest:
    """Write `chunks`, with the vectors that `embed` makes; with `rebuild` nothing else remains."""
    writer = collection.writer(rebuild)
    try:
        for batch in batches(chunks):
            writer.put(batch, embed([embedded_text(chunk) for chunk in batch]) if embed else None)
        manifest = writer.finish(set(dropped))
    except BaseException:
        writer.abandon()
        raise
    collection.load()
    return manifest
