"""What a collection is made of: its contract, its fields, and chunks as rows of it."""

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ingestion.chunking import CHUNKER_VERSION
from ingestion.store.catalogue import ENTRY_FIELDS, CatalogueRow
from ingestion.text.words import stem, vocabulary_words, with_parts
from schemas.base import ApiModel
from schemas.document import Chunk
from schemas.errors import CollectionMismatch
from schemas.settings import Settings

if TYPE_CHECKING:
    from pymilvus import CollectionSchema, MilvusClient
    from pymilvus.milvus_client import IndexParams

Vector = list[float]

MANIFEST_PROPERTY = "apidesk.contract"
"""The property of a collection that holds its contract."""

CATALOGUE_PROPERTY = "apidesk.catalogue"
"""The property of a collection that says which catalogue lies beside it: version and time of writing."""

SOURCES_PROPERTY = "apidesk.sources"
"""The property of a collection that says what of each source was indexed, and as of which writing."""

CATALOGUE_VERSION = 1
"""Raise it when the same chunks would give another catalogue: the next run makes it anew."""

CHUNK_FIELDS = list(Chunk.model_fields)
"""The fields of a row that a chunk is read back from."""

COPIED_FIELDS = [*CHUNK_FIELDS, "search_text"]
"""What a row is copied from, beside its vector; Milvus makes the rest."""

TEXT_BYTES = 65_000
"""A Milvus text field holds 65,535 bytes."""

WORD_BYTES = 1_024

WORDS_VERSION = 4
"""Raise it when the same text would be indexed as other words, or weighed otherwise."""

BM25 = {"bm25_k1": 1.2, "bm25_b": 0.5}
"""Lengths count for less than by default: sections are short by nature. docs/retrieval.md"""


class RouteCalibration(ApiModel):
    """How well each route finds again what the collection holds: mean reciprocal ranks, 0 to 1."""

    full_text: float
    dense: float
    rows: int
    """Rows of the collection when it was measured."""


class IndexedSource(ApiModel):
    """A source as a run left it that could read all of it."""

    digest: str
    """Of everything that was read; empty where something was refused, or can change unseen."""
    files: int | None
    documents: int
    chunks: int


class IndexedSources(ApiModel):
    """What of every source that a collection holds was indexed."""

    stamp: str
    """The `catalogue_stamp` of the collection then: a later writing is not what this is about."""
    sources: dict[str, IndexedSource]


class CollectionManifest(ApiModel):
    """What made a collection; a desk with other settings must not search it."""

    embedding_model: str = ""
    metric: str = "COSINE"
    analyzer: str
    """Milvus's tokenizer, and how we cut the words that we give it between spaces."""
    chunker: str
    rows: int = 0
    words: int = 0
    """Words in all chunks together."""
    reliability: RouteCalibration | None = None
    """None where there is no embedding model, or nothing was measured yet."""
    unfinished: bool = False
    """A run that wrote in place has begun and not ended, or there is no catalogue yet: the next run
    reads everything and completes what is missing.
    """

    def difference(self, other: "CollectionManifest") -> str:
        """In which settings the two differ, in words; empty when they agree."""
        names = ("embedding_model", "metric", "analyzer", "chunker")
        return ", ".join(
            f"{name} {getattr(self, name) or 'none'!s} instead of {getattr(other, name) or 'none'!s}"
            for name in names
            if getattr(self, name) != getattr(other, name)
        )

    @property
    def tokenizer(self) -> str:
        """The tokenizer that Milvus splits our words with."""
        return self.analyzer.partition("/")[0]


def expected_manifest(settings: Settings, *, lite: bool) -> CollectionManifest:
    """The contract of a collection that `settings` would make, in Milvus Lite or in a server."""
    # Both split at spaces; Milvus Lite does not know the second, a server may split Chinese with the first.
    tokenizer = "standard" if lite else "whitespace"
    return CollectionManifest(
        embedding_model=settings.embedding_model or "",
        analyzer=f"{tokenizer}/{WORDS_VERSION}",
        chunker=f"{CHUNKER_VERSION}/{settings.chunk_tokens}",
    )


def read_manifest(client: "MilvusClient", name: str) -> CollectionManifest:
    """The contract of the collection `name`. Raises CollectionMismatch when it is not ours."""
    properties = _properties(client, name)
    if MANIFEST_PROPERTY not in properties:
        raise CollectionMismatch(
            f"the collection {name} was not made by apidesk: choose another APIDESK_COLLECTION"
        )
    contract = CollectionManifest.model_validate_json(properties[MANIFEST_PROPERTY])
    unfinished = contract.unfinished or not _catalogue_stamp(properties)
    return contract.model_copy(update={"unfinished": unfinished})


def write_manifest(client: "MilvusClient", name: str, contract: CollectionManifest) -> None:
    """Make `contract` that of the collection `name`."""
    client.alter_collection_properties(
        name, properties={MANIFEST_PROPERTY: contract.model_dump_json()}
    )


def write_finished_manifest(
    client: "MilvusClient", name: str, contract: CollectionManifest
) -> None:
    """Make `contract` that of the collection `name`, whose catalogue is complete."""
    stamp = f"{CATALOGUE_VERSION}/{time.time_ns()}"
    client.alter_collection_properties(
        name,
        properties={MANIFEST_PROPERTY: contract.model_dump_json(), CATALOGUE_PROPERTY: stamp},
    )


def read_sources(client: "MilvusClient", name: str) -> dict[str, IndexedSource]:
    """What of each source was indexed when the collection `name` was last written; empty where that
    is not known.
    """
    properties = _properties(client, name)
    try:
        found = IndexedSources.model_validate_json(properties.get(SOURCES_PROPERTY, ""))
    except ValidationError:  # never written, or by another version
        return {}
    return found.sources if found.stamp == _catalogue_stamp(properties) else {}


def write_sources(client: "MilvusClient", name: str, sources: dict[str, IndexedSource]) -> None:
    """Keep what of each source is indexed as of the last writing of the collection `name`."""
    indexed = IndexedSources(stamp=catalogue_stamp(client, name), sources=sources)
    client.alter_collection_properties(
        name, properties={SOURCES_PROPERTY: indexed.model_dump_json()}
    )


def collection_state(client: "MilvusClient", name: str) -> str:
    """Another one whenever a run has written the collection `name` or the alias names another one."""
    found = client.describe_collection(name)
    written = found.get("properties") or {}
    ours = [written.get(name, "") for name in (MANIFEST_PROPERTY, CATALOGUE_PROPERTY)]
    return "\n".join([str(found.get("collection_id", "")), *ours])


def catalogue_stamp(client: "MilvusClient", name: str) -> str:
    """Another one whenever the catalogue beside `name` was written; empty where there is none."""
    return _catalogue_stamp(_properties(client, name))


def _catalogue_stamp(properties: dict[str, str]) -> str:
    stamp = properties.get(CATALOGUE_PROPERTY, "")
    return stamp if stamp.startswith(f"{CATALOGUE_VERSION}/") else ""


def _properties(client: "MilvusClient", name: str) -> dict[str, str]:
    return client.describe_collection(name).get("properties") or {}


def words_name(name: str) -> str:
    """The vocabulary's name beside the chunks' collection or alias `name`."""
    return _beside(name, "words")


def catalogue_name(name: str) -> str:
    """The catalogue's name beside the chunks' collection or alias `name`."""
    return _beside(name, "catalogue")


def _beside(name: str, what: str) -> str:
    return re.sub(r"(_\d{19})?$", rf"_{what}\1", name, count=1)


def create_chunks(client: "MilvusClient", name: str, dimension: int | None, tokenizer: str) -> None:
    """Create the collection `name` for chunks, with vectors of `dimension` if there are any."""
    index = client.prepare_index_params()
    index.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=BM25)
    if dimension:
        index.add_index("dense", index_type="AUTOINDEX", metric_type="COSINE")
    _create(client, name, _chunk_schema(client, dimension, tokenizer), index)


def create_words(client: "MilvusClient", name: str) -> None:
    """Create the collection `name` for the vocabulary."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("word", DataType.VARCHAR, is_primary=True, max_length=WORD_BYTES)
    schema.add_field("occurrences", DataType.INT64)
    _create_unsearched(client, name, schema)


def create_catalogue(client: "MilvusClient", name: str) -> None:
    """Create the collection `name` for the catalogue."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
    for field in ENTRY_FIELDS:
        if field != "outline":
            schema.add_field(field, DataType.VARCHAR, max_length=4096)
    schema.add_field("outline", DataType.JSON)
    _create_unsearched(client, name, schema)


def _create_unsearched(client: "MilvusClient", name: str, schema: "CollectionSchema") -> None:
    """Create a collection that is only read: Milvus has none without a vector."""
    from pymilvus import DataType

    schema.add_field("unused", DataType.FLOAT_VECTOR, dim=2)
    index = client.prepare_index_params()
    index.add_index("unused", index_type="FLAT", metric_type="COSINE")
    _create(client, name, schema, index)


def _create(
    client: "MilvusClient", name: str, schema: "CollectionSchema", index: "IndexParams"
) -> None:
    """Create a collection without waiting for the indexes of no row; loading waits for them."""
    client.create_collection(name, schema=schema)
    client.create_index(name, index, sync=False)


def chunk_rows(
    chunks: Sequence[Chunk], words: Sequence[list[str]], vectors: Sequence[Vector] | None
) -> list[CatalogueRow]:
    """`chunks` as rows, each from its `chunk_words` and with its vector if there are any."""
    rows = [_row(chunk, its) for chunk, its in zip(chunks, words, strict=True)]
    if vectors is None:
        return rows
    return [row | {"dense": vector} for row, vector in zip(rows, vectors, strict=True)]


def word_rows(counts: Counter[str]) -> Iterator[CatalogueRow]:
    """The vocabulary as rows."""
    for word, count in counts.items():
        if count > 0 and len(word.encode()) <= WORD_BYTES:
            yield {"word": word, "occurrences": count, "unused": [0.0, 0.0]}


def chunk_of(row: CatalogueRow) -> Chunk:
    """The chunk that a row of the collection holds."""
    return Chunk.model_validate({name: row[name] for name in CHUNK_FIELDS})


def embedded_text(chunk: Chunk) -> str:
    """What of a chunk is embedded and indexed: where it stands, then what it says."""
    where = " > ".join(part for part in (chunk.title, chunk.section) if part)
    return f"{where}\n{chunk.api_url}\n{chunk.body}" if chunk.api_url else f"{where}\n{chunk.body}"


def chunk_words(chunk: Chunk) -> list[str]:
    """The words of what of `chunk` is indexed, as people write them."""
    return vocabulary_words(embedded_text(chunk))


def _row(chunk: Chunk, words: list[str]) -> CatalogueRow:
    # The title's words count twice: what a page is about weighs more than what it mentions.
    weighed = with_parts(map(stem, [*vocabulary_words(chunk.title), *words]))
    indexed = " ".join(weighed).encode()[:TEXT_BYTES].decode(errors="ignore")
    return chunk.model_dump() | {"search_text": indexed}


def _chunk_schema(
    client: "MilvusClient", dimension: int | None, tokenizer: str
) -> "CollectionSchema":
    from pymilvus import DataType, Function, FunctionType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
    for name in ("source", "document_id", "title", "section", "kind", "language",
                 "content_hash", "fingerprint", "service_id", "api_id", "api_name", "api_url",
                 "page_url"):  # fmt: skip
        schema.add_field(name, DataType.VARCHAR, max_length=4096)
    schema.add_field("position", DataType.INT64)
    schema.add_field("metadata", DataType.JSON)
    schema.add_field("body", DataType.VARCHAR, max_length=65_535)
    schema.add_field("text", DataType.VARCHAR, max_length=65_535)
    schema.add_field(
        "search_text",
        DataType.VARCHAR,
        max_length=65_535,
        enable_analyzer=True,
        analyzer_params={"tokenizer": tokenizer},
    )
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(
        Function(
            name="bm25",
            function_type=FunctionType.BM25,
            input_field_names=["search_text"],
            output_field_names=["sparse"],
        )
    )
    if dimension:
        schema.add_field("dense", DataType.FLOAT_VECTOR, dim=dimension)
    return schema
