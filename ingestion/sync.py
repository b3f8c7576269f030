"""Updates a collection to match its sources.

Documents are streamed, not collected in memory. Each document is read and split into chunks. Chunks that
are new, or whose content hash has changed, are embedded and written in batches. A source is skipped if all
of its files are the same as in the last run.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from ingestion.embeddings import ChunkEmbedder
from ingestion.route_calibration import calibrate_routes, is_calibration_due
from ingestion.source_reading import MAX_VANISHED_SHARE, ReadContext, ReadOptions, SourceReading
from ingestion.sources.registry import digest_source
from ingestion.store.catalogue import DocumentKey
from ingestion.store.client import batches
from ingestion.store.collection import Collection, CollectionWriter
from ingestion.store.manifest import IndexedSource
from ingestion.store.schema import Vector
from ingestion.stored_documents import StoredDocuments
from ingestion.worker_processes import WorkerProcesses
from schemas.document import Chunk
from schemas.errors import CollectionMissing, ConfigurationError, DeletionsRefused, ModelError
from schemas.ingestion import IngestionOptions, SourceReport
from schemas.platform import SourceConfig

log = logging.getLogger(__name__)


class Sync:
    """One update of a collection from its sources.

    `reports` has a report per source and is updated during `run`. `on_progress` is called regularly, for
    example after each file and each written batch. An error that `on_progress` raises ends the run.
    """

    def __init__(
        self,
        collection: Collection,
        embedder: ChunkEmbedder | None,
        read_options: ReadOptions,
        options: IngestionOptions,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self.reports: list[SourceReport] = []
        self._collection = collection
        self._embedder = embedder
        self._read_options = read_options
        self._options = options
        self._on_progress = on_progress
        self._workers = WorkerProcesses(read_options.chunk_tokens)
        self._stored = StoredDocuments()
        self._unchanged_sources: dict[str, IndexedSource] = {}
        """Sources whose files are the same as in the last run."""
        self._digests: dict[str, str] = {}
        """Digest of the files of each configured source; empty if the next run must read them again."""
        self._dropped_ids: set[str] = set()
        """Ids of the stored chunks to delete."""
        self._new_fingerprints: dict[DocumentKey, str] = {}
        """Fingerprints to store for documents with unchanged chunks (see `SourceReading`)."""
        self._was_interrupted = False
        """Whether the stored manifest is `incomplete`, for example because the last run died.

        The manifest (`CollectionManifest`) has the settings with which the collection was created.
        """

    def run(self, sources: Sequence[SourceConfig], platform: str = "platform.toml") -> None:
        """Update the collection to match `sources`; a dry run only fills `reports`.

        `platform` is the name of the file with the sources, for an error message. Raises ApideskError. An
        error leaves a collection that can be searched, and the next run completes the update.
        """
        if not self._options.dry_run:
            self._collection.recover(self._options.rebuild)
        if not self._options.rebuild:
            self._collection.check()
        manifest = self._collection.stored_manifest()
        self._was_interrupted = manifest is not None and manifest.incomplete
        self._read_stored(sources)
        self._check_sources(sources, platform)
        with self._workers:
            if self._options.dry_run:
                for _ in self._changed_chunks(sources):
                    pass
                return
            writer = self._collection.writer(self._options.rebuild)
            try:
                self._write(writer, self._changed_chunks(sources))
            except BaseException:
                writer.abandon()
                raise

    def _read_stored(self, sources: Sequence[SourceConfig]) -> None:
        """Find the unchanged sources, and read the stored chunks of all other sources."""
        indexed = {} if self._options.rebuild else self._collection.indexed_sources()
        self._unchanged_sources = {
            source.name: indexed[source.name]
            for source in sources
            if source.name in indexed and self._is_unchanged(source, indexed[source.name])
        }
        if indexed and indexed.keys() == self._unchanged_sources.keys():
            return  # every stored source is unchanged
        for chunk in self._collection.stored_chunks(excluded_sources=list(self._unchanged_sources)):
            self._stored.add(chunk)

    def _check_sources(self, sources: Sequence[SourceConfig], platform: str) -> None:
        """Raise ConfigurationError if documents are stored, but none of them is from one of `sources`.

        The stored documents probably belong to another platform. With `allow_deletes`, no error is raised
        and this run deletes them.
        """
        if self._unchanged_sources or self._options.allow_deletes:
            return
        stored = self._stored.sources()
        if stored and stored.isdisjoint(source.name for source in sources):
            raise foreign_documents_error(stored, platform)

    def _is_unchanged(self, source: SourceConfig, indexed: IndexedSource) -> bool:
        if not indexed.digest:
            return False
        return indexed.digest == digest_source(source, self._read_options.limits)

    def _write(self, writer: CollectionWriter, changed: Iterator[Chunk]) -> None:
        """Write the changed chunks, delete the dropped ones, and store the state of the sources.

        Raises DeletionsRefused, and CollectionMissing if the collection would be empty.
        """
        written = 0
        for chunks, vectors in self._with_vectors(changed):
            writer.put(chunks, vectors)
            written += len(chunks)
            for chunk in chunks:
                self._report(chunk.source).written += 1
            self._on_progress()
        self._check_rebuild()
        skipped = sum(source.chunks for source in self._unchanged_sources.values())
        has_remaining = skipped > 0 or not self._stored.chunk_ids() <= self._dropped_ids
        if not written and (self._options.rebuild or not has_remaining):
            raise CollectionMissing(self._empty_message())
        if written or self._dropped_ids or self._was_interrupted:
            writer.finish(self._dropped_ids)
            self._collection.load()
        self._collection.save_fingerprints(self._new_fingerprints)
        self._collection.save_indexed_sources(self._indexed_sources())
        if self._embedder is not None:
            self._calibrate(self._embedder)

    def _indexed_sources(self) -> dict[str, IndexedSource]:
        """Return the state of each configured source, and of removed sources whose documents are kept."""
        return {
            report.name: IndexedSource(
                digest="" if report.kept else self._digests[report.name],
                files=report.expected,
                documents=report.documents,
                chunks=report.chunks,
                empty=report.empty,
                refused=report.refused,
            )
            for report in self.reports
            if report.name in self._digests or report.kept
        }

    def _calibrate(self, embedder: ChunkEmbedder) -> None:
        """Calibrate full-text and dense search if that is due. If the model fails, the next run retries."""
        manifest = self._collection.stored_manifest()
        if manifest is None or not is_calibration_due(manifest):
            return
        try:
            self._collection.load()
            self._collection.save_calibration(calibrate_routes(self._collection, embedder))
        except ModelError as error:
            log.warning(
                "the weights of full-text and dense search could not be measured (%s); "
                "the next run tries again",
                error,
            )

    def _with_vectors(
        self, chunks: Iterator[Chunk]
    ) -> Iterator[tuple[list[Chunk], list[Vector] | None]]:
        if self._embedder is not None:
            yield from self._embedder.embed(chunks)
        else:
            yield from ((batch, None) for batch in batches(chunks))

    def _changed_chunks(self, sources: Iterable[SourceConfig]) -> Iterator[Chunk]:
        """Yield the chunks to write. After the last one, the reports and `_dropped_ids` are complete."""
        names = set()
        for source in sources:
            names.add(source.name)
            if source.name in self._unchanged_sources:
                self._skip_source(source.name, self._unchanged_sources[source.name])
            else:
                yield from self._source_chunks(source)
        for name in sorted(self._stored.sources() - names):
            # `expected` is 0 only for sources that were removed from platform.toml.
            report = SourceReport(name=name, expected=0)
            self.reports.append(report)
            self._drop_vanished(report, set())

    def _skip_source(self, name: str, indexed: IndexedSource) -> None:
        """Report an unchanged source without reading it."""
        report = SourceReport(
            name=name,
            expected=indexed.files,
            documents=indexed.documents,
            unchanged=indexed.documents,
            chunks=indexed.chunks,
            empty=indexed.empty,
            refused=list(indexed.refused),
        )
        self.reports.append(report)
        self._digests[name] = indexed.digest
        self._on_progress()

    def _source_chunks(self, source: SourceConfig) -> Iterator[Chunk]:
        """Read `source` and add its report. Yield its chunks to write."""
        context = ReadContext(
            self._collection,
            self._stored,
            self._was_interrupted,
            self._workers,
            self._read_options,
            self._options,
            self._on_progress,
        )
        reading = SourceReading(source, context)
        self.reports.append(reading.report)
        yield from reading.changed_chunks()
        self._dropped_ids |= reading.dropped_ids
        self._new_fingerprints |= reading.new_fingerprints
        self._digests[source.name] = reading.digest
        self._drop_vanished(reading.report, reading.seen_ids)

    def _drop_vanished(self, report: SourceReport, seen_ids: set[str]) -> None:
        """Drop the stored documents that were not seen in the source, or report them as kept.

        A rebuild with `allow_deletes` drops all of them, because a new collection cannot keep them.
        """
        stored_ids = self._stored.document_ids(report.name)
        vanished = stored_ids - seen_ids
        if not vanished:
            return
        if report.refused and not (self._options.rebuild and self._options.allow_deletes):
            # A document that seems to have vanished may be one that could not be read.
            report.kept = len(vanished)
            return
        too_many = len(vanished) > MAX_VANISHED_SHARE * len(stored_ids)
        if too_many and not self._options.allow_deletes:
            report.kept = len(vanished)
            report.refused.append(_vanished_line(report, len(stored_ids)))
            return
        report.deleted = len(vanished)
        for document_id in vanished:
            self._dropped_ids |= self._stored.chunk_hashes(report.name, document_id).keys()

    def _check_rebuild(self) -> None:
        """Raise DeletionsRefused if this is a rebuild and documents are reported as kept."""
        kept = {report.name: report.kept for report in self.reports if report.kept}
        if kept and self._options.rebuild:
            counts = ", ".join(f"{count} of {name}" for name, count in kept.items())
            raise DeletionsRefused(
                f"the rebuild would lose documents that could not be found or read ({counts}); "
                "the collection is unchanged: fix the sources, or pass --allow-deletes"
            )

    def _empty_message(self) -> str:
        refused = [
            line if line.startswith(f"{report.name}: ") else f"{report.name}: {line}"
            for report in self.reports
            for line in report.refused
        ]
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        return "the sources contain no documents" + (f": {refused[0]}{more}" if refused else "")

    def _report(self, source: str) -> SourceReport:
        return next(report for report in self.reports if report.name == source)


def _vanished_line(report: SourceReport, stored: int) -> str:
    """Return the line of the report that says why documents are kept, though they have vanished.

    `stored` is the number of indexed documents. A source in platform.toml without any documents is probably
    faulty. In this case, the line does not suggest deleting the indexed documents.
    """
    is_configured = report.expected != 0
    if is_configured and not report.documents:
        return (
            f"no documents were found, so the {report.kept} indexed ones are kept: check the source"
        )
    return (
        f"{report.kept} of {stored} documents have vanished and are kept: "
        "to delete them, run `apidesk ingest --allow-deletes`"
    )


def foreign_documents_error(sources: Iterable[str], platform: str) -> ConfigurationError:
    """Return the error for stored documents of `sources`, which the file `platform` does not contain."""
    return ConfigurationError(
        f"the store contains documents that are not in the sources of {platform}. They were indexed "
        f"under these source names: {', '.join(sorted(sources))}. Set APIDESK_MILVUS_URI to another store "
        "or APIDESK_PLATFORM to another platform.toml, or run `apidesk ingest --allow-deletes` to delete "
        "them"
    )
