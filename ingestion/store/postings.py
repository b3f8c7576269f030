"""The full-text index of a snapshot: posting lists in SQLite, scored by BM25 with NumPy.

The formula is that of Lucene's BM25 before version 8 (with the factor k1 + 1). The parameters are those of
the full-text index on a Milvus server, so a snapshot and a server rank chunks alike. The snapshot contains
no scores, because all scores change when the average length of the chunks changes.
"""

import math
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from ingestion.store.client import batches
from ingestion.store.schema import BM25_PARAMS
from ingestion.store.snapshot import MAX_VARIABLES, placeholders

K1, B = BM25_PARAMS["bm25_k1"], BM25_PARAMS["bm25_b"]

MAX_COUNT = 2**16 - 1
"""Maximum stored number of occurrences of a term in a chunk."""

MAX_CACHED_POSTINGS = 4_000_000
"""Maximum number of postings whose scores are kept in memory, 16 bytes each."""

Numbers = npt.NDArray[np.uint32]
"""Chunk numbers, from the table `chunk` of the snapshot."""
Scores = npt.NDArray[np.float32]
"""The score of each chunk, indexed by chunk number."""
Mask = npt.NDArray[np.bool_]
"""Whether each chunk may be found, indexed by chunk number."""

_CHUNK_TYPE, _COUNT_TYPE = np.dtype("<u4"), np.dtype("<u2")


class TermScores(NamedTuple):
    """The BM25 scores of one term, in the types that `numpy.bincount` takes without converting them."""

    numbers: npt.NDArray[np.intp]
    """The numbers of the chunks that contain the term."""
    scores: npt.NDArray[np.float64]


class Bm25:
    """Scores the chunks of one version of a snapshot.

    The scores of recently used terms are cached, because frequent terms, which have the longest posting
    lists, occur in most questions.
    """

    def __init__(self, lengths: Mapping[int, int]) -> None:
        """Precompute how the length of each chunk affects its scores.

        `lengths` contains the number of indexed terms of each chunk, by chunk number.
        """
        self._size = max(lengths, default=-1) + 1
        values = np.zeros(self._size, dtype=np.float32)
        if lengths:
            values[np.fromiter(lengths, dtype=np.int64)] = np.fromiter(lengths.values(), np.float32)
        self._chunk_count = len(lengths)
        mean = float(values.sum()) / max(1, self._chunk_count)
        self._norms = K1 * (1 - B + B * values / max(mean, 1.0))
        """The part of the BM25 denominator that depends on the length of the chunk, by chunk number."""
        self._terms: LRUCache[str, TermScores] = LRUCache(
            MAX_CACHED_POSTINGS, getsizeof=lambda term: len(term.numbers)
        )

    def __len__(self) -> int:
        """Return the highest chunk number plus one."""
        return self._size

    def scores(self, connection: sqlite3.Connection, terms: Counter[str]) -> Scores:
        """Return the score of every chunk number for `terms`; 0 for chunks without any of them.

        The count of a term in `terms` is its weight.
        """
        known = {term: self._terms[term] for term in terms if term in self._terms}
        new = [term for term in terms if term not in known]
        for term, numbers, counts in read_postings(connection, new):
            known[term] = self._score(numbers, counts)
            if len(numbers) <= MAX_CACHED_POSTINGS:
                self._terms[term] = known[term]
        found = [term for term in terms if term in known]
        if not found:
            return np.zeros(self._size, dtype=np.float32)
        all_numbers = np.concatenate([known[term].numbers for term in found])
        scores = np.concatenate([terms[term] * known[term].scores for term in found])
        return np.bincount(all_numbers, scores, minlength=self._size).astype(np.float32)

    def _score(self, numbers: Numbers, counts: npt.NDArray[np.uint16]) -> TermScores:
        """Return the scores of a term, which occurs `counts[i]` times in the chunk `numbers[i]`."""
        idf = math.log1p((self._chunk_count - len(numbers) + 0.5) / (len(numbers) + 0.5))
        occurrences = counts.astype(np.float64)
        scores = idf * (K1 + 1) * occurrences / (occurrences + self._norms[numbers])
        return TermScores(numbers.astype(np.intp), scores)


def best_numbers(scores: Scores, k: int, mask: Mask | None, minimum: float) -> list[int]:
    """Return the numbers of the `k` best chunks with a score above `minimum`, best first.

    The result is shorter if fewer chunks match. `scores` and `mask` are indexed by chunk number. Only
    chunks for which `mask` is true are considered, or all chunks if `mask` is None. Chunks with equal
    scores are in the order of their numbers.
    """
    matches = scores > minimum
    numbers = np.flatnonzero(matches if mask is None else matches & mask)
    if len(numbers) > k:
        threshold = np.partition(scores[numbers], -k)[-k]
        numbers = numbers[scores[numbers] >= threshold]
    order = np.argsort(-scores[numbers], kind="stable")
    best: list[int] = numbers[order][:k].tolist()
    return best


def read_postings(
    connection: sqlite3.Connection, terms: Iterable[str]
) -> Iterator[tuple[str, Numbers, npt.NDArray[np.uint16]]]:
    """Yield each of `terms` that is indexed, with its chunk numbers and its occurrences in each chunk."""
    for batch in batches(terms, MAX_VARIABLES):
        rows = connection.execute(
            f"SELECT term, chunks, counts FROM posting WHERE term IN {placeholders(batch)}", batch
        )
        for term, chunks, counts in rows:
            yield term, np.frombuffer(chunks, _CHUNK_TYPE), np.frombuffer(counts, _COUNT_TYPE)


class PostingsUpdate:
    """Collects the terms of added and removed chunks, and writes their posting lists at the end."""

    def __init__(self) -> None:
        self._term_indexes: dict[str, int] = {}
        """An index, from 0, for each term whose posting list changes."""
        # Added postings, in three arrays: the term's index, the chunk's number and the occurrences.
        self._terms, self._chunks, self._counts = array("I"), array("I"), array("H")
        self._removed: set[int] = set()
        """Numbers of removed chunks."""

    def add(self, number: int, terms: Sequence[str]) -> None:
        """Add the chunk `number`, whose indexed text consists of `terms`."""
        for term, count in Counter(terms).items():
            self._terms.append(self._term_index(term))
            self._chunks.append(number)
            self._counts.append(min(count, MAX_COUNT))

    def remove(self, number: int, terms: Iterable[str]) -> None:
        """Remove the chunk `number`, which was added with `terms`, from the posting lists of `terms`."""
        self._removed.add(number)
        for term in terms:
            self._term_index(term)

    def _term_index(self, term: str) -> int:
        return self._term_indexes.setdefault(term, len(self._term_indexes))

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the posting lists of all terms of added and removed chunks."""
        terms = np.asarray(self._terms)
        order = np.argsort(terms, kind="stable")
        # The chunks of the term with index i are `chunks[starts[i]:starts[i + 1]]`. The same slice of
        # `counts` has the occurrences of the term in these chunks.
        starts = np.searchsorted(terms[order], np.arange(len(self._term_indexes) + 1))
        chunks = np.asarray(self._chunks, _CHUNK_TYPE)[order]
        counts = np.asarray(self._counts, _COUNT_TYPE)[order]
        removed = np.fromiter(self._removed, _CHUNK_TYPE)
        for batch in batches(self._term_indexes.items(), MAX_VARIABLES):
            postings = read_postings(connection, [term for term, _ in batch])
            stored = {term: (numbers, occurrences) for term, numbers, occurrences in postings}
            written, emptied = [], []
            for term, index in batch:
                added = slice(starts[index], starts[index + 1])
                merged = _merge(stored.get(term), removed, chunks[added], counts[added])
                if merged is None:
                    emptied.append((term,))
                else:
                    written.append((term, merged[0].tobytes(), merged[1].tobytes()))
            connection.executemany("INSERT OR REPLACE INTO posting VALUES (?, ?, ?)", written)
            connection.executemany("DELETE FROM posting WHERE term = ?", emptied)


def _merge(
    stored: tuple[Numbers, npt.NDArray[np.uint16]] | None,
    removed: Numbers,
    chunks: Numbers,
    counts: npt.NDArray[np.uint16],
) -> tuple[Numbers, npt.NDArray[np.uint16]] | None:
    """Return the posting list of a term, sorted by chunk number; None if it is empty.

    `stored` is the previous list. The postings of the `removed` chunks are left out, and those of `chunks`
    with their `counts` are added.
    """
    if stored is not None:
        remaining = ~np.isin(stored[0], removed)
        chunks = np.concatenate([stored[0][remaining], chunks])
        counts = np.concatenate([stored[1][remaining], counts])
    order = np.argsort(chunks, kind="stable")
    return (chunks[order], counts[order]) if len(chunks) else None
