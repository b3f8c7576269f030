"""Creates the chunks of a page, and vectors of texts."""

import zlib

from ingestion.chunking import chunk_document
from ingestion.store.schema import Vector
from ingestion.text.words import split_words
from schemas.document import Chunk, Section, SourceDocument

DIMENSION = 64


def page(name: str, *bodies: str, **fields: object) -> list[Chunk]:
    """Return the chunks of a page with one section per body."""
    document = SourceDocument.model_validate(
        {"id": name, "source": "guides", "title": name, "language": "zh"}
        | fields
        | {"sections": [Section(kind="prose", heading=("节",), body=body) for body in bodies]}
    )
    return list(chunk_document(document, 400))


def embed(texts: list[str]) -> list[Vector]:
    """Return vectors of hashed word counts: texts that share words have similar vectors."""
    vectors = []
    for text in texts:
        vector = [0.0] * DIMENSION
        for word in split_words(text):
            vector[zlib.crc32(word.encode()) % DIMENSION] += 1.0
        vectors.append(vector)
    return vectors
