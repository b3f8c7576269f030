"""The interface of source readers: what a reader is given and what it yields.

Kept apart from `folder`, so that a reader that reads no folder does not depend on it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.source import SourceLimits

KnownFiles = Mapping[str, frozenset[str]]
"""Fingerprint of an indexed file -> ids of its documents."""


@dataclass(frozen=True)
class UnchangedFile:
    """A file with nothing to index: it has not changed, or it contains no document."""

    fingerprint: str
    ids: frozenset[str]
    """Ids of its documents that are already indexed."""


FileResult = SourceDocument | UnchangedFile | SourceError
"""The result of reading a file; a SourceError states in one line why the file was refused."""

ConfigT = TypeVar("ConfigT", contravariant=True)


class SourceReader(Protocol[ConfigT]):
    """Reads one kind of source. The module `ingestion.sources.<kind>` provides one as `READER`."""

    def read(
        self, source: ConfigT, limits: SourceLimits, known: KnownFiles
    ) -> Iterator[FileResult]:
        """Yield the documents of `source` in a stable order, and a SourceError for each refused one.

        Raises SourceError when the source cannot be read at all.
        """
        ...

    def count_files(self, source: ConfigT) -> int | None:
        """Return the number of files to read; None when it is unknown before reading.

        Raises SourceError for a folder without matching files.
        """
        ...

    def fingerprints(self, source: ConfigT, limits: SourceLimits) -> list[str] | None:
        """Return the fingerprint of each file; None when files cannot be compared before reading.

        Raises SourceError for the first file that is refused.
        """
        ...
