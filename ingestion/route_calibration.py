"""Measures how reliable full-text and dense search are in a collection, so that they can be weighted.

The reliability of these two search routes depends on the embedding model and on the documents, so it is
measured on the collection itself. A sentence is taken from each of about 64 chunks. Both routes search for
it, and the rank of the document that contains it is recorded. This is the inverse cloze task of Lee, Chang
and Toutanova, "Latent Retrieval for Weakly Supervised Open Domain Question Answering", 2019.

Only about half of the words of each sentence are used, because real questions are worded differently from
documents. With the whole sentence, any embedding would find the exact copy. See
docs/explanation/retrieval.md.
"""

import random
from collections.abc import Iterable, Sequence

from ingestion.embeddings import ChunkEmbedder
from ingestion.store.collection import ChunkHit, Collection
from ingestion.store.manifest import CollectionManifest, RouteCalibration
from ingestion.store.schema import Vector
from ingestion.text.sentences import split_sentences
from ingestion.text.words import vocabulary_words
from schemas.document import Chunk

SAMPLE_CHUNKS = 64
"""Approximate number of sampled chunks, each of which gives at most one query.

With 64 queries, the standard error of a mean reciprocal rank is at most about 0.06.
"""

SEARCH_DEPTH = 10
"""Number of hits per query. If none of them is in the expected document, the reciprocal rank is 0."""

RECALIBRATION_GROWTH = 2
"""A collection is calibrated again when its number of chunks has grown by more than this factor."""

MIN_SENTENCE_CHARS, MAX_SENTENCE_CHARS = 12, 200
"""Minimum and maximum length of a sentence that is used as a query, in characters."""


def is_calibration_due(manifest: CollectionManifest) -> bool:
    """Return whether the collection was never calibrated, or has grown too much since the calibration."""
    calibration = manifest.calibration
    return calibration is None or manifest.rows > RECALIBRATION_GROWTH * calibration.rows


def calibrate_routes(collection: Collection, embedder: ChunkEmbedder) -> RouteCalibration:
    """Return the mean reciprocal rank of full-text and of dense search in `collection`.

    `embedder` embeds the queries for dense search. Raises ModelError.
    """
    probes = [
        (_draw_half(sentence), chunk)
        for chunk in collection.sample(SAMPLE_CHUNKS)
        if (sentence := _longest_sentence(chunk.body))
    ]
    vectors = embedder.embed_queries(query for query, _ in probes)

    def mean_reciprocal_rank(vectors: Sequence[Vector | None]) -> float:
        ranks = [
            _reciprocal_rank(collection.search_hits(query, SEARCH_DEPTH, vector), chunk)
            for (query, chunk), vector in zip(probes, vectors, strict=True)
        ]
        return sum(ranks) / max(1, len(ranks))

    return RouteCalibration(
        full_text=mean_reciprocal_rank([None] * len(probes)),
        dense=mean_reciprocal_rank(vectors),
        rows=collection.manifest.rows,
    )


def _longest_sentence(body: str) -> str:
    """Return the longest sentence within the length limits; empty if there is none."""
    lines = body.splitlines()
    sentences = (part.strip() for line in lines for part in split_sentences(line))
    suitable = [
        sentence
        for sentence in sentences
        if MIN_SENTENCE_CHARS <= len(sentence) <= MAX_SENTENCE_CHARS
    ]
    return sorted(suitable, key=len)[-1] if suitable else ""


def _draw_half(sentence: str) -> str:
    """Return about half of the words of `sentence`, chosen at random.

    The sentence is the random seed, so the result is the same in every run.
    """
    words, generator = vocabulary_words(sentence), random.Random(sentence)
    chosen = [word for word in words if generator.random() < 0.5]
    return " ".join(chosen or words)


def _reciprocal_rank(hits: Iterable[ChunkHit], expected: Chunk) -> float:
    """Return 1 / rank of the best hit in the document of `expected`, or 0. `hits` is sorted, best first."""
    for rank, hit in enumerate(hits, 1):
        if hit.document_key == expected.document_key:
            return 1 / rank
    return 0.0
