"""What a collection is made of: its contract, its fields, and chunks as rows of it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ingestion.chunking import CHUNKER_VERSION
from ingestion.words import search_text
from schemas.document import Chunk
from schemas.settings import Settings
from schemas.wire import WireModel

if TYPE_CHECKING:
    from pymilvus import CollectionSchema, MilvusClient

Vector = list[float]
Row = dict[str, Any]

CONTRACT_PROPERTY = "apidesk.contract"
"""The property of a collection that holds its contract."""

CHUNK_FIELDS = list(Chunk.model_fields)
"""The fields of a row that a chunk is read back from."""

TEXT_BYTES = 65_000
"""A Milvus text field holds 65,535 bytes."""

WORD_BYTES = 1_024

_ANALYZER = {"tokenizer": "jieba", "filter": [{"type": "stop", "stop_words": [" "]}]}


class Contract(WireModel):
    """What made a collection; a desk with other settings must not search it."""

    embedding_model: str = ""
    metric: str = "COSINE"
    analyzer: str = "jieba+porter2+joined/2"
    chunker: str
    rows: int = 0
    words: int = 0
    """Words in all chunks together."""

    def difference(self, other: "Contract") -> str:
        """In which settings the two differ, in words; empty when they agree."""
        names = ("embedding_model", "metric", "analyzer", "chunker")
        return ", ".join(
            f"{name} {getattr(self, name) or 'none'!s} instead of {getattr(other, name) or 'none'!s}"
            for name in names
            if getattr(self, name) != getattr(other, name)
        )


def expected_contract(settings: Settings) -> Contract:
    """The contract of a collection that `settings` would make."""
    return Contract(
        embedding_model=settings.embedding_model or "",
        chunker=f"{CHUNKER_VERSION}/{settings.chunk_tokens}",
    )


def create_chunks(client: "MilvusClient", name: str, dimension: int | None) -> None:
    """Create the collection `name` for chunks, with vectors of `dimension` if there are any."""
    index = client.prepare_index_params()
    index.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    if dimension:
        index.add_index("dense", index_type="AUTOINDEX", metric_type="COSINE")
    client.create_collection(name, schema=_chunk_schema(client, dimension), index_params=index)


def create_words(client: "MilvusClient", name: str) -> None:
    """Create the collection `name` for the vocabulary."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("word", DataType.VARCHAR, is_primary=True, max_length=WORD_BYTES)
    schema.add_field("occurrences", DataType.INT64)
    # Milvus has no collection without a vector; nobody searches this one.
    schema.add_field("unused", DataType.FLOAT_VECTOR, dim=2)
    index = client.prepare_index_params()
    index.add_index("unused", index_type="AUTOINDEX", metric_type="COSINE")
    client.create_collection(name, schema=schema, index_params=index)


def chunk_rows(chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> list[Row]:
    """`chunks` as rows, each with its vector if there are any."""
    if vectors is None:
        return [_row(chunk) for chunk in chunks]
    return [_row(c) | {"dense": v} for c, v in zip(chunks, vectors, strict=True)]


def word_rows(counts: Counter[str]) -> Iterator[Row]:
    """The vocabulary as rows."""
    for word, count in counts.items():
        if len(word.encode()) <= WORD_BYTES:
            yield {"word": word, "occurrences": count, "unused": [0.0, 0.0]}


def chunk_of(row: Row) -> Chunk:
    """The chunk that a row of the collection holds."""
    return Chunk.model_validate({name: row[name] for name in CHUNK_FIELDS})


def embedded_text(chunk: Chunk) -> str:
    """What of a chunk is embedded and indexed: where it stands, then what it says."""
    where = " > ".join(part for part in (chunk.title, chunk.section) if part)
    return f"{where}\n{chunk.api_url}\n{chunk.body}" if chunk.api_url else f"{where}\n{chunk.body}"


def _row(chunk: Chunk) -> Row:
    indexed = search_text(embedded_text(chunk)).encode()[:TEXT_BYTES].decode(errors="ignore")
    return chunk.model_dump() | {"search_text": indexed}


def _chunk_schema(client: "MilvusClient", dimension: int | None) -> "CollectionSchema":
    from pymilvus import DataType, Function, FunctionType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
    for name in ("source", "document_id", "title", "section", "kind", "language", "content_hash",
                 "service_id", "api_id", "api_name", "api_url", "page_url"):  # fmt: skip
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
        analyzer_params=_ANALYZER,
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
