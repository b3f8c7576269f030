"""What changed, what vanished, what to refuse: documents compared with the collection.

Documents are streamed: read, cut into chunks, compared by content hash, embedded and written, a batch
at a time. What is kept of the whole is an id and a hash a chunk. A source of which every file is as the
last run left it is neither read nor compared.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ingestion.chunking import chunk_document
from ingestion.embedder import ChunkEmbedder
from ingestion.sources.reader import KnownFiles, UnchangedFile
from ingestion.sources.registry import combine_fingerprints, count_files, digest_source, read_source
from ingestion.store.client import batches
from ingestion.store.collection import Collection
from ingestion.store.manifest import IndexedSource
from ingestion.store.route_calibration import calibrate_routes, is_calibration_due
from ingestion.store.schema import Vector
from ingestion.store.writer import CollectionWriter
from schemas.document import Chunk, SourceDocument
from schemas.errors import CollectionMissing, DeletionsRefused, ModelError, SourceError
from schemas.ingestion import IngestionOptions, SourceReport
from schemas.source import SourceConfig, SourceLimits

MOST_VANISHED = 0.3
"""The share of a source's documents above which they are believed to be lost rather than deleted."""

log = logging.getLogger(__name__)

Chunks = dict[str, str]
"""Content hash by chunk id."""


@dataclass(frozen=True)
class SourceReader:
    """How sources are read and cut."""

    limits: SourceLimits
    chunk_tokens: int


class Sync:
    """One comparison of sources with a collection, and what follows from it.

    `reports` is kept up to date while `run` goes on; `step` is called after each document, and what
    it raises ends the run.
    """

    def __init__(
        self,
        collection: Collection,
        embedder: ChunkEmbedder | None,
        reader: SourceReader,
        options: IngestionOptions,
        step: Callable[[], None] = lambda: None,
    ) -> None:
        self.reports: list[SourceReport] = []
        self._collection = collection
        self._embedder = embedder
        self._reader = reader
        self._options = options
        self._step = step
        self._stored: dict[str, dict[str, Chunks]] = defaultdict(dict)
        """Chunks by document, by source, as they were before."""
        self._fingerprints: dict[str, dict[str, set[str]]] = defaultdict(dict)
        """Of the chunks of each document that was there before, by source."""
        self._unread: dict[str, IndexedSource] = {}
        """The sources that are as the last run left them."""
        self._digests: dict[str, str] = {}
        """Of what was read of each source."""
        self._dropped: set[str] = set()
        self._unfinished = False
        """Whether the last run died while it wrote in place."""

    def run(self, sources: Sequence[SourceConfig]) -> None:
        """Bring the collection in step with `sources`; unless it is a dry run.

        Raises ApideskError: then the collection answers as before, or, on a server, from what was
        written so far; the next run goes on.
        """
        if not self._options.rebuild:
            self._collection.check()
        stored = self._collection.stored_manifest()
        self._unfinished = stored is not None and stored.incomplete
        self._read_stored(sources)
        if self._options.dry_run:
            for _ in self._changed(sources):
                pass
            return
        writer = self._collection.writer(self._options.rebuild)
        try:
            self._write(writer, self._changed(sources))
        except BaseException:
            writer.abandon()
            raise

    def _read_stored(self, sources: Sequence[SourceConfig]) -> None:
        """Find out what is there of the sources that may have changed."""
        indexed = {} if self._options.rebuild else self._collection.indexed_sources()
        self._unread = {
            source.name: indexed[source.name]
            for source in sources
            if source.name in indexed and self._is_as_before(source, indexed[source.name])
        }
        if indexed and indexed.keys() == self._unread.keys():
            return
        for chunk in self._collection.stored_chunks(excluded_sources=list(self._unread)):
            document = self._stored[chunk.source].setdefault(chunk.document_id, {})
            document[chunk.id] = chunk.content_hash
            seen = self._fingerprints[chunk.source].setdefault(chunk.document_id, set())
            seen.add(chunk.fingerprint)

    def _is_as_before(self, source: SourceConfig, indexed: IndexedSource) -> bool:
        return indexed.digest != "" and indexed.digest == digest_source(source, self._reader.limits)

    def _write(self, writer: CollectionWriter, changed: Iterator[Chunk]) -> None:
        """Write what changed and drop what vanished; nothing at all where nothing did."""
        written = 0
        for chunks, vectors in self._with_vectors(changed):
            writer.put(chunks, vectors)
            written += len(chunks)
            for chunk in chunks:
                self._report_of(chunk.source).written += 1
            self._step()
        self._check_rebuild()
        unread = sum(source.chunks for source in self._unread.values())
        if not written and not unread and self._stored_ids() <= self._dropped:
            raise CollectionMissing(self._why_nothing())
        if written or self._dropped or self._unfinished:
            writer.finish(self._dropped)
            self._collection.load()
        self._collection.save_indexed_sources(self._indexed())
        if self._embedder is not None:
            self._measure(self._embedder)

    def _indexed(self) -> dict[str, IndexedSource]:
        """What this run leaves of every source that has something in the collection."""
        return {
            report.name: IndexedSource(
                digest="" if report.refused else self._digests[report.name],
                files=report.expected,
                documents=report.documents,
                chunks=report.chunks,
            )
            for report in self.reports
            if report.name in self._digests or report.kept
        }

    def _measure(self, embedder: ChunkEmbedder) -> None:
        """Find out how far the vectors can be trusted, where that is not known yet; it can wait."""
        manifest = self._collection.stored_manifest()
        if manifest is None or not is_calibration_due(manifest):
            return
        try:
            self._collection.load()
            self._collection.save_calibration(calibrate_routes(self._collection, embedder))
        except ModelError as error:
            log.warning("the next run will measure the embeddings: %s", error)

    def _with_vectors(
        self, chunks: Iterator[Chunk]
    ) -> Iterator[tuple[list[Chunk], list[Vector] | None]]:
        if self._embedder is not None:
            yield from self._embedder.embed(chunks)
        else:
            yield from ((batch, None) for batch in batches(chunks))

    def _changed(self, sources: Iterable[SourceConfig]) -> Iterator[Chunk]:
        """The chunks to write; on the way everything is counted, and what vanished is found."""
        names = set()
        for source in sources:
            names.add(source.name)
            if source.name in self._unread:
                self._pass_over(self._unread[source.name], source.name)
            else:
                yield from self._of_source(source)
        for name in sorted(self._stored.keys() - names):
            report = SourceReport(name=name, expected=0)
            self.reports.append(report)
            self._delete_vanished(report, set())

    def _pass_over(self, indexed: IndexedSource, name: str) -> None:
        """Report a source that is not read."""
        report = SourceReport(
            name=name,
            expected=indexed.files,
            documents=indexed.documents,
            unchanged=indexed.documents,
            chunks=indexed.chunks,
        )
        self.reports.append(report)
        self._digests[name] = indexed.digest
        self._step()

    def _of_source(self, source: SourceConfig) -> Iterator[Chunk]:
        report = SourceReport(name=source.name)
        self.reports.append(report)
        seen: set[str] = set()
        fingerprints: list[str] = []
        try:
            report.expected = count_files(source)
            for found in read_source(source, self._reader.limits, self._known(source.name)):
                match found:
                    case SourceDocument():
                        seen.add(found.id)
                        fingerprints.append(found.fingerprint)
                        yield from self._of_document(report, found)
                    case UnchangedFile():
                        seen |= found.ids
                        fingerprints.append(found.fingerprint)
                        self._count_unchanged(report, found)
                    case SourceError():
                        report.refused.append(str(found))
                self._step()
        except SourceError as error:
            report.refused.append(str(error))
        self._digests[source.name] = combine_fingerprints(fingerprints)
        self._delete_vanished(report, seen)

    def _known(self, source: str) -> KnownFiles:
        """The documents that need not be read again.

        None where everything is made anew, or where the last run died and may have written a part
        of a document. A chunk that stayed as it was keeps the fingerprint of an earlier file: then
        the document is read again, which costs time and nothing else.
        """
        if self._options.rebuild or self._unfinished:
            return {}
        known: dict[str, set[str]] = defaultdict(set)
        for document, fingerprints in self._fingerprints[source].items():
            if len(fingerprints) == 1:
                known[next(iter(fingerprints))].add(document)
        return {fingerprint: frozenset(ids) for fingerprint, ids in known.items() if fingerprint}

    def _count_unchanged(self, report: SourceReport, found: UnchangedFile) -> None:
        report.documents += len(found.ids)
        report.unchanged += len(found.ids)
        report.chunks += sum(len(self._stored[report.name][document]) for document in found.ids)

    def _of_document(self, report: SourceReport, document: SourceDocument) -> Iterator[Chunk]:
        before = self._stored[document.source].get(document.id, {})
        now = list(chunk_document(document, self._reader.chunk_tokens))
        changed = [chunk for chunk in now if before.get(chunk.id) != chunk.content_hash]
        gone = before.keys() - {chunk.id for chunk in now}
        self._dropped |= gone
        report.documents += 1
        report.chunks += len(now)
        if not before:
            report.added += 1
        elif changed or gone:
            report.changed += 1
        else:
            report.unchanged += 1
        yield from now if self._options.rebuild else changed

    def _delete_vanished(self, report: SourceReport, seen: set[str]) -> None:
        """Drop the documents of a source that were not seen, where that can be believed."""
        stored = self._stored.get(report.name, {})
        vanished = stored.keys() - seen
        if not vanished:
            return
        if report.refused:
            # Any of them may be one that could not be read.
            report.kept = len(vanished)
        elif len(vanished) > MOST_VANISHED * len(stored) and not self._options.allow_deletes:
            report.kept = len(vanished)
            report.refused.append(
                f"{len(vanished)} of {len(stored)} documents have vanished and are kept: "
                "if that is meant, run `apidesk ingest --allow-deletes`"
            )
        else:
            report.deleted = len(vanished)
            for document in vanished:
                self._dropped |= stored[document].keys()

    def _check_rebuild(self) -> None:
        """A rebuild holds what was read and nothing else: refuse to lose what should have stayed."""
        kept = {report.name: report.kept for report in self.reports if report.kept}
        if kept and self._options.rebuild and not self._options.allow_deletes:
            named = ", ".join(f"{count} of {name}" for name, count in kept.items())
            raise DeletionsRefused(
                f"the rebuild would lose documents that could not be found or read ({named}); "
                "the collection stays as it was: mend them, or pass --allow-deletes"
            )

    def _why_nothing(self) -> str:
        refused = [f"{r.name}: {line}" for r in self.reports for line in r.refused]
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        return "the sources hold no document" + (f": {refused[0]}{more}" if refused else "")

    def _stored_ids(self) -> set[str]:
        documents = (document for source in self._stored.values() for document in source.values())
        return {chunk_id for document in documents for chunk_id in document}

    def _report_of(self, source: str) -> SourceReport:
        return next(report for report in self.reports if report.name == source)
