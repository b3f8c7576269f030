"""The interface of source readers, and functions that read sources of any kind.

A page of a web site and a document of a LangChain loader count as files, too. The fingerprint of a file is
a digest of its content and of everything else from which its documents are made, such as its name and the
source's configuration.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

from schemas.document import SourceDocument
from schemas.errors import ApideskError, SourceError
from schemas.platform import SourceConfig, SourceLimits

KnownFiles = Mapping[str, frozenset[str]]
"""Maps the fingerprint of each indexed file to the ids of the file's documents."""


@dataclass(frozen=True)
class UnchangedFile:
    """A file that has not changed since it was indexed."""

    fingerprint: str
    ids: frozenset[str]
    """Ids of the file's documents, which are already indexed."""


@dataclass(frozen=True)
class EmptyFile:
    """A file without documents: it has no body, or the source skips it."""

    fingerprint: str
    name: str
    """The path of the file within the source."""
    is_skipped: bool = False
    """Whether the file's name or front matter excludes the file. If not, the file has no body."""


class RefusedFile(SourceError):
    """A file that is refused because of its content. It stays refused until its fingerprint changes."""

    def __init__(self, reason: str, fingerprint: str = "") -> None:
        super().__init__(reason)
        self.fingerprint = fingerprint


@dataclass(frozen=True)
class Waiting:
    """Yielded by a reader at short intervals while it waits, so that the caller can stop the run."""


FileResult = SourceDocument | UnchangedFile | EmptyFile | SourceError | Waiting
"""A result of reading a file. A SourceError states in one line why the file was refused."""

FileTask = Callable[[], Sequence[FileResult]]
"""Reads one file. Returns its documents, or one result that says why there are none.

A task can run in another process.
"""

RunTasks = Callable[[Iterator[FileTask | FileResult]], Iterator[FileResult]]
"""Takes an iterator of tasks and results, runs the tasks, and yields all results in order."""

ConfigT = TypeVar("ConfigT", contravariant=True)

log = logging.getLogger(__name__)


def run_tasks(tasks: Iterator[FileTask | FileResult]) -> Iterator[FileResult]:
    """Yield all results in order. Each task runs only when its result is needed."""
    for task in tasks:
        if callable(task):
            yield from task()
        else:
            yield task


def file_results(
    name: str, fingerprint: str, read: Callable[[], Sequence[SourceDocument] | None]
) -> Sequence[FileResult]:
    """Return the documents that `read` returns, with the fingerprint of their file.

    If there are no documents, return one result that says why. `read` returns None if the source skips the
    file, and raises SourceError to refuse the file. A ConfigurationError, such as for a malformed
    `page_url`, is not caught because it concerns the whole source.
    """
    try:
        documents = read()
    except SourceError as error:
        return [RefusedFile(f"{name}: {error}", fingerprint)]
    except ApideskError:
        raise
    except Exception as error:
        return [unexpected_error(name, error)]
    if not documents:
        return [EmptyFile(fingerprint, name, is_skipped=documents is None)]
    return [document.model_copy(update={"fingerprint": fingerprint}) for document in documents]


def unexpected_error(name: str, error: Exception) -> SourceError:
    """Log `error`, which indicates a bug in apidesk, and return a SourceError for the document `name`.

    A bug that one document triggers must not keep the other documents from being indexed.
    """
    log.error("%s cannot be read", name, exc_info=error)
    return SourceError(f"{name}: unexpected {type(error).__name__}; see the log for details")


@runtime_checkable
class SourceReader(Protocol[ConfigT]):
    """Reads one kind of source whose files are not known in advance, such as web sites."""

    def read(
        self, source: ConfigT, limits: SourceLimits, known: KnownFiles
    ) -> Iterator[FileResult]:
        """Yield the documents of `source` in a stable order, and a SourceError for each refused document.

        Raises SourceError when the source cannot be read at all.
        """
        ...


@runtime_checkable
class FileTaskReader(Protocol[ConfigT]):
    """Reads one kind of source whose files are known in advance and can be read independently.

    All methods raise SourceError for a folder without matching files.
    """

    def count_files(self, source: ConfigT) -> int:
        """Return the number of files to read."""
        ...

    def fingerprints(self, source: ConfigT, limits: SourceLimits) -> list[str]:
        """Return the fingerprint of each file. Raises SourceError if a file cannot be read."""
        ...

    def tasks(
        self, source: ConfigT, limits: SourceLimits, known: KnownFiles
    ) -> Iterator[FileTask | FileResult]:
        """Yield a task for each file that must be parsed, and the results for all other files, in order."""
        ...


def get_reader(kind: str) -> SourceReader[Any] | FileTaskReader[Any]:
    """Return `READER` of the module `ingestion.sources.<kind>`.

    `kind` is one of the kinds of `SourceConfig`. The module is imported on first use, because the
    libraries that parse documents are slow to import.
    """
    reader: SourceReader[Any] | FileTaskReader[Any] = import_module(f"{__package__}.{kind}").READER
    return reader


def read_source(
    source: SourceConfig,
    limits: SourceLimits,
    known: KnownFiles = MappingProxyType({}),
    run: RunTasks = run_tasks,
) -> Iterator[FileResult]:
    """Yield the documents of `source` in a stable order, and a SourceError for each refused document.

    `run` may run the tasks of a FileTaskReader in other processes.

    A file whose fingerprint is in `known` is not parsed and yields an UnchangedFile. A document
    whose id was already seen in this source is refused.

    Raises SourceError when the source cannot be read at all.
    """
    seen: set[str] = set()
    reader = get_reader(source.kind)
    if isinstance(reader, FileTaskReader):
        results = run(reader.tasks(source, limits, known))
    else:
        results = reader.read(source, limits, known)
    for result in results:
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
    """Return the number of files that `read_source` will read; None if the number is not known in advance.

    Raises SourceError for a folder without matching files.
    """
    reader = get_reader(source.kind)
    return reader.count_files(source) if isinstance(reader, FileTaskReader) else None


def digest_source(source: SourceConfig, limits: SourceLimits) -> str:
    """Return a digest of all files of `source`.

    The result is empty if the files are not known in advance, if there are none, or if one cannot be read.
    """
    reader = get_reader(source.kind)
    if not isinstance(reader, FileTaskReader):
        return ""
    try:
        return combine_fingerprints(reader.fingerprints(source, limits))
    except SourceError:
        return ""


def combine_fingerprints(fingerprints: Sequence[str]) -> str:
    """Return one digest of several fingerprints; empty if any of them is empty.

    A fingerprint that occurs several times counts once, because callers may pass one fingerprint per
    document, and a file may have several documents.
    """
    distinct = dict.fromkeys(fingerprints)
    return hashlib.sha256("".join(distinct).encode()).hexdigest() if all(distinct) else ""
