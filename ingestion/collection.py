"""The Milvus collection of chunks: search, write and swap.

This file and `collection_schema` are the only ones that know Milvus. The collection's name in
Settings is an alias. Writing builds a new collection beside the live one and moves the alias when
it is complete: questions are answered throughout, and a run that dies leaves what was there. Beside
the chunks lies the vocabulary, a second collection that counts every word of them.

Every method blocks; call them in a worker thread.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ingestion.collection_schema import (
    CHUNK_FIELDS,
    CONTRACT_PROPERTY,
    Contract,
    Vector,
    chunk_of,
    chunk_rows,
    create_chunks,
    create_words,
    embedded_text,
    expected_contract,
    word_rows,
)
from ingestion.model_errors import ModelRole
from ingestion.words import query_text, quiet_jieba, vocabulary_words
from schemas.document import Chunk, RetrievedChunk
from schemas.errors import (
    CollectionMismatch,
    CollectionMissing,
    ConfigurationError,
    StoreLocked,
    StoreUnavailable,
)
from schemas.settings import Settings

if TYPE_CHECKING:
    from pymilvus import MilvusClient

T = TypeVar("T")
Embed = Callable[[list[str]], list[Vector]]
Route = Literal["full_text", "dense", "hybrid"]

BATCH = 256
"""Rows a write and texts an embedding call."""

HOUR_MS = 3_600_000


class Collection:
    """A handle on the collection that an alias names."""

    def __init__(self, client: "MilvusClient", alias: str, expected: Contract) -> None:
        self._client = client
        self._alias = alias
        self._expected = expected
        self._contract: Contract | None = None

    @classmethod
    def connect(cls, settings: Settings) -> "Collection":
        """Connect to the store in Settings. Raises StoreLocked or StoreUnavailable."""
        if settings.embedded:
            _make_folder(Path(settings.milvus_uri).parent)
            quiet_jieba()
        return cls(_client(settings), settings.collection, expected_contract(settings))

    def close(self) -> None:
        """Close the connection; an embedded store stays locked until the process ends."""
        self._client.close()

    @property
    def contract(self) -> Contract:
        """What made the collection that is loaded. Raises CollectionMissing before `load`."""
        if self._contract is None:
            raise CollectionMissing("nothing has been indexed yet: run `apidesk ingest`")
        return self._contract

    @property
    def embedding_role(self) -> ModelRole:
        """The embedding model that this collection is made and searched with."""
        return ModelRole("EMBEDDING", self._expected.embedding_model)

    def exists(self) -> bool:
        """Whether anything has been indexed under this name."""
        with _milvus_errors():
            return bool(self._client.has_collection(self._alias))

    def load(self) -> None:
        """Make the collection ready to search and answer one query, so that no caller is the first.

        Raises CollectionMissing, or CollectionMismatch when other settings made it.
        """
        with _milvus_errors():
            if not self._client.has_collection(self._alias):
                self._contract = None
                self._require()
            found = self._read_contract()
            if difference := found.difference(self._expected):
                raise CollectionMismatch(
                    f"the collection {self._alias} was made with {difference}: "
                    "run `apidesk ingest` to make it anew"
                )
            self._client.load_collection(self._alias)
            self._client.load_collection(self._words_alias)
            self._check_rows(found)
        self._contract = found
        self.search("预热 warm-up", 1, "full_text")

    def search(
        self, question: str, k: int, route: Route, vector: Vector | None = None
    ) -> list[RetrievedChunk]:
        """The best `k` chunks for `question`, best first; `vector` is its embedding."""
        self._require()
        with _milvus_errors():
            hits = self._hits(question, k, route, vector)
        full_text = route == "full_text"
        return [
            # Milvus Lite gives BM25 as a negative distance, a server as a positive score.
            RetrievedChunk(
                chunk=chunk_of(hit["entity"]),
                score=abs(hit["distance"]) if full_text else hit["distance"],
            )
            for hit in hits
        ]

    def chunks_of(self, document_id: str, source: str) -> list[Chunk]:
        """All chunks of one document, in the document's order."""
        return self._chunks(
            f"document_id == {_literal(document_id)} and source == {_literal(source)}"
        )

    def chunks_by_api(self, urls: Sequence[str], names: Sequence[str]) -> list[Chunk]:
        """All chunks of the APIs with one of these urls or names, by API in the document's order."""
        if not urls and not names:
            return []
        return self._chunks(
            f"api_url in {_literal(list(urls))} or api_name in {_literal(list(names))}"
        )

    def word_counts(self, words: Iterable[str]) -> dict[str, int]:
        """How often each of `words` occurs in all chunks together; words that do not are left out."""
        wanted = list(dict.fromkeys(words))
        if not wanted:
            return {}
        self._require()
        with _milvus_errors():
            rows = self._client.query(
                self._words_alias,
                filter=f"word in {_literal(wanted)}",
                output_fields=["word", "occurrences"],
            )
        return {row["word"]: row["occurrences"] for row in rows}

    def replace(self, chunks: Iterable[Chunk], embed: Embed | None = None) -> Contract:
        """Make the collection anew from `chunks`, then move the alias to it and drop the old one.

        `embed` turns texts into vectors, where an embedding model is named. When anything fails,
        the collection that was there stays as it was. Raises CollectionMismatch when it is not ours.
        """
        with _milvus_errors():
            if self._client.has_collection(self._alias):
                self._read_contract()
        stamp = time.time_ns()
        name, words_name = f"{self._alias}_{stamp}", f"{self._words_alias}_{stamp}"
        try:
            with _milvus_errors():
                contract = self._build(name, words_name, chunks, embed)
                self._move_alias(self._words_alias, words_name)
                self._move_alias(self._alias, name)
        finally:
            self._drop_leftovers()
        self.load()
        return contract

    def _hits(
        self, question: str, k: int, route: Route, vector: Vector | None
    ) -> list[dict[str, Any]]:
        from pymilvus import AnnSearchRequest, RRFRanker

        text = {
            "data": [query_text(question)],
            "anns_field": "sparse",
            # Milvus Lite refuses the client's default parameters for BM25.
            "param": {"metric_type": "BM25", "params": {}},
            "limit": k,
        }
        dense = {
            "data": [vector],
            "anns_field": "dense",
            "param": {"metric_type": "COSINE", "params": {}},
            "limit": k,
        }
        if route == "hybrid":
            requests = [AnnSearchRequest(**text), AnnSearchRequest(**dense)]
            found = self._client.hybrid_search(
                self._alias, requests, RRFRanker(), limit=k, output_fields=CHUNK_FIELDS
            )
        else:
            request = text if route == "full_text" else dense
            request["search_params"] = request.pop("param")
            found = self._client.search(self._alias, output_fields=CHUNK_FIELDS, **request)
        return list(found[0])

    def _chunks(self, expression: str) -> list[Chunk]:
        self._require()
        with _milvus_errors():
            rows = self._client.query(self._alias, filter=expression, output_fields=CHUNK_FIELDS)
        return sorted(map(chunk_of, rows), key=lambda c: (c.source, c.document_id, c.position))

    def _require(self) -> None:
        _ = self.contract

    @property
    def _words_alias(self) -> str:
        return f"{self._alias}_words"

    def _read_contract(self) -> Contract:
        properties = self._client.describe_collection(self._alias).get("properties") or {}
        if CONTRACT_PROPERTY not in properties:
            raise CollectionMismatch(
                f"the collection {self._alias} was not made by apidesk: choose another "
                "APIDESK_COLLECTION"
            )
        return Contract.model_validate_json(properties[CONTRACT_PROPERTY])

    def _check_rows(self, contract: Contract) -> None:
        """A damaged embedded store opens without a word as an empty one."""
        rows = int(self._client.get_collection_stats(self._alias)["row_count"])
        if contract.rows and not rows:
            raise CollectionMissing(
                f"the collection {self._alias} is damaged ({contract.rows} rows were written, none "
                "is there): run `apidesk ingest`"
            )

    def _build(
        self, name: str, words_name: str, chunks: Iterable[Chunk], embed: Embed | None
    ) -> Contract:
        rows, counts = 0, Counter[str]()
        for batch in _batches(chunks):
            vectors = embed([embedded_text(c) for c in batch]) if embed else None
            if not rows:
                create_chunks(self._client, name, len(vectors[0]) if vectors else None)
            self._client.insert(name, chunk_rows(batch, vectors))
            for chunk in batch:
                counts.update(vocabulary_words(embedded_text(chunk)))
            rows += len(batch)
        if not rows:
            raise CollectionMissing("the sources hold no document")
        self._write_words(words_name, counts)
        contract = self._expected.model_copy(update={"rows": rows, "words": counts.total()})
        self._client.alter_collection_properties(
            name, properties={CONTRACT_PROPERTY: contract.model_dump_json()}
        )
        self._client.flush(name)
        self._client.load_collection(name)
        return contract

    def _write_words(self, name: str, counts: Counter[str]) -> None:
        create_words(self._client, name)
        for batch in _batches(word_rows(counts)):
            self._client.insert(name, batch)
        self._client.flush(name)
        self._client.load_collection(name)

    def _move_alias(self, alias: str, name: str) -> None:
        if self._client.has_collection(alias):
            self._client.alter_alias(name, alias)
        else:
            self._client.create_alias(name, alias)

    def _drop_leftovers(self) -> None:
        """Drop the collections that this alias was moved away from or never reached."""
        mine = re.compile(rf"{re.escape(self._alias)}(_words)?_\d{{19}}")
        with _milvus_errors():
            for name in self._client.list_collections():
                if mine.fullmatch(name) and not self._client.list_aliases(name).get("aliases"):
                    self._client.drop_collection(name)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"APIDESK_MILVUS_URI: {folder}: {error.strerror}") from None


def _client(settings: Settings) -> "MilvusClient":
    from pymilvus import MilvusClient
    from pymilvus.exceptions import MilvusException

    token = settings.milvus_token.get_secret_value() if settings.milvus_token else ""
    # Embedded, the client's pings would annoy its own server, which hangs up and says so on stderr.
    options = {"grpc.keepalive_time_ms": HOUR_MS} if settings.embedded else {}
    try:
        return MilvusClient(settings.milvus_uri, token=token, grpc_options=options)
    except MilvusException as error:
        if settings.embedded:
            raise StoreLocked(
                f"{settings.milvus_uri} is in use by another process, or is not a Milvus Lite file"
            ) from error
        raise StoreUnavailable("Milvus cannot be reached: see APIDESK_MILVUS_URI") from error


@contextmanager
def _milvus_errors() -> Iterator[None]:
    """What pymilvus raises, as StoreUnavailable."""
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except MilvusException as error:
        raise StoreUnavailable(f"Milvus failed (code {error.code})") from error


def _literal(value: object) -> str:
    """`value` as a literal of Milvus's filter language."""
    return json.dumps(value, ensure_ascii=False)


def _batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
