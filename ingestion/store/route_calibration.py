"""Measures how reliable each search route is in a collection, so that rank fusion can weight them.

The quality of an embedding model shows only in use. Therefore each ingestion searches, by both
routes, for one sentence of each of 64 chunks and checks the rank of the sentence's document. This is
the inverse cloze task of Lee, Chang and Toutanova, "Latent Retrieval for Weakly Supervised Open Domain
Question Answering", 2019. Only half of the words of a sentence are kept: questions are worded
differently from documents, and any embedding finds an exact copy. See docs/explanation/retrieval.md.
"""

import random
import re
from collections.abc import Sequence

from ingestion.providers import ChunkEmbedder
from ingestion.store.catalogue import DocumentKey
from ingestion.store.collection import Collection
from ingestion.store.manifest import CollectionManifest, RouteCalibration
from ingestion.store.reader import SearchRoute
from ingestion.text.words import vocabulary_words
from schemas.document import Chunk

SAMPLE_CHUNKS = 64
"""Approximate number of queries: the standard error of a mean reciprocal rank is at most 0.06."""

SEARCH_DEPTH = 10
"""Chunks per query among which the document is looked for."""

RECALIBRATION_GROWTH = 2
"""Growth factor of a collection after which it is calibrated again."""

MIN_SENTENCE_CHARS, MAX_SENTENCE_CHARS = 12, 200

_SENTENCE_END = re.compile(r"(?<=[。！？!?])|(?<=\.)\s|\n")


def is_calibration_due(manifest: CollectionManifest) -> bool:
    """Return whether the collection was never calibrated or has grown too much since."""
    calibration = manifest.calibration
    return calibration is None or manifest.rows > RECALIBRATION_GROWTH * calibration.rows


def calibrate_routes(collection: Collection, embedder: ChunkEmbedder) -> RouteCalibration:
    """Return the mean reciprocal rank of a sentence's document by each route. Raises ModelError."""
    probes = [
        (_half(sentence), chunk)
        for chunk in collection.sample(SAMPLE_CHUNKS)
        if (sentence := _longest_sentence(chunk.body))
    ]
    queries = [query for query, _ in probes]
    vectors = embedder.embed_texts(queries)

    def mean_reciprocal_rank(route: SearchRoute) -> float:
        if not queries:
            return 0.0
        results = collection.search_documents(queries, SEARCH_DEPTH, route, vectors)
        ranks = [
            _reciprocal_rank(documents, _document_key(chunk))
            for documents, (_, chunk) in zip(results, probes, strict=True)
        ]
        return sum(ranks) / len(ranks)

    return RouteCalibration(
        full_text=mean_reciprocal_rank("full_text"),
        dense=mean_reciprocal_rank("dense"),
        rows=collection.manifest.rows,
    )


def _longest_sentence(body: str) -> str:
    """Return the longest sentence of the length of a question; empty if there is none."""
    sentences = (part.strip() for part in _SENTENCE_END.split(body))
    suitable = [s for s in sentences if MIN_SENTENCE_CHARS <= len(s) <= MAX_SENTENCE_CHARS]
    return sorted(suitable, key=len)[-1] if suitable else ""


def _half(sentence: str) -> str:
    """Return a random half of the words of `sentence`, always the same one."""
    words, choice = vocabulary_words(sentence), random.Random(sentence)
    kept = [word for word in words if choice.random() < 0.5]
    return " ".join(kept or words)


def _document_key(chunk: Chunk) -> DocumentKey:
    return chunk.source, chunk.document_id


def _reciprocal_rank(documents: Sequence[DocumentKey], expected: DocumentKey) -> float:
    """Return 1 / rank of the first chunk of the `expected` document; 0 without one."""
    return 1 / (documents.index(expected) + 1) if expected in documents else 0.0
