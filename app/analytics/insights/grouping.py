"""Questions of one meaning, put together by their words and, where there are any, by their vectors.

Agglomerative clustering with average linkage (UPGMA; Sokal and Michener, 1958, by scipy) over the cosine
of what each question's terms tell. What it cannot see is joined afterwards: groups in two languages that
have words in common.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from app.analytics.insights.terms import TopicTerm, WordShares, terms_of, weights_of
from ingestion.text.language import detect_language
from runnables.retrieval.query_analysis import Glossary

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]

MOST_TEXTS = 3_000
"""The first ones are grouped, all others left out: time and memory grow with the square."""

SIMILARITY = 0.4
"""Groups are joined down to this average similarity.

Four sets of 85 to 165 questions with three topics of fifteen wordings each: at 0.4 and 0.35 the topics
are the first three groups of all four, at 0.3 and 0.25 of three. In reports over 400 questions they are
the first three of three in four at 0.4, of three in eight at 0.35, of one in four at 0.3.
"""

BRIDGE = 0.05
"""Groups of two languages are joined from this similarity of their centres on.

In the same sets those of one topic have 0.067 to 0.16, strangers at most 0.036; or 0.16, where one word
is all that they have in common: hence `BRIDGE_TERMS`.
"""

BRIDGE_TERMS = 2

LARGE = 3
"""Questions that a group has before it is joined with one of the other language."""

SHARED = 0.4
"""Part of a group's questions that have a term which is the group's."""

UNDOCUMENTED = 1e-4
"""A term is not documented when its share of the documents' words is less: one word in 10,000."""


@dataclass(frozen=True)
class TextGroup:
    """Questions of one meaning."""

    members: tuple[int, ...]
    """Their places in what was grouped, in order."""
    typical: int
    """The member that is most like all others."""
    undocumented: tuple[str, ...]
    """Terms that members share and the documents do not hold, the most common first."""
    name: str = ""
    """What a model calls their topic."""


def group(
    texts: Sequence[str],
    vectors: Sequence[Sequence[float]] | None = None,
    *,
    documented: WordShares | None = None,
    glossary: Glossary | None = None,
) -> list[TextGroup]:
    """`texts` grouped by meaning, the largest group first; a text like no other is a group of its own.

    `vectors` are the texts' embeddings, `documented` says how common words are in the documents, and
    `glossary` which terms mean the same. Of more than `MOST_TEXTS` only the first are grouped.
    """
    texts = texts[:MOST_TEXTS]
    if not texts:
        return []
    terms = terms_of(texts, documented, glossary)
    rows = _rows(terms)
    similarity = _similarity(rows, vectors)
    clusters = _bridge(_cluster(similarity), rows, texts)
    groups = [_group(sorted(members), similarity, terms) for members in clusters]
    return sorted(groups, key=lambda each: (-len(each.members), each.members))


def _rows(terms: Sequence[Sequence[TopicTerm]]) -> Any:
    """A sparse matrix: a row of unit length a text, a column a term."""
    import numpy as np
    from scipy import sparse

    weights = weights_of(terms)
    columns = {term: column for column, term in enumerate(weights)}
    cells = [
        (row, columns[t], weights[t])
        for row, each in enumerate(terms)
        for t in each
        if t in weights
    ]
    row, column, weight = zip(*cells, strict=True) if cells else ((), (), ())
    shape = (len(terms), max(len(columns), 1))
    matrix = sparse.csr_array((np.asarray(weight, np.float32), (row, column)), shape=shape)
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    return sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ matrix


def _similarity(rows: Any, vectors: Sequence[Sequence[float]] | None) -> "Matrix":
    """Cosines of the words; of the vectors where these see more."""
    import numpy as np

    words = np.asarray((rows @ rows.T).toarray(), np.float32)
    if not vectors:
        return words
    return np.maximum(words, _centred_cosines(np.asarray(vectors, np.float32)[: len(words)]))


def _centred_cosines(vectors: "Matrix") -> "Matrix":
    """Cosines after the mean is taken out, which all texts of a set have in common (Mu and Viswanath,
    "All-but-the-Top", ICLR 2018): strangers are then about 0 in any model.
    """
    import numpy as np

    centred = vectors - vectors.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    unit = centred / np.where(lengths > 0, lengths, 1)
    return np.asarray(unit @ unit.T, np.float32)


def _cluster(similarity: "Matrix") -> list[list[int]]:
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(similarity) == 1:
        return [[0]]
    upper = np.triu_indices(len(similarity), 1)
    tree = linkage(1 - np.clip(similarity[upper], 0, 1), "average")
    clusters: dict[int, list[int]] = {}
    for index, label in enumerate(fcluster(tree, 1 - SIMILARITY, "distance")):
        clusters.setdefault(int(label), []).append(index)
    return list(clusters.values())


def _bridge(clusters: list[list[int]], rows: Any, texts: Sequence[str]) -> list[list[int]]:
    """`clusters`, those of two languages joined that have enough words in common, the likest first."""
    large = [members for members in clusters if len(members) >= LARGE]
    small = [members for members in clusters if len(members) < LARGE]
    while found := max(_bridges(large, rows, texts), default=None):
        _, one, other = found
        large[one] = large[one] + large[other]
        del large[other]
    return large + small


def _bridges(
    clusters: Sequence[Sequence[int]], rows: Any, texts: Sequence[str]
) -> Iterator[tuple[float, int, int]]:
    """Similarity and places of each two clusters that may be joined."""
    centres = [_centre(rows, members) for members in clusters]
    chinese = [_is_chinese([texts[index] for index in members]) for members in clusters]
    for one, other in combinations(range(len(clusters)), 2):
        common = centres[one] * centres[other]
        likeness = float(common.sum())
        enough = likeness >= BRIDGE and (common > BRIDGE / 10).sum() >= BRIDGE_TERMS
        if enough and chinese[one] != chinese[other]:
            yield likeness, one, other


def _centre(rows: Any, members: Sequence[int]) -> Any:
    import numpy as np

    centre = np.asarray(rows[list(members)].sum(axis=0))
    return centre / (np.linalg.norm(centre) or 1)


def _is_chinese(texts: Sequence[str]) -> bool:
    return sum(detect_language(text) == "zh" for text in texts) * 2 > len(texts)


def _group(
    members: Sequence[int], similarity: "Matrix", terms: Sequence[Sequence[TopicTerm]]
) -> TextGroup:
    import numpy as np

    inner = similarity[np.ix_(members, members)].sum(axis=1)
    counts: dict[TopicTerm, int] = {}
    for term in (term for index in members for term in terms[index]):
        counts[term] = counts.get(term, 0) + 1
    shared = [
        term
        for term in sorted(counts, key=lambda term: -counts[term])
        if counts[term] >= SHARED * len(members) and term.documented < UNDOCUMENTED
    ]
    return TextGroup(
        members=tuple(members),
        typical=members[int(inner.argmax())],
        undocumented=tuple(term.text for term in shared),
    )
