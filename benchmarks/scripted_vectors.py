"""Three deterministic embeddings without a model, from meaningless to good."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import chain
from math import log
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ingestion.text.words import vocabulary_words

Matrix: TypeAlias = NDArray[np.float32]
"""A vector per row, or a single vector."""

DIMENSION = 256

LENGTHS = (2, 3, 4, 5)
"""Lengths of the n-grams in characters."""

HIT = 0.97
"""Intended hit@5 of the oracle."""

CHUNK_NOISE = 0.3
"""Length of the noise of a chunk, relative to its document's vector."""

MAX_NOISE = 10.0
"""Upper bound of the noise scale. With five documents or fewer, no scale would cause a miss."""

HALVINGS = 20
"""Bisection steps for the noise scale."""


class Embedding(Protocol):
    """Maps texts to vectors."""

    @property
    def name(self) -> str:
        """Name of the embedding in tables."""

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """Return a row per text."""


class Noise:
    """Meaningless vectors: a pseudo-random direction per text."""

    name = "noise"

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """Return a row per text."""
        return np.stack([_direction(text) for text in texts])


class NGrams:
    """Vectors of hashed n-grams: a real but mediocre embedding."""

    name = "n-grams"

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """Return a row per text."""
        return np.stack([_unit(_hashed_counts(text)) for text in texts])


class OracleQuestion(NamedTuple):
    """A question of the oracle and its gold documents."""

    text: str
    documents: tuple[str, ...]


class Oracle:
    """Vectors that know the answers: a question is near its gold documents.

    The distance varies: the length of a question's noise is half-normally distributed, with a scale at
    which the share `hit` of the questions has its document among the nearest five. Any other text is placed
    in the same way near the document that it is about.
    """

    name = "oracle"

    def __init__(
        self,
        documents: Mapping[str, Sequence[str]],
        questions: Mapping[str, Iterable[str]],
        hit: float = HIT,
    ) -> None:
        """`documents` maps each document to the texts of its chunks.

        `questions` maps each question to its gold documents.
        """
        self._directions = {document: _direction(document) for document in documents}
        self._chunks = {text: name for name, texts in documents.items() for text in texts}
        self._questions = [OracleQuestion(text, tuple(gold)) for text, gold in questions.items()]
        self._by_question = dict(self._questions)
        self._scale = self._scale_for(hit, documents)

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """Return a row per text."""
        return np.stack([self._vector(text) for text in texts])

    def about(self, text: str) -> tuple[str, ...]:
        """Return the documents that `text` is about.

        If `text` is a question or a part of one, these are its gold documents. Otherwise it is the document
        with a chunk that contains `text`, or else the most similar document.
        """
        if text in self._by_question:
            return self._by_question[text]
        by_question = (known.documents for known in self._questions if text in known.text)
        by_chunk = ((name,) for whole, name in self._chunks.items() if text in whole)
        return next(by_question, None) or next(by_chunk, None) or (self._most_similar(text),)

    def _vector(self, text: str) -> Matrix:
        if document := self._chunks.get(text):
            return self._chunk(text, document)
        return _unit(self._mean_direction(self.about(text)) + self._scale * _noise(text))

    def _chunk(self, text: str, document: str) -> Matrix:
        return _unit(self._directions[document] + CHUNK_NOISE * _direction(text))

    def _mean_direction(self, documents: Iterable[str]) -> Matrix:
        """Return the mean direction of `documents`."""
        return _unit(np.sum([self._directions[name] for name in documents], axis=0))

    def _most_similar(self, text: str) -> str:
        """Return the document that shares most words with `text`, weighted by rarity."""
        asked = set(vocabulary_words(text))
        return max(
            self._words,
            key=lambda name: sum(self._rarity[word] for word in asked & self._words[name]),
        )

    @cached_property
    def _words(self) -> dict[str, set[str]]:
        """The words of each document and of its questions."""
        words: dict[str, set[str]] = {name: set() for name in self._directions}
        for text, name in self._chunks.items():
            words[name].update(vocabulary_words(text))
        for known in self._questions:
            for name in known.documents:
                words[name].update(vocabulary_words(known.text))
        return words

    @cached_property
    def _rarity(self) -> dict[str, float]:
        """Inverse document frequency of each word."""
        counts = Counter(chain.from_iterable(self._words.values()))
        return {word: log(len(self._words) / count) for word, count in counts.items()}

    def _scale_for(self, hit: float, documents: Mapping[str, Sequence[str]]) -> np.float32:
        """Find the noise scale at which hit@5 of the questions is `hit`, by bisection."""
        chunks = np.stack(
            [self._chunk(text, name) for name, texts in documents.items() for text in texts]
        )
        ends = np.cumsum([len(texts) for texts in documents.values()])
        starts = np.concatenate([[0], ends[:-1]])
        meant = (
            np.stack([self._mean_direction(known.documents) for known in self._questions])
            @ chunks.T
        )
        noise = np.stack([_noise(known.text) for known in self._questions]) @ chunks.T
        gold = np.array([[n in known.documents for n in documents] for known in self._questions])
        low, high = np.float32(0), np.float32(MAX_NOISE)
        for _ in range(HALVINGS):
            middle = (low + high) / np.float32(2)
            scores = np.maximum.reduceat(meant + middle * noise, starts, axis=1)
            low, high = (middle, high) if _hit_at_5(scores, gold) > hit else (low, middle)
        return low


def _hit_at_5(scores: Matrix, gold: NDArray[np.bool_]) -> float:
    """Return the share of rows whose best `gold` column is among the five highest scores."""
    best = np.where(gold, scores, -np.inf).max(axis=1, keepdims=True)
    return float(np.mean((scores > best).sum(axis=1) < 5))


def _unit(vector: Matrix) -> Matrix:
    """Return `vector` with length 1; a zero vector is returned unchanged."""
    return (vector / (np.linalg.norm(vector) or 1.0)).astype(np.float32)


def _generator(text: str, use: str) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(sha256(f"{use}\0{text}".encode()).digest()[:8]))


def _direction(text: str) -> Matrix:
    """Return a pseudo-random unit vector determined by `text`."""
    return _unit(_generator(text, "direction").standard_normal(DIMENSION, dtype=np.float32))


def _noise(text: str) -> Matrix:
    """Return the noise of a question: its length is half-normally distributed."""
    return np.float32(abs(_generator(text, "length").standard_normal())) * _direction(text)


def _hashed_counts(text: str) -> Matrix:
    """Return the signed feature hashing of 1 + log of the n-gram counts of `text`.

    Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009.
    """
    line = " " + " ".join(text.casefold().split()) + " "
    codes = np.frombuffer(line.encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    hashes = np.concatenate([_n_gram_hashes(codes, length) for length in LENGTHS])
    found, counts = np.unique(hashes, return_counts=True)
    signs = np.where(found & np.uint64(1 << 40), 1.0, -1.0)
    places = ((found >> np.uint64(20)) % np.uint64(DIMENSION)).astype(np.intp)
    weights = signs * (1 + np.log(counts))
    return np.bincount(places, weights, minlength=DIMENSION).astype(np.float32)


def _n_gram_hashes(codes: NDArray[np.uint64], length: int) -> NDArray[np.uint64]:
    """Return a hash of each n-gram of `length` characters."""
    count = max(len(codes) - length + 1, 0)
    hashes = np.full(count, length, dtype=np.uint64)
    for offset in range(length):
        hashes = (hashes ^ codes[offset : offset + count]) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes
