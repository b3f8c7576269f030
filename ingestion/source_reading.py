"""Reads one source, and finds the chunks that are new or have changed since the last run."""

import logging
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from itertools import groupby

from ingestion.sources.registry import (
    EmptyFile,
    FileResult,
    KnownFiles,
    RefusedFile,
    UnchangedFile,
    combine_fingerprints,
    count_files,
    read_source,
)
from ingestion.store.catalogue import DocumentKey
from ingestion.store.collection import Collection
from ingestion.stored_documents import (
    MIN_IDENTICAL_DOCUMENTS,
    HeldDocuments,
    StoredDocuments,
    text_digest,
)
from ingestion.worker_processes import ChunkedDocument, WorkerProcesses, to_chunked_document
from schemas.document import Chunk, SourceDocument
from schemas.errors import ApideskError, SourceError
from schemas.ingestion import IngestionOptions, SourceReport
from schemas.platform import PageSourceConfig, RemoteSourceConfig, SourceConfig, SourceLimits

MAX_VANISHED_SHARE = 0.3
"""Maximum share of a source's documents that a run deletes because they have vanished from the source.

The loss of a larger share is usually a mistake, so the documents are kept unless `allow_deletes` is set.

The same limit applies to pages of web sites and loaders that had different texts and now have the same
text, such as that of a login page. If these pages are more than this share of the documents, their indexed
versions are kept.
"""

READ_BATCH = 100
"""Number of indexed documents that are read at a time."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading sources and splitting their documents into chunks."""

    limits: SourceLimits
    chunk_tokens: int


@dataclass(frozen=True)
class ReadContext:
    """The stores, processes and options that all sources of a run share."""

    collection: Collection
    stored: StoredDocuments
    """The stored chunks to compare with."""
    was_interrupted: bool
    """Whether an earlier run may have stored only a part of a document."""
    workers: WorkerProcesses
    read_options: ReadOptions
    options: IngestionOptions
    on_progress: Callable[[], None]


class SourceReading:
    """One reading of `source`. The attributes are complete when `changed_chunks` has ended."""

    def __init__(self, source: SourceConfig, context: ReadContext) -> None:
        self.report = SourceReport(name=source.name)
        self.seen_ids: set[str] = set()
        """Ids of the documents that were found and not refused."""
        self.dropped_ids: set[str] = set()
        """Ids of the stored chunks that documents no longer have."""
        self.new_fingerprints: dict[DocumentKey, str] = {}
        """Fingerprints of files (see `sources/registry.py`) to store for documents with unchanged chunks.

        An unchanged chunk is not written again, even if other chunks of its document have changed.
        Therefore, its fingerprint is stored separately, with `Collection.save_fingerprints`.
        """
        self._source = source
        self._context = context
        self._fingerprints: list[str] = []
        """The fingerprint of each file; empty for a file that the next run must read again."""
        self._held = HeldDocuments()
        self._has_links = False
        """Whether a document has a page URL, or may have one because its file is unchanged and not read."""

    @property
    def digest(self) -> str:
        """Digest of the files of the source; empty if the next run must read them again."""
        return combine_fingerprints(self._fingerprints)

    def changed_chunks(self) -> Iterator[Chunk]:
        """Read the source. Yield its chunks to write: the new and changed ones, or all for a rebuild."""
        source, context, report = self._source, self._context, self.report
        try:
            report.expected = count_files(source)
            for result in read_source(
                source, context.read_options.limits, self._known_files(), context.workers.run
            ):
                yield from self._result_chunks(result)
                context.on_progress()
        except SourceError as error:  # the source cannot be read at all, or not to its end
            self._fingerprints.append("")
            report.refused.append(str(error))
        yield from self._held_chunks()
        report.warnings += self._link_warnings()

    def _known_files(self) -> KnownFiles:
        """Return the indexed files of the source, which are not parsed again if they have not changed.

        The result is empty for a rebuild, and after an interrupted run, which may have written only a part
        of a document.
        """
        context = self._context
        if context.options.rebuild or context.was_interrupted:
            return {}
        return context.stored.known_files(self._source.name)

    def _result_chunks(self, result: FileResult) -> Iterator[Chunk]:
        """Count `result` in the report. Yield its chunks to write, except those of a document held back.

        `_hold_new_version` explains which documents are held back.
        """
        report = self.report
        if isinstance(result, SourceDocument) and not isinstance(result, ChunkedDocument):
            result = to_chunked_document(result, self._context.read_options.chunk_tokens)
        match result:
            case ChunkedDocument():
                if result.api_url and isinstance(self._source, PageSourceConfig):
                    report.operations += 1
                self._fingerprints.append(result.fingerprint)
                self._has_links |= any(chunk.page_url for chunk in result.chunks)
                if not self._hold_new_version(result):
                    yield from self._document_chunks(result)
            case UnchangedFile():
                # Whether the documents of an unchanged file have page URLs is not known. If they have no
                # page URLs, the run that read the file has warned.
                self._has_links = True
                self.seen_ids |= result.ids
                self._fingerprints.append(result.fingerprint)
                self._count_unchanged(result)
            case EmptyFile():
                self._fingerprints.append(result.fingerprint)
                report.empty += [] if result.is_skipped else [result.name]
            case SourceError():
                fingerprint = result.fingerprint if isinstance(result, RefusedFile) else ""
                self._fingerprints.append(fingerprint)
                report.refused.append(str(result))

    def _count_unchanged(self, file: UnchangedFile) -> None:
        report, stored = self.report, self._context.stored
        report.documents += len(file.ids)
        report.unchanged += len(file.ids)
        report.chunks += sum(
            len(stored.chunk_hashes(report.name, document_id)) for document_id in file.ids
        )

    def _document_chunks(self, document: ChunkedDocument) -> Iterator[Chunk]:
        """Count `document` in the report. Yield its chunks to write."""
        report, context = self.report, self._context
        self.seen_ids.add(document.id)
        before = context.stored.chunk_hashes(document.source, document.id)
        chunks = document.chunks
        changed = [chunk for chunk in chunks if before.get(chunk.id) != chunk.content_hash]
        removed = before.keys() - {chunk.id for chunk in chunks}
        self.dropped_ids |= removed
        report.documents += 1
        report.chunks += len(chunks)
        if len(changed) < len(chunks):
            self.new_fingerprints[document.source, document.id] = document.fingerprint
        if not before:
            report.added += 1
        elif changed or removed:
            report.changed += 1
        else:
            report.unchanged += 1
        yield from chunks if context.options.rebuild else changed

    def _hold_new_version(self, document: ChunkedDocument) -> bool:
        """Hold back `document` if it is a new version of an indexed document of a web site or loader.

        When the whole source has been read, `_held_chunks` decides whether to write the document, because
        many new versions with the same text may be copies of a login page (see `stored_documents.py`).
        Returns whether the document is held back. With `allow_deletes`, the result is always False.
        """
        if not isinstance(self._source, RemoteSourceConfig):
            return False
        before = self._context.stored.chunk_hashes(document.source, document.id)
        hashes = {chunk.id: chunk.content_hash for chunk in document.chunks}
        if self._context.options.allow_deletes or not before or before == hashes:
            return False
        self._held.add(document)
        return True

    def _held_chunks(self) -> Iterator[Chunk]:
        """Yield the chunks to write of the documents that were held back.

        A large group of documents that had different texts, but now have the same text, is refused: the
        chunks of these documents are not yielded.
        """
        report, context = self.report, self._context
        stored = len(context.stored.document_ids(report.name))
        limit = max(MIN_IDENTICAL_DOCUMENTS - 1, MAX_VANISHED_SHARE * stored)
        refused: set[str] = set()
        for ids in self._held.identical(limit):
            if self._has_more_texts(ids, limit):
                refused |= ids
                report.refused.append(
                    f"{len(ids)} pages have the same text, like that of a login or error page, so their "
                    "indexed versions are kept: to accept the new ones, run "
                    "`apidesk ingest --allow-deletes`"
                )
        for document in self._held:
            if document.id not in refused:
                yield from self._document_chunks(document)
                context.on_progress()

    def _has_more_texts(self, ids: Set[str], limit: float) -> bool:
        """Return whether the indexed versions of these documents have more than `limit` different texts.

        The result is False if the indexed versions cannot be read, for example because they were indexed
        with settings that differ from the current ones, and this run rebuilds the collection.
        """
        collection, source = self._context.collection, self._source.name
        digests: set[str] = set()
        ordered_ids = sorted(ids)
        try:
            collection.load()
            for start in range(0, len(ordered_ids), READ_BATCH):
                batch = ordered_ids[start : start + READ_BATCH]
                keys = ((source, document_id) for document_id in batch)
                chunks = collection.chunks_of_documents(keys)
                texts = groupby(chunks, key=lambda chunk: chunk.document_id)
                digests.update(text_digest(group) for _, group in texts)
                if len(digests) > limit:
                    return True
        except ApideskError as error:
            log.warning(
                "%s: pages with the same text replace their indexed versions, which cannot be read: %s",
                source,
                error,
            )
        return False

    def _link_warnings(self) -> list[str]:
        """Return a warning if the source has a template `page_url`, but no document has a page URL."""
        if not self._source.page_url or not self.report.documents or self._has_links:
            return []
        templates = " or ".join(map(repr, self._source.page_url))
        return [
            "no document has a link, because no document has a value for every name in braces in "
            f"page_url = {templates}"
        ]
