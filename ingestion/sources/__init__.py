"""One reader a format; each turns a source of platform.toml into SourceDocuments."""

from collections.abc import Iterator
from typing import assert_never

from ingestion.sources import api_docs, markdown
from ingestion.sources.folder import list_files
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import ApiDocsSource, MarkdownSource, Source


def read_source(source: Source) -> Iterator[SourceDocument]:
    """The documents of `source`, in a stable order.

    Raises SourceError for what cannot be read, and for a second document with the same id, which
    would take the place of the first.
    """
    ids: set[str] = set()
    for document in _read(source):
        if document.id in ids:
            raise SourceError(f"source {source.name}: two documents have the id {document.id}")
        ids.add(document.id)
        yield document


def _read(source: Source) -> Iterator[SourceDocument]:
    match source:
        case ApiDocsSource():
            return api_docs.read_api_docs(source)
        case MarkdownSource():
            return markdown.read_markdown(source)
        case _:
            assert_never(source)


def count_files(source: Source) -> int:
    """How many files `read_source` will read. Raises SourceError for a folder that has none."""
    match source:
        case ApiDocsSource():
            return len(list_files(source.path, api_docs.SUFFIXES))
        case MarkdownSource():
            return len(list_files(source.path, markdown.SUFFIXES))
        case _:
            assert_never(source)
