"""Two ways to write a collection.

`NextCollection` builds the next collection beside the live one and moves the alias when it is
complete; whoever searches meanwhile sees the old one whole. It is how a rebuild works anywhere, and
how an embedded store is always written: Milvus Lite weighs words by segment and can miss rows while
it flushes (see `docs/decisions`). `InPlace` updates and deletes rows of a server's collection.

Beside the chunks lie two smaller collections: the vocabulary, which counts every word of them and is
kept in step by what is added and taken away, and the catalogue, one row a document, made from the rows
of the chunks that are there in the end.
"""

import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection as Sized
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ingestion.store.catalogue import (
    ENTRY_FIELDS,
    GATHERED_FIELDS,
    OUTLINED_CHUNKS,
    CatalogueBuilder,
    CatalogueRow,
    DocumentKey,
    document_key,
    entry_of,
    entry_rows,
    row_id,
)
from ingestion.store.client import BATCH, batches, every_row, literal, milvus_errors
from ingestion.store.schema import (
    CHUNK_FIELDS,
    COPIED_FIELDS,
    CollectionManifest,
    Vector,
    catalogue_name,
    catalogue_stamp,
    chunk_of,
    chunk_rows,
    chunk_words,
    create_catalogue,
    create_chunks,
    create_words,
    word_rows,
    words_name,
    write_finished_manifest,
    write_manifest,
)
from schemas.document import CatalogueEntry, Chunk

if TYPE_CHECKING:
    from pymilvus import MilvusClient

DOCUMENTS = 16
"""Documents whose chunks are read at a time: with 1,024 of each, the most that Milvus gives."""


class CollectionWriter(ABC):
    """Writes chunks; nothing is dropped, and beside nothing is seen, before `finish`."""

    @abstractmethod
    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Write `chunks`, new or changed, with a vector each where there is an embedding model."""

    @abstractmethod
    def finish(self, dropped: Sized[str]) -> CollectionManifest:
        """Drop the chunks with the ids in `dropped` and make everything that was put the truth."""

    @abstractmethod
    def abandon(self) -> None:
        """Clean up after a failure."""


class NextCollectionWriter(CollectionWriter):
    """Builds the collection that the alias will name next; with `old` it keeps what is not replaced."""

    def __init__(
        self,
        client: "MilvusClient",
        alias: str,
        expected: CollectionManifest,
        old: CollectionManifest | None,
    ) -> None:
        self._client = client
        self._alias = alias
        self._expected = expected
        self._old = old
        self._name = f"{alias}_{time.time_ns()}"
        self._created = False
        self._written: set[str] = set()
        self._waiting: list[CatalogueRow] = []
        """Rows until there are enough for an insert: embedded texts come in smaller batches."""
        self._rows = 0
        self._words = Counter[str]()
        self._gathering = CatalogueBuilder()

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Write `chunks` to the next collection."""
        words = [chunk_words(chunk) for chunk in chunks]
        self._add(chunk_rows(chunks, words, vectors))
        self._written.update(chunk.id for chunk in chunks)
        self._words.update(chain.from_iterable(words))

    def finish(self, dropped: Sized[str]) -> CollectionManifest:
        """Copy what stays, then move the alias."""
        with milvus_errors():
            if self._old is not None:
                self._copy(dropped, self._old)
            self._insert()
            self._words = +self._words
            contract = self._expected.model_copy(
                update={
                    "rows": self._rows,
                    "words": self._words.total(),
                    "reliability": self._old.reliability if self._old else None,
                }
            )
            self._complete(contract)
            for beside in (words_name, catalogue_name):
                _move(self._client, beside(self._alias), beside(self._name))
            _move(self._client, self._alias, self._name)
            drop_leftovers(self._client, self._alias)
        return contract

    def abandon(self) -> None:
        """Drop what was begun."""
        with milvus_errors():
            drop_leftovers(self._client, self._alias)

    def _add(self, rows: list[CatalogueRow]) -> None:
        self._waiting += rows
        if len(self._waiting) >= BATCH:
            with milvus_errors():
                self._insert()

    def _insert(self) -> None:
        rows, self._waiting = self._waiting, []
        if not rows:
            return
        if not self._created:
            dimension = len(rows[0]["dense"]) if "dense" in rows[0] else None
            create_chunks(self._client, self._name, dimension, self._expected.tokenizer)
            self._created = True
        self._client.insert(self._name, rows)
        self._rows += len(rows)
        self._gathering.add(rows)

    def _copy(self, dropped: Sized[str], old: CollectionManifest) -> None:
        """The rows that stay, with their vectors; the words of the others are taken away."""
        self._words.update(read_words(self._client, self._alias))
        fields = [*COPIED_FIELDS, "dense"] if old.embedding_model else COPIED_FIELDS
        for page in every_row(self._client, self._alias, fields):
            stay = [r for r in page if r["id"] not in self._written and r["id"] not in dropped]
            staying = {row["id"] for row in stay}
            for row in page:
                if row["id"] not in staying:
                    self._words.subtract(chunk_words(chunk_of(row)))
            for rows in batches(stay):
                self._add(rows)

    def _complete(self, contract: CollectionManifest) -> None:
        words, catalogue = words_name(self._name), catalogue_name(self._name)
        create_words(self._client, words)
        for rows in batches(word_rows(self._words)):
            self._client.insert(words, rows)
        create_catalogue(self._client, catalogue)
        for rows in batches(entry_rows(self._gathering.entries())):
            self._client.insert(catalogue, rows)
        write_finished_manifest(self._client, self._name, contract)
        for made in (words, catalogue, self._name):
            self._client.flush(made)
            self._client.load_collection(made)


class InPlaceWriter(CollectionWriter):
    """Updates the collection that the alias names.

    The contract says `unfinished` from the first write to the end, so that the run after one that
    died counts the words and makes the catalogue anew.
    """

    def __init__(self, client: "MilvusClient", alias: str, contract: CollectionManifest) -> None:
        self._client = client
        self._alias = alias
        self._contract = contract
        self._begun = False
        self._change = Counter[str]()
        self._touched: set[DocumentKey] = set()

    def put(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Write `chunks` over the rows with their ids."""
        words = [chunk_words(chunk) for chunk in chunks]
        with milvus_errors():
            self._begin()
            self._take_away([chunk.id for chunk in chunks])
            self._client.upsert(self._alias, chunk_rows(chunks, words, vectors))
        self._change.update(chain.from_iterable(words))
        self._touched.update((chunk.source, chunk.document_id) for chunk in chunks)

    def finish(self, dropped: Sized[str]) -> CollectionManifest:
        """Delete what is dropped and bring the vocabulary and the catalogue in step."""
        with milvus_errors():
            self._begin()
            for ids in batches(sorted(dropped)):
                self._take_away(ids)
                self._client.delete(self._alias, filter=f"id in {literal(ids)}")
            self._client.flush(self._alias)
            words = self._write_words()
            self._write_catalogue()
            rows = self._client.query(self._alias, filter="", output_fields=["count(*)"])
            contract = self._contract.model_copy(
                update={"rows": rows[0]["count(*)"], "words": words, "unfinished": False}
            )
            write_finished_manifest(self._client, self._alias, contract)
        return contract

    def abandon(self) -> None:
        """Leave the contract unfinished: what was written is true, and the next run goes on."""

    def _begin(self) -> None:
        if not self._begun:
            unfinished = self._contract.model_copy(update={"unfinished": True})
            write_manifest(self._client, self._alias, unfinished)
            self._begun = True

    def _take_away(self, ids: Sequence[str]) -> None:
        """Note the words of the rows with these ids as gone, and their documents as touched."""
        rows = self._client.query(
            self._alias, filter=f"id in {literal(ids)}", output_fields=CHUNK_FIELDS
        )
        for row in rows:
            self._change.subtract(chunk_words(chunk_of(row)))
            self._touched.add(document_key(row))

    def _write_words(self) -> int:
        """Bring the vocabulary in step; how many words there are in all chunks together."""
        name = words_name(self._alias)
        before = read_words(self._client, self._alias)
        after = self._counted_anew() if self._contract.unfinished else before + self._change
        changed = Counter({w: n for w, n in after.items() if n > 0 and before[w] != n})
        for rows in batches(word_rows(changed)):
            self._client.upsert(name, rows)
        for words in batches(word for word in before if after[word] <= 0):
            self._client.delete(name, filter=f"word in {literal(words)}")
        self._client.flush(name)
        return sum(count for count in after.values() if count > 0)

    def _counted_anew(self) -> Counter[str]:
        words = Counter[str]()
        for page in every_row(self._client, self._alias, CHUNK_FIELDS):
            for row in page:
                words.update(chunk_words(chunk_of(row)))
        return words

    def _write_catalogue(self) -> None:
        """Bring the catalogue in step with the documents that were touched, or with all."""
        if not catalogue_stamp(self._client, self._alias):
            self._new_catalogue()
        if self._contract.unfinished:
            self._write_whole_catalogue()
        else:
            for keys in batches(sorted(self._touched), DOCUMENTS):
                self._write_entries(self._gathered(keys), keys)
        self._client.flush(catalogue_name(self._alias))

    def _write_whole_catalogue(self) -> None:
        gathering = CatalogueBuilder()
        for page in every_row(self._client, self._alias, GATHERED_FIELDS):
            gathering.add(page)
        before = [_key(entry) for entry in read_catalogue(self._client, self._alias)]
        self._write_entries(gathering, before)

    def _gathered(self, keys: Sequence[DocumentKey]) -> CatalogueBuilder:
        """What there is of the documents `keys`."""
        gathering, ids = CatalogueBuilder(), [document_id for _, document_id in keys]
        rows = self._client.query(
            self._alias,
            filter=f"document_id in {literal(ids)} and position < {OUTLINED_CHUNKS}",
            output_fields=GATHERED_FIELDS,
            consistency_level="Strong",
        )
        gathering.add(row for row in rows if document_key(row) in keys)
        return gathering

    def _write_entries(self, gathering: CatalogueBuilder, before: Sequence[DocumentKey]) -> None:
        """Write what was gathered, and delete the entries of `before` that it holds no more."""
        name = catalogue_name(self._alias)
        for rows in batches(entry_rows(gathering.entries())):
            self._client.upsert(name, rows)
        gone = set(before) - gathering.keys()
        for ids in batches(sorted(map(row_id, gone))):
            self._client.delete(name, filter=f"id in {literal(ids)}")

    def _new_catalogue(self) -> None:
        """An empty one in place of none, or of one of another version."""
        alias = catalogue_name(self._alias)
        name = catalogue_name(self._client.describe_alias(self._alias)["collection_name"])
        if self._client.has_collection(alias):
            self._client.drop_alias(alias)  # a server drops no collection that has one
        if self._client.has_collection(name):
            self._client.drop_collection(name)
        create_catalogue(self._client, name)
        self._client.load_collection(name)
        _move(self._client, alias, name)


def read_words(client: "MilvusClient", alias: str) -> Counter[str]:
    """The vocabulary that belongs to the chunks that `alias` names."""
    name = words_name(client.describe_alias(alias)["collection_name"])
    client.load_collection(name)
    words = Counter[str]()
    for page in every_row(client, name, ["word", "occurrences"]):
        words.update({row["word"]: row["occurrences"] for row in page})
    return words


def read_catalogue(client: "MilvusClient", alias: str) -> list[CatalogueEntry]:
    """The catalogue beside the chunks that `alias` names, by source and document id."""
    name = catalogue_name(alias)
    client.load_collection(name)
    pages = every_row(client, name, ENTRY_FIELDS)
    return sorted((entry_of(row) for page in pages for row in page), key=_key)


def _key(entry: CatalogueEntry) -> DocumentKey:
    return entry.source, entry.document_id


def drop_leftovers(client: "MilvusClient", alias: str) -> None:
    """Drop the collections that `alias` was moved away from or never reached.

    Only the one run that holds the lock may do so. What lies beside the chunks is moved before them:
    where a run died in between, it is moved back first.
    """
    pattern = re.compile(rf"{re.escape(alias)}(_words|_catalogue)?_\d{{19}}")
    mine = [name for name in client.list_collections() if pattern.fullmatch(name)]
    if client.has_collection(alias):
        live = client.describe_alias(alias)["collection_name"]
        for beside in (words_name, catalogue_name):
            if beside(live) in mine:
                _move(client, beside(alias), beside(live))
    for name in mine:
        if not client.list_aliases(name).get("aliases"):
            client.drop_collection(name)


def _move(client: "MilvusClient", alias: str, name: str) -> None:
    """Make `alias` name the collection `name`."""
    if client.has_collection(alias):
        client.alter_alias(name, alias)
    else:
        client.create_alias(name, alias)
