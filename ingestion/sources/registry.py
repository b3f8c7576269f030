"""Finds the reader of a source by its kind, and reads sources of any kind."""

import hashlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

from ingestion.sources.reader import FileResult, KnownFiles, SourceReader, UnchangedFile
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.source import SourceConfig, SourceLimits


def get_reader(kind: str) -> SourceReader[Any]:
    """Return `READER` of the module `ingestion.sources.<kind>`.

    `kind` is one of the kinds of `SourceConfig`. The module is imported on first use, because the
    libraries that parse documents are slow to import.
    """
    reader: SourceReader[Any] = import_module(f"ingestion.sources.{kind}").READER
    return reader


def read_source(
    source: SourceConfig, limits: SourceLimits, known: KnownFiles = MappingProxyType({})
) -> Iterator[FileResult]:
    """Yield the documents of `source` in a stable order, and a SourceError for each refused one.

    A file whose fingerprint is in `known` is not parsed and yields an UnchangedFile. A document
    whose id was already seen in this source is refused.

    Raises SourceError when the source cannot be read at all.
    """
    seen: set[str] = set()
    for result in get_reader(source.kind).read(source, limits, known):
        ids = _document_ids(result)
        if duplicates := seen & ids:
            yield SourceError(
                f"duplicate document id {min(duplicates)}: the first document is kept"
            )
            continue
        seen |= ids
        yield result


def _document_ids(result: FileResult) -> frozenset[str]:
    match result:
        case SourceDocument():
            return frozenset({result.id})
        case UnchangedFile():
            return result.ids
        case _:
            return frozenset()


def count_files(source: SourceConfig) -> int | None:
    """Return the number of files that `read_source` will read; None when it is unknown in advance.

    Raises SourceError for a folder without matching files.
    """
    return get_reader(source.kind).count_files(source)


def digest_source(source: SourceConfig, limits: SourceLimits) -> str:
    """Return a digest of all files of `source`.

    Empty when the files cannot be compared before reading, or when one of them is refused.
    """
    try:
        fingerprints = get_reader(source.kind).fingerprints(source, limits)
    except SourceError:
        return ""
    return "" if fingerprints is None else combine_fingerprints(fingerprints)


def combine_fingerprints(fingerprints: Sequence[str]) -> str:
    """Return one digest of several fingerprints; empty when any of them is empty."""
    return hashlib.sha256("".join(fingerprints).encode()).hexdigest() if all(fingerprints) else ""
