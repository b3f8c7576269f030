"""Writes apidesk's chunks as a file of passages for all systems."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import write_corpus
from benchmarks.peers.passages import Passage, write_passages
from ingestion.chunking import chunk_document
from ingestion.platform_config import read_platform
from ingestion.sources.registry import read_source
from schemas.document import Chunk, SourceDocument
from schemas.platform import SourceLimits
from schemas.settings import read_settings


@dataclass(frozen=True)
class Passages:
    """The same text for apidesk and for the peers."""

    platform: Path
    """The platform.toml of the pages."""
    file: Path
    """The passages for `benchmarks.peers`, one per line."""
    count: int


def corpus_passages(folder: Path, sections: int) -> Passages:
    """Write pages and their passages to `folder`."""
    return passages_of(write_corpus(folder, sections), folder / "passages.jsonl")


def passages_of(platform: Path, file: Path) -> Passages:
    """Write the chunks of the documents of `platform` to `file`."""
    passages = [_passage(chunk) for chunk in chunks_of(platform)]
    write_passages(file, passages)
    return Passages(platform, file, len(passages))


def chunks_of(platform: Path) -> Iterator[Chunk]:
    """Yield the chunks of the documents of `platform`, as in the ingestion job."""
    chunk_tokens = read_settings().chunk_tokens
    for source in read_platform(platform).sources:
        for document in read_source(source, SourceLimits()):
            assert isinstance(document, SourceDocument), document
            yield from chunk_document(document, chunk_tokens)


def _passage(chunk: Chunk) -> Passage:
    title = " > ".join(part for part in (chunk.title, chunk.section) if part)
    return Passage(chunk.id, title, chunk.body, chunk.page_url or chunk.document_id)
