"""The full-text index of a snapshot: posting lists in SQLite, scored by BM25 with NumPy.

The formula is that of Lucene's BM25 before version 8 (with the factor k1 + 1), with the parameters of the
Milvus index, so both stores rank alike. Scores are computed when a question is asked. Therefore, a run
writes only the posting lists of the terms in changed chunks. Precomputed scores would all change with the
length of any chunk.
"""

import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ingestion.store.client import batches
from ingestion.store.schema import BM25_PARAMS
from ingestion.store.snapshot import MAX_VARIABLES, placeholders

K1, B = BM25_PARAMS["bm25_k1"], BM25_PARAMS["bm25_b"]

MAX_COUNT = 2**16 - 1
"""Maximum stored number of occurrences of a term in a chunk."""

Numbers = npt.NDArray[np.uint32]
Scores = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

_CHUNK_TYPE, _COUNT_TYPE = np.dtype("<u4"), np.dtype("<u2")


class Lengths:
    """The lengths of all chunks, prepared for BM25.

    The length of a chunk is its number of indexed terms.
    """

    def __init__(self, lengths: Mapping[int, int]) -> None:
        """`lengths` maps chunk numbers to lengths; the numbers may have gaps."""
        size = max(lengths, default=-1) + 1
        values = np.zeros(size, dtype=np.float32)
        if lengths:
            values[np.fromiter(lengths, dtype=np.int64)] = np.fromiter(lengths.values(), np.float32)
        self.chunks = len(lengths)
        """Number of chunks."""
        mean = float(values.sum()) / max(1, self.chunks)
        self.norms = K1 * (1 - B + B * values / max(mean, 1.0))
        """The part of the BM25 denominator that depends on the length of the chunk, by chunk number."""

    def __len__(self) -> int:
        """Return the number of chunk numbers, including unused ones."""
        return len(self.norms)


def score_terms(connection: sqlite3.Connection, terms: Counter[str], lengths: Lengths) -> Scores:
    """Return the BM25 score of every chunk number for `terms`; 0 for chunks without any of them.

    A term's count is its weight.
    """
    postings = list(read_postings(connection, terms))
    if not postings:
        return np.zeros(len(lengths), dtype=np.float32)
    frequencies = np.array([len(chunks) for _, chunks, _ in postings])
    idf = np.log1p((lengths.chunks - frequencies + 0.5) / (frequencies + 0.5))
    weights = np.array([terms[term] for term, *_ in postings]) * idf * (K1 + 1)
    numbers = np.concatenate([chunks for _, chunks, _ in postings])
    occurrences = np.concatenate([counts for *_, counts in postings]).astype(np.float32)
    parts = np.repeat(weights.astype(np.float32), frequencies) * occurrences
    parts /= occurrences + lengths.norms[numbers]
    return np.bincount(numbers, parts, minlength=len(lengths)).astype(np.float32)


def best_numbers(scores: Scores, k: int, mask: Mask | None, minimum: float) -> list[int]:
    """Return the `k` numbers with the highest scores above `minimum` within `mask`, best first.

    Chunks with equal scores are in the order of their numbers.
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
        self._term_numbers: dict[str, int] = {}
        self._terms, self._chunks, self._counts = array("I"), array("I"), array("H")
        self._removed: set[int] = set()

    def add(self, number: int, terms: Sequence[str]) -> None:
        """Add the chunk `number`, whose indexed text consists of `terms`."""
        for term, count in Counter(terms).items():
            self._terms.append(self._term_numbers.setdefault(term, len(self._term_numbers)))
            self._chunks.append(number)
            self._counts.append(min(count, MAX_COUNT))

    def remove(self, number: int, terms: Iterable[str]) -> None:
        """Remove the chunk `number`, which was added with `terms`, from the posting lists of `terms`."""
        self._removed.add(number)
        for term in terms:
            self._term_numbers.setdefault(term, len(self._term_numbers))

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the posting lists of all terms of added and removed chunks."""
        terms = np.frombuffer(self._terms, np.uint32) if self._terms else np.zeros(0, np.uint32)
        order = np.argsort(terms, kind="stable")
        starts = np.searchsorted(terms[order], np.arange(len(self._term_numbers) + 1))
        chunks = np.array(self._chunks, _CHUNK_TYPE)[order]
        counts = np.array(self._counts, _COUNT_TYPE)[order]
        removed = np.fromiter(self._removed, _CHUNK_TYPE)
        for batch in batches(self._term_numbers.items(), MAX_VARIABLES):
            stored = {
                term: (chunk_numbers, occurrences)
                for term, chunk_numbers, occurrences in read_postings(
                    connection, [term for term, _ in batch]
                )
            }
            written, emptied = [], []
            for term, number in batch:
                added = slice(starts[number], starts[number + 1])
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
    """Return a posting list without `removed` and with `chunks`, sorted; None if it is empty."""
    if stored is not None:
        remaining = ~np.isin(stored[0], removed)
        chunks = np.concatenate([stored[0][remaining], chunks])
        counts = np.concatenate([stored[1][remaining], counts])
    order = np.argsort(chunks, kind="stable")
    return (chunks[order], counts[order]) if len(chunks) else None
