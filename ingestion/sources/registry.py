"""One reader a format; each turns a source of platform.toml into SourceDocuments."""

import hashlib
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import assert_never

from ingestion.sources import api_docs, files, markdown
from ingestion.sources.folder import FileResult, KnownFiles, UnchangedFile, fingerprints, list_files
from ingestion.sources.openapi import reader as openapi
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.source import (
    ApiDocsSourceConfig,
    FilesSourceConfig,
    MarkdownSourceConfig,
    OpenApiSourceConfig,
    SourceConfig,
    SourceLimits,
)


def read_source(
    source: SourceConfig, limits: SourceLimits, known: KnownFiles = MappingProxyType({})
) -> Iterator[FileResult]:
    """The documents of `source` in a stable order, and a SourceError for each that was refused.

    Of a file with a `known` fingerprint comes Unchanged: it is not read.

    Raises SourceError for a source that cannot be read at all. A second document with the same id,
    which would take the place of the first, is refused.
    """
    ids: set[str] = set()
    for found in _read(source, limits, known):
        theirs = _ids(found)
        if twice := ids & theirs:
            yield SourceError(f"two documents have the id {min(twice)}: the first one counts")
            continue
        ids |= theirs
        yield found


def _ids(found: FileResult) -> frozenset[str]:
    match found:
        case SourceDocument():
            return frozenset({found.id})
        case UnchangedFile():
            return found.ids
        case _:
            return frozenset()


def _read(source: SourceConfig, limits: SourceLimits, known: KnownFiles) -> Iterator[FileResult]:
    match source:
        case ApiDocsSourceConfig():
            return api_docs.read_api_docs(source, limits, known)
        case MarkdownSourceConfig():
            return markdown.read_markdown(source, limits, known)
        case FilesSourceConfig():
            return files.read_files_source(source, limits, known)
        case OpenApiSourceConfig():
            return openapi.read_openapi(source, limits)
        case _:
            assert_never(source)


def count_files(source: SourceConfig) -> int | None:
    """How many files `read_source` will read, where that can be known before.

    Raises SourceError for a folder that has none.
    """
    if isinstance(source, OpenApiSourceConfig):
        return None
    return len(list_files(source.path, _suffixes(source)))


def digest_source(source: SourceConfig, limits: SourceLimits) -> str:
    """The `digest` of all that `read_source` would read; empty where that is not known before, or a
    file would be refused.
    """
    if isinstance(source, OpenApiSourceConfig):
        return ""
    try:
        return digest(fingerprints(source, _suffixes(source), limits))
    except SourceError:
        return ""


def digest(fingerprints: Sequence[str]) -> str:
    """One word for the files with these fingerprints; empty where one is not known."""
    return hashlib.sha256("".join(fingerprints).encode()).hexdigest() if all(fingerprints) else ""


def _suffixes(source: ApiDocsSourceConfig | MarkdownSourceConfig | FilesSourceConfig) -> set[str]:
    match source:
        case ApiDocsSourceConfig():
            return api_docs.SUFFIXES
        case MarkdownSourceConfig():
            return markdown.SUFFIXES
        case FilesSourceConfig():
            return files.file_suffixes(source)
        case _:
            assert_never(source)
