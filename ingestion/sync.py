"""The ingestion job: sources -> chunks -> collection."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from langchain_core.embeddings import Embeddings

from ingestion.chunking import chunk_document
from ingestion.collection import Collection, Embed
from ingestion.collection_schema import Vector
from ingestion.model_errors import ModelRole, model_errors
from ingestion.sources import count_files, read_source
from schemas.document import Chunk
from schemas.platform import Platform


@dataclass
class Report:
    """What a run did, by source."""

    documents: dict[str, int] = field(default_factory=dict)
    expected: dict[str, int] = field(default_factory=dict)
    """Files to read, known when a source begins."""
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
        _embed(embeddings, collection.embedding_role) if embeddings else None,
    )
    report.seconds = time.monotonic() - started
    return report


def _embed(embeddings: Embeddings, role: ModelRole) -> Embed:
    def embed(texts: list[str]) -> list[Vector]:
        with model_errors(role):
            return embeddings.embed_documents(texts)

    return embed


def _chunks(
    platform: Platform, max_tokens: int, report: Report, progress: Progress
) -> Iterator[Chunk]:
    for source in platform.sources:
        report.documents[source.name] = report.chunks[source.name] = 0
        report.expected[source.name] = count_files(source)
        for document in read_source(source):
            chunks = list(chunk_document(document, max_tokens))
            report.documents[source.name] += 1
            report.chunks[source.name] += len(chunks)
            progress(report)
            yield from chunks
