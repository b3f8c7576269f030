"""Documents that a run compares, so that it writes only what has changed.

`StoredDocuments` are the documents that the collection contains. `HeldDocuments` are new versions of these
documents, held back until the whole source has been read. If a site starts to ask for a login, it returns
the login page in place of every page. The first of these pages looks like any changed page. Only the whole
source shows that many pages have become the same page.
"""

import hashlib
import pickle
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from tempfile import SpooledTemporaryFile

from ingestion.sources.registry import KnownFiles
from ingestion.store.collection import StoredChunk
from ingestion.worker_processes import ChunkedDocument
from schemas.document import Chunk

MIN_IDENTICAL_DOCUMENTS = 6
"""Minimum size of a group of documents that is refused because their new versions have the same text.

Smaller groups are indexed like any other change.
"""

MAX_MEMORY_BYTES = 10_000_000
"""Total size of the held documents, in bytes, above which all of them are kept in a temporary file."""

_LINK_TARGET = re.compile(r"\]\([^)\s]*")


class StoredDocuments:
    """Content hashes and file fingerprints (see `sources/registry.py`) of stored chunks, by document."""

    def __init__(self) -> None:
        self._hashes: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
        """Source -> document id -> chunk id -> content hash."""
        self._fingerprints: dict[str, dict[str, set[str]]] = defaultdict(dict)
        """Source -> document id -> fingerprints of its chunks."""

    def add(self, chunk: StoredChunk) -> None:
        """Add a stored chunk to its document."""
        self._hashes[chunk.source].setdefault(chunk.document_id, {})[chunk.id] = chunk.content_hash
        self._fingerprints[chunk.source].setdefault(chunk.document_id, set()).add(chunk.fingerprint)

    def sources(self) -> Set[str]:
        """Return the names of the sources that have documents."""
        return self._hashes.keys()

    def document_ids(self, source: str) -> Set[str]:
        """Return the ids of the documents of `source`."""
        return self._hashes.get(source, {}).keys()

    def chunk_hashes(self, source: str, document_id: str) -> Mapping[str, str]:
        """Return the content hashes of a document's chunks, by chunk id; empty for an unknown document."""
        return self._hashes.get(source, {}).get(document_id, {})

    def chunk_ids(self) -> set[str]:
        """Return the ids of all chunks."""
        documents = (document for source in self._hashes.values() for document in source.values())
        return {chunk_id for document in documents for chunk_id in document}

    def known_files(self, source: str) -> KnownFiles:
        """Return the file fingerprints of `source`, each with the ids of the file's documents.

        A file whose chunks have different fingerprints is omitted, because its current fingerprint is
        unknown. This happens on a Milvus server, where unchanged chunks keep the fingerprint of an earlier
        version of their file.
        """
        # The ids of documents from the same file differ only after `#`: `orders.md`, `orders.md#create`.
        by_file: dict[str, set[str]] = defaultdict(set)
        known: dict[str, set[str]] = defaultdict(set)
        stored = self._fingerprints.get(source, {})
        for document_id, fingerprints in stored.items():
            by_file[document_id.partition("#")[0]] |= fingerprints
        for document_id, fingerprints in stored.items():
            if len(by_file[document_id.partition("#")[0]]) == 1:
                known[next(iter(fingerprints))].add(document_id)
        return {fingerprint: frozenset(ids) for fingerprint, ids in known.items() if fingerprint}


class HeldDocuments:
    """New versions of indexed documents, held in memory or, if they are large, in a temporary file."""

    def __init__(self) -> None:
        # The file is deleted when this object is freed.
        self._file = SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES)  # noqa: SIM115
        self._ids: dict[str, set[str]] = defaultdict(set)
        """Ids of the held documents, by the digest of their text."""

    def add(self, document: ChunkedDocument) -> None:
        """Add the new version of a document."""
        self._ids[text_digest(document.chunks)].add(document.id)
        pickle.dump(document, self._file)

    def identical(self, more_than: float) -> list[Set[str]]:
        """Return the ids of each group of more than `more_than` documents with the same text."""
        return [ids for ids in self._ids.values() if len(ids) > more_than]

    def __iter__(self) -> Iterator[ChunkedDocument]:
        """Yield the documents in the order in which they were added."""
        self._file.seek(0)
        for _ in range(sum(map(len, self._ids.values()))):
            document: ChunkedDocument = pickle.load(self._file)
            yield document


def text_digest(chunks: Iterable[Chunk]) -> str:
    """Return a digest of the title and the text of a document, which consists of `chunks`.

    Link targets are left out, because they may contain the address of the document itself, as in
    `/login?next=/guide`.
    """
    digest = hashlib.sha256()
    for chunk in chunks:
        text = _LINK_TARGET.sub("]", chunk.body)
        digest.update(f"{chunk.title}\0{chunk.section}\0{text}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
