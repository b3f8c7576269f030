"""The ingestion job: sources -> chunks -> collection."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from langchain_core.embeddings import Embeddings

from ingestion.chunking import chunk_document
from ingestion.collection import Collection
from ingestion.sources import read_source
from schemas.document import Chunk
from schemas.platform import Platform


@dataclass
class Report:
    """What a run did, by source."""

    documents: dict[str, int] = field(default_factory=dict)
    chunks: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


Progress = Callable[[Report], None]


def ingest(
    platform: Platform,
    collection: Collection,
    embeddings: Embeddings | None,
    max_tokens: int,
    progress: Progress = lambda report: None,
) -> Report:
    """Index every source of `platform` anew; `progress` is called after each document.

    Raises SourceError for a document that cannot be read; then the collection is as it was.
    """
    report = Report()
    started = time.monotonic()
    collection.replace(
        _chunks(platform, max_tokens, report, progress),
        embeddings.embed_documents if embeddings else None,
    )
    report.seconds = time.monotonic() - started
    return report


def _chunks(
    platform: Platform, max_tokens: int, report: Report, progress: Progress
) -> Iterator[Chunk]:
    for source in platform.sources:
        report.documents[source.name] = report.chunks[source.name] = 0
        for document in read_source(source):
            chunks = list(chunk_document(document, max_tokens))
            report.documents[source.name] += 1
            report.chunks[source.name] += len(chunks)
            progress(report)
            yield from chunks
