"""Reads and writes the manifest and other state of a Milvus collection, which are stored as its properties.

The manifest contains the settings with which the collection was created, such as the embedding model.
"""

import time
from typing import TYPE_CHECKING

from pydantic import ConfigDict, Field, ValidationError

from ingestion.chunking import CHUNKER_VERSION
from schemas.base import ApiModel
from schemas.errors import CollectionMismatch
from schemas.settings import Settings

if TYPE_CHECKING:
    from pymilvus import MilvusClient

MANIFEST_PROPERTY = "apidesk.contract"
"""Property of a collection that contains its manifest as JSON."""

CATALOGUE_PROPERTY = "apidesk.catalogue"
"""Property of a collection that contains a token, which changes with each write of the catalogue.

The function `catalogue_version` returns the token.
"""

SOURCES_PROPERTY = "apidesk.sources"
"""Property of a collection that contains its IndexedSources as JSON."""

WORDS_VERSION = 7
"""Version of the rules by which text is split into indexed words, and words are weighted.

Increment it with every change of these rules.
"""

CATALOGUE_VERSION = 1
"""Version of the catalogue's format, the first part of the token in `CATALOGUE_PROPERTY`.

Increment it with every change of the format. The next run then rebuilds the catalogue.
"""


class _StoredModel(ApiModel):
    """A model that is stored as JSON: in a property of a Milvus collection, or in a snapshot (snapshot.py).

    The stored key of a field is its alias or, without one, its name. Do not change these keys.
    """

    model_config = ConfigDict(alias_generator=None)


class RouteCalibration(_StoredModel):
    """Mean reciprocal rank of each search route, from 0 to 1.

    The queries are sentences from the collection; see `route_calibration.py`.
    """

    full_text: float
    dense: float
    rows: int
    """Number of chunks in the collection when it was calibrated."""


class IndexedSource(_StoredModel):
    """State of a source after the last run."""

    digest: str
    """Digest of the source's files; empty if the next run must read the source again."""
    files: int | None
    """Number of files; None if it is unknown before reading, as for a web site."""
    documents: int
    chunks: int
    empty: list[str] = Field(default_factory=list)
    """Files without a body."""
    refused: list[str] = Field(default_factory=list)
    """Why files were refused."""


class IndexedSources(_StoredModel):
    """State of every source in a collection, as stored in `SOURCES_PROPERTY`."""

    catalogue_version: str = Field(alias="stamp")
    """The token in `CATALOGUE_PROPERTY` when the state was stored; a new token makes the state obsolete."""
    sources: dict[str, IndexedSource]


class CollectionManifest(_StoredModel):
    """The settings with which a collection was created and must be searched, and counts of its contents."""

    embedding_model: str = ""
    embedding_chars: int | None = None
    metric: str = "COSINE"
    analyzer: str
    """The tokenizer of the indexed words and `WORDS_VERSION`, joined by `/`."""
    chunker: str
    """`CHUNKER_VERSION` and the setting `chunk_tokens`, joined by `/`."""
    rows: int = 0
    """Number of chunks."""
    words: int = 0
    """Number of words in all chunks."""
    calibration: RouteCalibration | None = Field(None, alias="reliability")
    """None without an embedding model or before the first calibration."""
    incomplete: bool = Field(False, alias="unfinished")
    """Whether an in-place write was interrupted, or there is no catalogue of the current format.

    In-place writes are those of `InPlaceWriter` (milvus_writers.py). If the manifest is incomplete, the
    next run reads every source again, counts all words and rebuilds the catalogue.
    """

    def difference(self, other: "CollectionManifest") -> str:
        """Return how the settings differ, such as `chunker 3/500 instead of 3/400`; empty if equal."""
        names = ("embedding_model", "embedding_chars", "metric", "analyzer", "chunker")
        return ", ".join(
            f"{name} {getattr(self, name) or 'none'} instead of {getattr(other, name) or 'none'}"
            for name in names
            if getattr(self, name) != getattr(other, name)
        )

    @property
    def tokenizer(self) -> str:
        """The tokenizer of the indexed words; see `expected_manifest`."""
        return self.analyzer.partition("/")[0]


def expected_manifest(settings: Settings, tokenizer: str) -> CollectionManifest:
    """Return the manifest of a collection created with `settings`. Its counts are 0.

    `tokenizer` names the tokenizer of the indexed text. Embedded collections, which are local files, have
    `apidesk`. Collections on a Milvus server have `whitespace`. If the server is Milvus Lite in a process
    of its own, they have `standard`, because it supports no other tokenizer.
    """
    return CollectionManifest(
        embedding_model=settings.embedding_model or "",
        embedding_chars=settings.embedding_chars if settings.embedding_model else None,
        analyzer=f"{tokenizer}/{WORDS_VERSION}",
        chunker=f"{CHUNKER_VERSION}/{settings.chunk_tokens}",
    )


def check_manifest(alias: str, stored: CollectionManifest, expected: CollectionManifest) -> None:
    """Raise CollectionMismatch if the settings in `stored` differ from those in `expected`.

    `alias` names the collection in the message.
    """
    if difference := stored.difference(expected):
        raise CollectionMismatch(
            f"the collection {alias} was made with {difference}: "
            "run `apidesk ingest --rebuild` to rebuild it"
        )


def read_manifest(client: "MilvusClient", name: str) -> CollectionManifest:
    """Return the manifest of the collection `name`.

    Raises CollectionMismatch if apidesk did not create the collection.
    """
    properties = _properties(client, name)
    if MANIFEST_PROPERTY not in properties:
        raise CollectionMismatch(
            f"the collection {name} was not made by apidesk: choose another APIDESK_COLLECTION"
        )
    manifest = CollectionManifest.model_validate_json(properties[MANIFEST_PROPERTY])
    incomplete = manifest.incomplete or not _catalogue_version(properties)
    return manifest.model_copy(update={"incomplete": incomplete})


def write_manifest(client: "MilvusClient", name: str, manifest: CollectionManifest) -> None:
    """Store `manifest` in the collection `name`."""
    client.alter_collection_properties(name, properties={MANIFEST_PROPERTY: _json(manifest)})


def write_finished_manifest(
    client: "MilvusClient", name: str, manifest: CollectionManifest
) -> None:
    """Store `manifest` in the collection `name`, and change the token in `CATALOGUE_PROPERTY`."""
    version = f"{CATALOGUE_VERSION}/{time.time_ns()}"
    client.alter_collection_properties(
        name, properties={MANIFEST_PROPERTY: _json(manifest), CATALOGUE_PROPERTY: version}
    )


def read_sources(client: "MilvusClient", name: str) -> dict[str, IndexedSource]:
    """Return the state of each source in the collection `name`, by source name.

    The result is empty if no state was stored since the last write of the collection.
    """
    properties = _properties(client, name)
    try:
        indexed = IndexedSources.model_validate_json(properties.get(SOURCES_PROPERTY, ""))
    except ValidationError:  # never written, or written by another version
        return {}
    is_current = indexed.catalogue_version == _catalogue_version(properties)
    return indexed.sources if is_current else {}


def write_sources(client: "MilvusClient", name: str, sources: dict[str, IndexedSource]) -> None:
    """Store the state of each source, with the catalogue version of the collection `name`."""
    indexed = IndexedSources(catalogue_version=catalogue_version(client, name), sources=sources)
    client.alter_collection_properties(name, properties={SOURCES_PROPERTY: _json(indexed)})


def collection_version(client: "MilvusClient", name: str) -> str:
    """Return a token that changes when a run writes the collection, or when the alias `name` moves."""
    description = client.describe_collection(name)
    properties = description.get("properties") or {}
    written = [properties.get(key, "") for key in (MANIFEST_PROPERTY, CATALOGUE_PROPERTY)]
    return "\n".join([str(description.get("collection_id", "")), *written])


def catalogue_version(client: "MilvusClient", name: str) -> str:
    """Return a token that changes when the catalogue of the collection `name` is written.

    The token is empty if there is no catalogue of the current format.
    """
    return _catalogue_version(_properties(client, name))


def _catalogue_version(properties: dict[str, str]) -> str:
    version = properties.get(CATALOGUE_PROPERTY, "")
    return version if version.startswith(f"{CATALOGUE_VERSION}/") else ""


def _properties(client: "MilvusClient", name: str) -> dict[str, str]:
    return client.describe_collection(name).get("properties") or {}


def _json(model: _StoredModel) -> str:
    return model.model_dump_json(by_alias=True)
