"""The catalogue: one row a document, gathered from the rows of its chunks."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from schemas.document import CatalogueEntry

CatalogueRow = dict[str, Any]

DocumentKey = tuple[str, str]
"""A document's source and id."""

ENTRY_FIELDS = list(CatalogueEntry.model_fields)
"""The fields of a row of the catalogue that an entry is read back from."""

GATHERED_FIELDS = ["source", "document_id", "title", "section", "position", "language",
                   "service_id", "api_id", "api_name", "api_url", "page_url"]  # fmt: skip
"""The fields of a chunk's row that the catalogue is made from."""

OUTLINED_CHUNKS = 1_024
"""Chunks of a document, from its first, whose headings are in the outline."""

OUTLINE_BYTES = 8_000
"""What an outline holds at most; a Milvus JSON field holds 65,536 bytes, and escapes them."""

_COPIED = [name for name in GATHERED_FIELDS if name not in ("section", "position")]


@dataclass
class _Gathered:
    """What is known of a document so far."""

    first: CatalogueRow
    """Its chunk with the lowest position."""
    headings: dict[str, int] = field(default_factory=dict)
    """Where each heading comes first."""


class CatalogueBuilder:
    """The entries of the documents whose chunks' rows are added, in whatever order.

    What is kept of a document is one row and its headings.
    """

    def __init__(self) -> None:
        self._documents: dict[DocumentKey, _Gathered] = {}

    def add(self, rows: Iterable[CatalogueRow]) -> None:
        """Take in the chunks that `rows` hold."""
        for row in rows:
            self._add(row)

    def _add(self, row: CatalogueRow) -> None:
        key, position, heading = document_key(row), row["position"], row["section"]
        known = self._documents.get(key)
        if known is None or position < known.first["position"]:
            first = {name: row[name] for name in GATHERED_FIELDS}
            known = _Gathered(first, known.headings if known else {})
            self._documents[key] = known
        if heading and position < OUTLINED_CHUNKS:
            known.headings[heading] = min(position, known.headings.get(heading, position))

    def keys(self) -> set[DocumentKey]:
        """The documents of which a chunk was added."""
        return set(self._documents)

    def entries(self) -> Iterator[CatalogueEntry]:
        """The documents of which a chunk was added, as the catalogue names them."""
        for gathered in self._documents.values():
            first = {name: gathered.first[name] for name in _COPIED}
            headings = sorted(gathered.headings, key=gathered.headings.__getitem__)
            yield CatalogueEntry(
                **first,
                kind="api" if first["api_name"] or first["api_url"] else "page",
                outline=tuple(_shortened(headings)),
            )


def document_key(row: CatalogueRow) -> DocumentKey:
    """The document that a row, of a chunk or of the catalogue, belongs to."""
    return row["source"], row["document_id"]


def entry_rows(entries: Iterable[CatalogueEntry]) -> Iterator[CatalogueRow]:
    """`entries` as rows of the catalogue."""
    for entry in entries:
        fields = entry.model_dump(mode="json")
        yield fields | {"id": row_id((entry.source, entry.document_id)), "unused": [0.0, 0.0]}


def entry_of(row: CatalogueRow) -> CatalogueEntry:
    """The entry that a row of the catalogue holds."""
    return CatalogueEntry.model_validate({name: row[name] for name in ENTRY_FIELDS})


def row_id(key: DocumentKey) -> str:
    """The primary key of a document's row."""
    return hashlib.sha256("\0".join(key).encode()).hexdigest()[:32]


def _shortened(headings: Sequence[str]) -> list[str]:
    """As many of `headings`, from the first, as an outline holds."""
    sizes = accumulate(len(heading.encode()) for heading in headings)
    return [h for h, size in zip(headings, sizes, strict=True) if size <= OUTLINE_BYTES]
