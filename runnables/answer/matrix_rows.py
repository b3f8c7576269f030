"""Finds the rows of matrix tables that a question asks about.

A matrix table has a column for each plan, role or SDK, for example. A question about one of its cells names
the row and the column. A quoted row repeats the title of each column before its cell. The words of the
titles therefore occur in every row, and only the row's name shows which row the question asks about.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ingestion.text.markdown_blocks import plain_text
from ingestion.text.words import split_words, stem
from runnables.answer.segments import Segment
from runnables.question.needs import states_quantity
from runnables.retrieval.query_terms import QueryTerms

MIN_COLUMNS = 3
"""Minimum number of columns of a matrix table."""

MIN_NAMED_SHARE = 0.3
"""Minimum weight of the words that name a cell, relative to all words of the question."""

_COUNT = re.compile(r"\d[\d,.]*\s?[kKmM万]?\+?")
"""A cell that is only a number, such as `1,000` and `10k+`."""


class MatrixRow(NamedTuple):
    """A row with a cell that a question asks about."""

    words: frozenset[str]
    """The words of the question in the row's name and in the titles of the columns after the name."""
    name_weight: float
    """The weight of the words in the row's name."""
    states_quantity: bool
    """Whether the cell states a quantity that the question asks for, such as a number or a price."""


def matrix_rows(terms: QueryTerms, segments: Sequence[Segment]) -> Mapping[int, MatrixRow]:
    """Return the rows with a cell that the question asks about, by the index of their segment.

    The question names the cell's column, and it names the row or asks for the quantity that the cell
    states. Of each table, only the rows whose names have the most weight are returned.
    """
    rows = {
        index: row
        for index, segment in enumerate(segments)
        if segment.kind == "row" and len(segment.cells) >= MIN_COLUMNS
        if (row := _matrix_row(terms, segment)) and terms.share(row.words) >= MIN_NAMED_SHARE
    }
    best: dict[int, float] = {}
    for index, row in rows.items():
        block = segments[index].block
        best[block] = max(row.name_weight, best.get(block, 0.0))
    return {
        index: row for index, row in rows.items() if row.name_weight >= best[segments[index].block]
    }


def _matrix_row(terms: QueryTerms, segment: Segment) -> MatrixRow | None:
    """Return the row of `segment`, a table row, or None if the question asks about none of its cells."""
    of_name = _words_in(terms, segment.name)
    columns = [
        (words, cell)
        for title, cell in segment.cells
        if (words := _words_in(terms, title) - of_name) and plain_text(cell) != segment.name
    ]
    is_stated = any(states_quantity(cell, terms.quantities) for _, cell in columns)
    if not columns or not (of_name or is_stated):
        return None
    # The titles say what a number counts, so the cell may be a bare number.
    is_count = "count" in terms.quantities and any(_COUNT.fullmatch(cell) for _, cell in columns)
    words = of_name.union(*(words for words, _ in columns))
    return MatrixRow(words, terms.weight(of_name), is_stated or is_count)


def _words_in(terms: QueryTerms, text: str) -> frozenset[str]:
    """Return the words of the question in `text`. Synonyms do not count: a title is short and exact."""
    stems = _stems(text)
    return frozenset(
        word for word in terms.weights if word in stems or (not word.isascii() and word in text)
    )


@lru_cache(maxsize=10_000)
def _stems(text: str) -> frozenset[str]:
    """Return the stems of the words in `text`. Cached, because all rows of a table have the same titles."""
    return frozenset(map(stem, split_words(text)))
