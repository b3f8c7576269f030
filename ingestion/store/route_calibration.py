"""How far each route can be trusted in this collection: what fusion weighs them by.

A good embedding model and a useless one look alike until they are asked. So an ingestion asks both
routes for what it just wrote: one sentence of each of 64 chunks, whose document is to be found again
(the inverse cloze task of Lee, Chang and Toutanova, "Latent Retrieval for Weakly Supervised Open
Domain Question Answering", 2019). Of the sentence only half of the words are given: any vector finds
the same letters again, and whoever asks uses other ones. docs/retrieval.md
"""

import random
import re
from collections.abc import Iterator, Sequence

from ingestion.providers import ChunkEmbedder
from ingestion.store.catalogue import DocumentKey
from ingestion.store.collection import Collection, SearchRoute
from ingestion.store.schema import CollectionManifest, RouteCalibration
from ingestion.text.words import vocabulary_words

ASKED = 64
"""Sentences that are asked for, about: the standard error of a mean rank is 0.06 at most."""

DEPTH = 10
"""Chunks among which the document has to be."""

GROWTH = 2
"""A collection that has grown by this factor is measured anew."""

MIN_CHARACTERS, MAX_CHARACTERS = 12, 200

_SENTENCE_END = re.compile(r"(?<=[。！？!?])|(?<=\.)\s|\n")


def is_due(contract: CollectionManifest) -> bool:
    """Whether the collection was never measured, or has outgrown what was measured."""
    measured = contract.reliability
    return measured is None or contract.rows > GROWTH * measured.rows


def calibrate_routes(collection: Collection, embedder: ChunkEmbedder) -> RouteCalibration:
    """The mean reciprocal rank at which each route finds a sentence's document. Raises ModelError."""
    asked = [
        (_half(sentence), chunk)
        for chunk in collection.some(ASKED)
        for sentence in _telling(chunk.body)
    ]
    questions = [question for question, _ in asked]
    vectors = embedder.embed_texts(questions)

    def mean_rank(route: SearchRoute) -> float:
        if not questions:
            return 0.0
        found = collection.documents(questions, DEPTH, route, vectors)
        ranks = [
            _reciprocal_rank(documents, (chunk.source, chunk.document_id))
            for documents, (_, chunk) in zip(found, asked, strict=True)
        ]
        return sum(ranks) / len(ranks)

    return RouteCalibration(
        full_text=mean_rank("full_text"),
        dense=mean_rank("dense"),
        rows=collection.contract.rows,
    )


def _telling(body: str) -> Iterator[str]:
    """The longest sentence that may pass for a question, if there is any."""
    sentences = (part.strip() for part in _SENTENCE_END.split(body))
    fitting = [s for s in sentences if MIN_CHARACTERS <= len(s) <= MAX_CHARACTERS]
    yield from sorted(fitting, key=len)[-1:]


def _half(sentence: str) -> str:
    """Half of the words of `sentence`, the same ones each time."""
    words, choice = vocabulary_words(sentence), random.Random(sentence)
    kept = [word for word in words if choice.random() < 0.5]
    return " ".join(kept or words)


def _reciprocal_rank(found: Sequence[DocumentKey], document: DocumentKey) -> float:
    """1 over the place of the first chunk of `document`; 0 where there is none."""
    return 1 / (found.index(document) + 1) if document in found else 0.0
