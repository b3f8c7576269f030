"""The documents in a collection, by their content hashes and file fingerprints.

A run compares them with the documents of its sources, so that it writes only what has changed.
"""

from collections import defaultdict
from collections.abc import Mapping, Set

from ingestion.sources.registry import KnownFiles
from ingestion.store.collection import StoredChunk


class StoredDocuments:
    """Content hashes and file fingerprints of stored chunks, by source and document."""

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
        """Return the file fingerprints of `source`, each with the ids of its documents.

        Files whose chunks have different fingerprints are omitted. On a Milvus server, unchanged chunks
        keep the fingerprint of an earlier version of their file. The ids of documents from the same file
        differ only after `#`.
        """
        by_file: dict[str, set[str]] = defaultdict(set)
        known: dict[str, set[str]] = defaultdict(set)
        stored = self._fingerprints.get(source, {})
        for document_id, fingerprints in stored.items():
            by_file[document_id.partition("#")[0]] |= fingerprints
        for document_id, fingerprints in stored.items():
            if len(by_file[document_id.partition("#")[0]]) == 1:
                known[next(iter(fingerprints))].add(document_id)
        return {fingerprint: frozenset(ids) for fingerprint, ids in known.items() if fingerprint}
