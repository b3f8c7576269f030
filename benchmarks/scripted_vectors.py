"""Three embeddings without a model, from meaningless to good; the same vectors for the same text."""

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
"""A vector of length 1 a row; one such vector, where it has one axis."""

DIMENSION = 256

LENGTHS = (2, 3, 4, 5)
"""Characters of the n-grams that are counted."""

HIT = 0.97
"""The share of questions whose document an oracle has among the first five."""

CHUNK_NOISE = 0.3
"""How long the noise of a chunk is, its document's vector being 1 long."""

MOST_NOISE = 10.0
"""The longest noise on the whole: among five documents, no question would be missed at any length."""

HALVINGS = 20
"""Steps in which the length of the questions' noise is found."""


class Embedding(Protocol):
    """Texts -> vectors."""

    @property
    def name(self) -> str:
        """What the embedding is called in tables."""

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """A row for each of `texts`."""


class Noise:
    """Vectors that mean nothing: a direction by chance for each text."""

    name = "noise"

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """A row for each of `texts`."""
        return np.stack([_direction(text) for text in texts])


class NGrams:
    """Vectors of the n-grams that a text has: a real embedding, and a mediocre one."""

    name = "n-grams"

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """A row for each of `texts`."""
        return np.stack([_unit(_hashed_counts(text)) for text in texts])


class Known(NamedTuple):
    """A question that an oracle knows, and the documents that answer it."""

    text: str
    documents: tuple[str, ...]


class Oracle:
    """Vectors that know the answers: a question lies near the documents that are its gold.

    How near differs: the noise of a question is as long as half a normal distribution has it, by a scale
    at which the share `hit` of questions has its document among the nearest five. Any other text lies as
    near the document that it is about.
    """

    name = "oracle"

    def __init__(
        self,
        documents: Mapping[str, Sequence[str]],
        questions: Mapping[str, Iterable[str]],
        hit: float = HIT,
    ) -> None:
        """`documents` are the texts of chunks by document, `questions` the gold documents by question."""
        self._directions = {document: _direction(document) for document in documents}
        self._chunks = {text: name for name, texts in documents.items() for text in texts}
        self._questions = [Known(text, tuple(gold)) for text, gold in questions.items()]
        self._by_question = dict(self._questions)
        self._scale = self._scale_for(hit, documents)

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """A row for each of `texts`."""
        return np.stack([self._vector(text) for text in texts])

    def about(self, text: str) -> tuple[str, ...]:
        """The documents that `text` is about: as a question, or part of one or a page, or by likeness."""
        if text in self._by_question:
            return self._by_question[text]
        asked = (known.documents for known in self._questions if text in known.text)
        held = ((name,) for whole, name in self._chunks.items() if text in whole)
        return next(asked, None) or next(held, None) or (self._likest(text),)

    def _vector(self, text: str) -> Matrix:
        if document := self._chunks.get(text):
            return self._chunk(text, document)
        return _unit(self._meant(self.about(text)) + self._scale * _noise(text))

    def _chunk(self, text: str, document: str) -> Matrix:
        return _unit(self._directions[document] + CHUNK_NOISE * _direction(text))

    def _meant(self, documents: Iterable[str]) -> Matrix:
        """The direction between those of `documents`."""
        return _unit(np.sum([self._directions[name] for name in documents], axis=0))

    def _likest(self, text: str) -> str:
        """The document that has the most of the words of `text`, rare ones counting for more."""
        asked = set(vocabulary_words(text))
        return max(
            self._words,
            key=lambda name: sum(self._rarity[word] for word in asked & self._words[name]),
        )

    @cached_property
    def _words(self) -> dict[str, set[str]]:
        """The words of each document, and of the questions that it answers."""
        words: dict[str, set[str]] = {name: set() for name in self._directions}
        for text, name in self._chunks.items():
            words[name].update(vocabulary_words(text))
        for known in self._questions:
            for name in known.documents:
                words[name].update(vocabulary_words(known.text))
        return words

    @cached_property
    def _rarity(self) -> dict[str, float]:
        """The logarithm of how many documents there are to one that has a word."""
        counts = Counter(chain.from_iterable(self._words.values()))
        return {word: log(len(self._words) / count) for word, count in counts.items()}

    def _scale_for(self, hit: float, documents: Mapping[str, Sequence[str]]) -> np.float32:
        """The scale of the noise at which the share `hit` of the questions is met, by halving."""
        chunks = np.stack(
            [self._chunk(text, name) for name, texts in documents.items() for text in texts]
        )
        ends = np.cumsum([len(texts) for texts in documents.values()])
        starts = np.concatenate([[0], ends[:-1]])
        meant = np.stack([self._meant(known.documents) for known in self._questions]) @ chunks.T
        noise = np.stack([_noise(known.text) for known in self._questions]) @ chunks.T
        gold = np.array([[n in known.documents for n in documents] for known in self._questions])
        low, high = np.float32(0), np.float32(MOST_NOISE)
        for _ in range(HALVINGS):
            middle = (low + high) / np.float32(2)
            scores = np.maximum.reduceat(meant + middle * noise, starts, axis=1)
            low, high = (middle, high) if _hit_at_5(scores, gold) > hit else (low, middle)
        return low


def _hit_at_5(scores: Matrix, gold: NDArray[np.bool_]) -> float:
    """The share of rows in which fewer than five columns score higher than the best that is `gold`."""
    best = np.where(gold, scores, -np.inf).max(axis=1, keepdims=True)
    return float(np.mean((scores > best).sum(axis=1) < 5))


def _unit(vector: Matrix) -> Matrix:
    """`vector` at length 1; without any length, as it is."""
    return (vector / (np.linalg.norm(vector) or 1.0)).astype(np.float32)


def _chance(text: str, use: str) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(sha256(f"{use}\0{text}".encode()).digest()[:8]))


def _direction(text: str) -> Matrix:
    """A direction that `text` determines, and says nothing about it."""
    return _unit(_chance(text, "direction").standard_normal(DIMENSION, dtype=np.float32))


def _noise(text: str) -> Matrix:
    """What a question adds to where it should lie: mostly about 1 long or shorter, seldom much longer."""
    return np.float32(abs(_chance(text, "length").standard_normal())) * _direction(text)


def _hashed_counts(text: str) -> Matrix:
    """1 + log of how often each n-gram stands in `text`, added up by hash with a sign each.

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
    """A hash of each run of `length` characters; none where there are fewer."""
    count = max(len(codes) - length + 1, 0)
    hashes = np.full(count, length, dtype=np.uint64)
    for offset in range(length):
        hashes = (hashes ^ codes[offset : offset + count]) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes
