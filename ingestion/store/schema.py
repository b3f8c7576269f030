"""Creates the Milvus collections, and converts chunks and words to rows and back.

On a Milvus server, a row of the chunk collection has the fields of the chunk, its indexed terms in
`search_text`, and two vectors: `sparse` for BM25, which Milvus computes from `search_text`, and `dense`,
the embedding.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ingestion.store.catalogue import ENTRY_FIELDS, words_name
from ingestion.store.client import MilvusRow, row_pages
from ingestion.text.words import index_terms, vocabulary_words
from schemas.document import Chunk
from schemas.errors import StoreError

if TYPE_CHECKING:
    from pymilvus import CollectionSchema, MilvusClient
    from pymilvus.milvus_client import IndexParams

Vector = list[float]
"""An embedding."""

CHUNK_FIELDS = list(Chunk.model_fields)
"""Fields of a row that make up its chunk."""

COPIED_FIELDS = [*CHUNK_FIELDS, "search_text"]
"""Fields of a row that a run copies from the previous collection.

If there are embeddings, the field `dense` is copied, too.
"""

MAX_FIELD_BYTES = {
    "id": 64,
    **dict.fromkeys(
        ("source", "document_id", "title", "section", "kind", "language", "content_hash",
         "fingerprint", "service_id", "api_id", "api_name", "api_url", "page_url"),
        4_096,
    ),
    "body": 65_535,
    "text": 65_535,
}  # fmt: skip
"""Maximum length of each text field of a chunk in bytes. Milvus refuses longer values."""

MAX_SEARCH_TEXT_BYTES = 65_000
"""Maximum length of the indexed text in bytes. Milvus limits a text field to 65,535 bytes."""

MAX_WORD_BYTES = 1_024
"""Maximum length of a word in the vocabulary, in bytes. The vocabulary omits longer words."""

BM25_PARAMS = {"bm25_k1": 1.2, "bm25_b": 0.5}
"""Parameters of BM25. Length normalisation is weaker than the default because sections are short.

See docs/explanation/retrieval.md.
"""


def create_chunks(client: "MilvusClient", name: str, dimension: int | None, tokenizer: str) -> None:
    """Create the chunk collection `name`.

    `dimension` is the length of the embeddings; None if there are none. `tokenizer` names the Milvus
    tokenizer that splits `search_text` into terms.
    """
    index = client.prepare_index_params()
    # `params` is nested, because pymilvus removes the outer level and Milvus Lite expects the inner one.
    index.add_index(
        "sparse",
        index_type="SPARSE_INVERTED_INDEX",
        metric_type="BM25",
        params={"params": BM25_PARAMS},
    )
    if dimension:
        index.add_index("dense", index_type="AUTOINDEX", metric_type="COSINE")
    _create(client, name, _chunk_schema(client, dimension, tokenizer), index)


def create_backup(client: "MilvusClient", name: str, dimension: int | None) -> None:
    """Create the collection `name` in Milvus Lite, as the backup of a snapshot.

    A snapshot is the SQLite file that searches read. If it is missing, it is restored from the backup (see
    `lite_copy.py`). `dimension` is the length of the embeddings; None if there are none.
    """
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    _add_chunk_fields(schema)
    if not dimension:
        _create_lookup_table(client, name, schema)
        return
    from pymilvus import DataType

    schema.add_field("dense", DataType.FLOAT_VECTOR, dim=dimension)
    index = client.prepare_index_params()
    index.add_index("dense", index_type="FLAT", metric_type="COSINE")
    _create(client, name, schema, index)


def dense_dimension(client: "MilvusClient", name: str) -> int | None:
    """Return the length of the embeddings in the chunk collection `name`; None if it has none."""
    fields = client.describe_collection(name)["fields"]
    return next((field["params"]["dim"] for field in fields if field["name"] == "dense"), None)


def create_words(client: "MilvusClient", name: str) -> None:
    """Create the collection `name` for the vocabulary: how often each word occurs in the chunks."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("word", DataType.VARCHAR, is_primary=True, max_length=MAX_WORD_BYTES)
    schema.add_field("occurrences", DataType.INT64)
    _create_lookup_table(client, name, schema)


def create_catalogue(client: "MilvusClient", name: str) -> None:
    """Create the collection `name` for the catalogue, which has one row per document."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
    for field in ENTRY_FIELDS:
        if field != "outline":
            schema.add_field(field, DataType.VARCHAR, max_length=4096)
    schema.add_field("outline", DataType.JSON)
    _create_lookup_table(client, name, schema)


def chunk_rows(
    chunks: Sequence[Chunk], words: Sequence[list[str]], vectors: Sequence[Vector] | None
) -> list[MilvusRow]:
    """Return `chunks` as rows.

    `words` contains the `chunk_words` of each chunk, and `vectors` its embedding. Without an embedding
    model, `vectors` is None.
    """
    rows = [_chunk_row(*pair) for pair in zip(chunks, words, strict=True)]
    if vectors is None:
        return rows
    return [row | {"dense": vector} for row, vector in zip(rows, vectors, strict=True)]


def check_lengths(chunk: Chunk) -> None:
    """Raise StoreError if a field of `chunk` is longer than Milvus allows."""
    for name, limit in MAX_FIELD_BYTES.items():
        length = len(str(getattr(chunk, name)).encode(errors="replace"))
        if length > limit:
            raise StoreError(
                f"{chunk.source}: {chunk.document_id[:200]}: the {name} of a chunk has {length} bytes, "
                f"more than the limit of {limit}: shorten it in the document"
            )


def chunk_from_row(row: MilvusRow) -> Chunk:
    """Return the chunk in a row of the collection."""
    return Chunk.model_validate({name: row[name] for name in CHUNK_FIELDS})


def searchable_text(chunk: Chunk) -> str:
    """Return the text of `chunk` to embed and index: title, section and API URL, followed by the body."""
    location = " > ".join(part for part in (chunk.title, chunk.section) if part)
    lines = (location, chunk.api_url, chunk.body) if chunk.api_url else (location, chunk.body)
    return "\n".join(lines)


def chunk_words(chunk: Chunk) -> list[str]:
    """Return the words of the indexed text of `chunk`, unstemmed."""
    return vocabulary_words(searchable_text(chunk))


def indexed_terms(chunk: Chunk, words: Sequence[str]) -> list[str]:
    """Return the terms of the full-text index for `chunk`; `words` are its `chunk_words`."""
    # `searchable_text` also contains the title, so the terms of the title count twice: the topic of a page
    # weighs more than a passing mention.
    title = index_terms(chunk.title, vocabulary_words(chunk.title))
    return [*title, *index_terms(searchable_text(chunk), words)]


def word_rows(counts: Mapping[str, int]) -> Iterator[MilvusRow]:
    """Yield a vocabulary row for each word that is not too long. The counts must be positive."""
    for word, count in counts.items():
        if len(word.encode()) <= MAX_WORD_BYTES:
            yield {"word": word, "occurrences": count, "unused": [0.0, 0.0]}


def read_words(client: "MilvusClient", alias: str) -> Counter[str]:
    """Return the word counts in the vocabulary of the chunk collection that `alias` points to."""
    name = words_name(client.describe_alias(alias)["collection_name"])
    client.load_collection(name)
    words = Counter[str]()
    for page in row_pages(client, name, ["word", "occurrences"]):
        words.update({row["word"]: row["occurrences"] for row in page})
    return words


def _chunk_row(chunk: Chunk, words: list[str]) -> MilvusRow:
    search_text = " ".join(indexed_terms(chunk, words))
    search_text = search_text.encode()[:MAX_SEARCH_TEXT_BYTES].decode(errors="ignore")
    return chunk.model_dump() | {"search_text": search_text}


def _chunk_schema(
    client: "MilvusClient", dimension: int | None, tokenizer: str
) -> "CollectionSchema":
    from pymilvus import DataType, Function, FunctionType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    _add_chunk_fields(schema)
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


def _add_chunk_fields(schema: "CollectionSchema") -> None:
    """Add a field for each of `CHUNK_FIELDS`."""
    from pymilvus import DataType

    for name, length in MAX_FIELD_BYTES.items():
        schema.add_field(name, DataType.VARCHAR, is_primary=name == "id", max_length=length)
    schema.add_field("position", DataType.INT64)
    schema.add_field("metadata", DataType.JSON)


def _create_lookup_table(client: "MilvusClient", name: str, schema: "CollectionSchema") -> None:
    """Create a collection that is not searched. Milvus requires a vector field, which is named `unused`."""
    from pymilvus import DataType

    schema.add_field("unused", DataType.FLOAT_VECTOR, dim=2)
    index = client.prepare_index_params()
    index.add_index("unused", index_type="FLAT", metric_type="COSINE")
    _create(client, name, schema, index)


def _create(
    client: "MilvusClient", name: str, schema: "CollectionSchema", index: "IndexParams"
) -> None:
    """Create a collection without waiting for its empty indexes; loading it waits for them."""
    client.create_collection(name, schema=schema)
    client.create_index(name, index, sync=False)
