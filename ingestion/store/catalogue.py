"""Names the Milvus collections of an alias, and builds and reads the catalogue.

An alias `docs` points to a collection `docs_<time in ns>`, which contains the chunks. The vocabulary and
the catalogue are in the collections `docs_words_<time in ns>` and `docs_catalogue_<time in ns>`, which have
the aliases `docs_words` and `docs_catalogue`. The vocabulary contains one row per word. The catalogue
contains one row per document, built from the rows of its chunks.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from ingestion.store.client import MilvusRow, row_pages
from ingestion.text.markdown_blocks import strip_anchor
from schemas.document import CatalogueEntry

if TYPE_CHECKING:
    from pymilvus import MilvusClient

DocumentKey = tuple[str, str]
"""Source and id of a document."""

ENTRY_FIELDS = list(CatalogueEntry.model_fields)
"""Fields of a catalogue row that are part of its CatalogueEntry."""

CATALOGUED_FIELDS = ["source", "document_id", "title", "section", "position", "language",
                     "service_id", "api_id", "api_name", "api_url", "page_url"]  # fmt: skip
"""Fields of a chunk's row from which the catalogue is built."""

MAX_OUTLINE_CHUNKS = 1_024
"""Number of chunks, from the start of a document, whose headings are in `CatalogueEntry.outline`."""

MAX_OUTLINE_BYTES = 8_000
"""Maximum size of an outline in bytes. Milvus limits a JSON field, including escapes, to 65,536 bytes."""

_FIRST_CHUNK_FIELDS = [name for name in CATALOGUED_FIELDS if name not in ("section", "position")]
"""Fields that a catalogue entry takes from the first chunk of its document."""


def words_name(name: str) -> str:
    """Return the name of the vocabulary that belongs to the chunk collection or alias `name`."""
    return _companion_name(name, "words")


def catalogue_name(name: str) -> str:
    """Return the name of the catalogue that belongs to the chunk collection or alias `name`."""
    return _companion_name(name, "catalogue")


def move_alias(client: "MilvusClient", alias: str, name: str) -> None:
    """Point `alias` at the collection `name`; create the alias if it does not exist."""
    if client.has_collection(alias):
        client.alter_alias(name, alias)
    else:
        client.create_alias(name, alias)


def drop_leftovers(client: "MilvusClient", alias: str) -> None:
    """Drop the collections that earlier or interrupted runs have left without an alias.

    Call this function only while holding the ingestion lock.

    A run moves the alias of the chunks last. If a run died before that, the aliases of the vocabulary and
    the catalogue may already point to the new collections of that run. These two aliases are first moved
    back to the collections that belong to the current chunks.
    """
    pattern = re.compile(rf"{re.escape(alias)}(_words|_catalogue)?_\d{{19}}")
    owned = [name for name in client.list_collections() if pattern.fullmatch(name)]
    if client.has_collection(alias):
        live = client.describe_alias(alias)["collection_name"]
        for companion_name in (words_name, catalogue_name):
            if companion_name(live) in owned:
                move_alias(client, companion_name(alias), companion_name(live))
    for name in owned:
        if not client.list_aliases(name).get("aliases"):
            client.drop_collection(name)


def _companion_name(name: str, suffix: str) -> str:
    return re.sub(r"(_\d{19})?$", rf"_{suffix}\1", name, count=1)


@dataclass
class _DocumentRows:
    """The data of one document from which its entry is built."""

    first: MilvusRow
    """Row of the chunk with the lowest position so far."""
    headings: dict[str, int]
    """Headings, each with its lowest position."""


class CatalogueBuilder:
    """Builds catalogue entries from rows of chunks, which may be added in any order."""

    def __init__(self) -> None:
        self._documents: dict[DocumentKey, _DocumentRows] = {}

    def add(self, rows: Iterable[MilvusRow]) -> None:
        """Add the rows of chunks."""
        for row in rows:
            key, position, heading = row_key(row), row["position"], row["section"]
            document = self._documents.get(key)
            if document is None or position < document.first["position"]:
                first = {name: row[name] for name in CATALOGUED_FIELDS}
                document = _DocumentRows(first, document.headings if document else {})
                self._documents[key] = document
            if heading and position < MAX_OUTLINE_CHUNKS:
                document.headings[heading] = min(position, document.headings.get(heading, position))

    def keys(self) -> set[DocumentKey]:
        """Return the keys of all documents whose rows were added."""
        return set(self._documents)

    def entries(self) -> Iterator[CatalogueEntry]:
        """Yield an entry for each document whose rows were added."""
        for document in self._documents.values():
            fields = {name: document.first[name] for name in _FIRST_CHUNK_FIELDS}
            headings = sorted(document.headings, key=document.headings.__getitem__)
            is_api = bool(fields["api_name"] or fields["api_url"])
            if not is_api:
                fields["page_url"] = strip_anchor(fields["page_url"])
            yield CatalogueEntry(
                **fields,
                kind="api" if is_api else "page",
                outline=tuple(_truncate(headings)),
            )


def row_key(row: MilvusRow) -> DocumentKey:
    """Return the key of the document to which a chunk row or a catalogue row belongs."""
    return row["source"], row["document_id"]


def entry_key(entry: CatalogueEntry) -> DocumentKey:
    """Return the key of the document that `entry` describes."""
    return entry.source, entry.document_id


def row_id(key: DocumentKey) -> str:
    """Return the primary key of a document's catalogue row."""
    return hashlib.sha256("\0".join(key).encode()).hexdigest()[:32]


def entry_rows(entries: Iterable[CatalogueEntry]) -> Iterator[MilvusRow]:
    """Yield `entries` as rows of the catalogue, with the vector field that Milvus requires."""
    for entry in entries:
        fields = entry.model_dump(mode="json")
        yield fields | {"id": row_id(entry_key(entry)), "unused": [0.0, 0.0]}


def read_catalogue(client: "MilvusClient", alias: str) -> list[CatalogueEntry]:
    """Return the catalogue of the collection that `alias` points to, sorted by source and document id."""
    name = catalogue_name(alias)
    client.load_collection(name)
    pages = row_pages(client, name, ENTRY_FIELDS)
    return sorted((_entry_from_row(row) for page in pages for row in page), key=entry_key)


def _entry_from_row(row: MilvusRow) -> CatalogueEntry:
    return CatalogueEntry.model_validate({name: row[name] for name in ENTRY_FIELDS})


def _truncate(headings: Sequence[str]) -> list[str]:
    """Return the first headings, as many as fit into MAX_OUTLINE_BYTES."""
    sizes = accumulate(len(heading.encode()) for heading in headings)
    pairs = zip(headings, sizes, strict=True)
    return [heading for heading, size in pairs if size <= MAX_OUTLINE_BYTES]
