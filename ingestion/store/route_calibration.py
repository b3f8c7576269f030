"""Measures how reliable each search route is in a collection, so that rank fusion can weight the routes.

The reliability depends on the embedding model and on the documents, so it is measured on the collection
itself: with one sentence from each of about 64 chunks, both routes are searched, and the rank of the
document that contains the sentence is recorded. This is the inverse cloze task of Lee, Chang and
Toutanova, "Latent Retrieval for Weakly Supervised Open Domain Question Answering", 2019. Only half of
the words of each sentence are used because any embedding finds an exact copy, while questions are worded
differently from documents. See docs/explanation/retrieval.md.
"""

import random
import re
from collections.abc import Sequence

from ingestion.embeddings import ChunkEmbedder
from ingestion.store.catalogue import DocumentKey
from ingestion.store.collection import Collection, SearchRoute
from ingestion.store.manifest import CollectionManifest, RouteCalibration
from ingestion.text.words import vocabulary_words
from schemas.document import Chunk

SAMPLE_CHUNKS = 64
"""Approximate number of queries. The standard error of a mean reciprocal rank is then at most 0.06."""

SEARCH_DEPTH = 10
"""Number of chunks per query that are searched for the document."""

RECALIBRATION_GROWTH = 2
"""Growth of a collection, as a factor of its rows, after which it is calibrated again."""

MIN_SENTENCE_CHARS, MAX_SENTENCE_CHARS = 12, 200
"""Minimum and maximum length of a sentence that is used as a query, in characters."""

_SENTENCE_END = re.compile(r"(?<=[。！？!?])|(?<=\.)\s|\n")


def is_calibration_due(manifest: CollectionManifest) -> bool:
    """Return whether the collection was never calibrated or has grown too much since then."""
    calibration = manifest.calibration
    return calibration is None or manifest.rows > RECALIBRATION_GROWTH * calibration.rows


def calibrate_routes(collection: Collection, embedder: ChunkEmbedder) -> RouteCalibration:
    """Measure each route by the mean reciprocal rank of the expected documents. Raises ModelError."""
    probes = [
        (_draw_half(sentence), chunk)
        for chunk in collection.sample(SAMPLE_CHUNKS)
        if (sentence := _longest_sentence(chunk.body))
    ]
    queries = [query for query, _ in probes]
    vectors = embedder.embed_queries(queries)

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
    """Return the longest sentence within the length limits; empty if there is none."""
    sentences = (part.strip() for part in _SENTENCE_END.split(body))
    suitable = [
        sentence
        for sentence in sentences
        if MIN_SENTENCE_CHARS <= len(sentence) <= MAX_SENTENCE_CHARS
    ]
    return sorted(suitable, key=len)[-1] if suitable else ""


def _draw_half(sentence: str) -> str:
    """Draw about half of the words of `sentence` at random.

    The sentence is the random seed, so the result is the same in every run.
    """
    words, generator = vocabulary_words(sentence), random.Random(sentence)
    kept = [word for word in words if generator.random() < 0.5]
    return " ".join(kept or words)


def _document_key(chunk: Chunk) -> DocumentKey:
    return chunk.source, chunk.document_id


def _reciprocal_rank(documents: Sequence[DocumentKey], expected: DocumentKey) -> float:
    """Return 1 / rank of `expected` in `documents`; 0 if it is missing."""
    return 1 / (documents.index(expected) + 1) if expected in documents else 0.0
