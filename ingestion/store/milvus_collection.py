"""A collection on a Milvus server: connects to it, checks its manifest and opens its writers.

Its base class `MilvusReader` searches and reads it.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

from ingestion.store.catalogue import drop_leftovers, words_name
from ingestion.store.client import is_lite, literal, milvus_errors, open_milvus, row_pages
from ingestion.store.collection import WARM_UP_QUESTION, CollectionWriter, StoredChunk, loaded
from ingestion.store.manifest import (
    CollectionManifest,
    IndexedSource,
    RouteCalibration,
    collection_version,
    expected_manifest,
    read_manifest,
    read_sources,
    write_manifest,
    write_sources,
)
from ingestion.store.milvus_reader import MilvusReader
from ingestion.store.milvus_writers import InPlaceWriter, NextCollectionWriter
from schemas.errors import CollectionMissing
from schemas.settings import Settings

if TYPE_CHECKING:
    from pymilvus import MilvusClient


class MilvusCollection(MilvusReader):
    """The collection that a Milvus alias points to."""

    def __init__(
        self, client: "MilvusClient", alias: str, expected: CollectionManifest, in_place: bool
    ) -> None:
        """Initialise the collection; `load` must be called before searching.

        `expected` is the manifest of a collection that is created with the current settings. If
        `in_place` is true, runs update rows; otherwise each run writes a new collection.
        """
        super().__init__(client, alias, expected)
        self._in_place = in_place

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Connect to the server in `settings`. Raises StoreUnavailable."""
        client = open_milvus(settings)
        lite = settings.embedded or is_lite(client)
        expected = expected_manifest(settings, "standard" if lite else "whitespace")
        return cls(client, settings.collection, expected, in_place=not lite)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def exists(self) -> bool:
        """Return whether anything has been indexed under this alias."""
        with milvus_errors():
            return bool(self._client.has_collection(self._alias))

    def load(self) -> None:
        """Load the collection for searching and run one query to warm it up.

        Raises CollectionMissing if there is none or its rows are lost, and CollectionMismatch if it was
        created with other settings.
        """
        with self._reloader.exclusive_load():
            if not self._client.has_collection(self._alias):
                self._manifest = None
                loaded(None)
            version = collection_version(self._client, self._alias)
            manifest = read_manifest(self._client, self._alias)
            self._check_manifest(manifest)
            self._client.load_collection(self._alias)
            self._client.load_collection(words_name(self._alias))
            self._check_rows(manifest)
            self._manifest = manifest
            self._clear_caches()
            self._reloader.mark_loaded(version)
            self.search(WARM_UP_QUESTION, 1, "full_text")

    def stored_manifest(self) -> CollectionManifest | None:
        """Return the stored manifest without comparing it to the settings; None without a collection.

        Raises CollectionMismatch if apidesk did not create the collection.
        """
        with milvus_errors():
            return read_manifest(self._client, self._alias) if self.exists() else None

    def save_calibration(self, calibration: RouteCalibration) -> None:
        """Store the calibration of the routes in the manifest."""
        manifest = self.manifest.model_copy(update={"calibration": calibration})
        with milvus_errors():
            name = self._client.describe_alias(self._alias)["collection_name"]
            write_manifest(self._client, name, manifest)
        self._manifest = manifest

    def indexed_sources(self) -> dict[str, IndexedSource]:
        """Return the state of every source after the last run; empty if that run was incomplete.

        Raises CollectionMismatch if apidesk did not create the collection.
        """
        with milvus_errors():
            if not self._client.has_collection(self._alias):
                return {}
            manifest = read_manifest(self._client, self._alias)
            if manifest.incomplete or self._is_damaged(manifest):
                return {}
            return read_sources(self._client, self._alias)

    def save_indexed_sources(self, sources: dict[str, IndexedSource]) -> None:
        """Store the state of every source after this run."""
        with milvus_errors():
            if sources != read_sources(self._client, self._alias):
                write_sources(self._client, self._alias, sources)

    def stored_chunks(self, excluded_sources: Sequence[str] = ()) -> Iterator[StoredChunk]:
        """Yield every stored chunk except those of `excluded_sources`.

        The settings may differ from those that the collection was created with.
        Raises CollectionMismatch if apidesk did not create the collection.
        """
        with milvus_errors():
            if not self._client.has_collection(self._alias):
                return
            read_manifest(self._client, self._alias)
            self._client.load_collection(self._alias)
            expression = f"source not in {literal(excluded_sources)}" if excluded_sources else ""
            for page in row_pages(self._client, self._alias, list(StoredChunk._fields), expression):
                yield from (StoredChunk(**row) for row in page)

    def recover(self, rebuild: bool) -> None:
        """Drop the collections of interrupted runs."""
        with milvus_errors():
            if self._client.has_collection(self._alias):
                read_manifest(self._client, self._alias)
            drop_leftovers(self._client, self._alias)

    def writer(self, rebuild: bool) -> CollectionWriter:
        """Return the writer of one run. Unless `rebuild` is true, give it only new and changed chunks.

        Raises CollectionMismatch if apidesk did not create the collection. Without `rebuild`, also
        raises CollectionMismatch if the collection was created with other settings.
        """
        with milvus_errors():
            stored = None
            if self._client.has_collection(self._alias):
                stored = read_manifest(self._client, self._alias)
                if not rebuild:
                    self._check_manifest(stored)
            if stored is not None and self._is_damaged(stored):
                stored = None
        if stored is not None and self._in_place and not rebuild:
            return InPlaceWriter(self._client, self._alias, stored)
        previous = None if rebuild else stored
        return NextCollectionWriter(self._client, self._alias, self._expected, previous)

    def _check_rows(self, manifest: CollectionManifest) -> None:
        if self._is_damaged(manifest):
            raise CollectionMissing(
                f"the collection {self._alias} is damaged ({manifest.rows} rows were written, none "
                "are left): run `apidesk ingest`"
            )

    def _is_damaged(self, manifest: CollectionManifest) -> bool:
        """Return whether the rows are lost. A damaged embedded store opens as an empty one."""
        rows = int(self._client.get_collection_stats(self._alias)["row_count"])
        return bool(manifest.rows) and not rows
