"""Groups questions by meaning, using the terms that indicate topics and, if available, embeddings.

The method is agglomerative clustering with average linkage (UPGMA; Sokal and Michener, 1958) from scipy.
The similarity of two questions is the cosine similarity of their weighted terms or of their embeddings,
whichever is higher. Afterwards, groups in different languages that share terms are joined.

The weight of a term is the product of two factors:

- The logarithm of observed / expected frequency, as in pointwise mutual information (Church and Hanks,
  "Word Association Norms, Mutual Information, and Lexicography", 1990).
- log(1 + n), where n is the number of questions that contain the term.

The expected frequency is based on everyday language, general developer vocabulary and the platform's own
documents, not on the questions. Therefore, a term that occurs in many questions keeps its weight, and
common words such as "interface" and "order" have a low weight.

A term that is common in the documents is also discounted: the more questions contain it, the less it
contributes to their similarity (inverse document frequency). Therefore, questions are not joined merely
because they contain the central noun of a platform, such as "booking".
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ingestion.text.language import (
    COMMON_ZIPF,
    RAREST_ZIPF,
    detect_language,
    listed_words,
    zipf_frequency,
)
from ingestion.text.words import stem, vocabulary_words
from runnables.question.extract_details import extract_details
from runnables.question.query_analysis import Glossary
from runnables.question.topic_scorer import DEVELOPER_SHARE, DEVELOPER_WORDS, is_content_word
from schemas.insights import MAX_QUESTION_CHARS

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]

MAX_TEXTS = 3_000
"""Maximum number of texts to group, because time and memory grow with the square of their number."""

MIN_GROUP_SIMILARITY = 0.4
"""Minimum average similarity at which two groups are joined.

Measured on sets that contain three topics with fifteen wordings each, among unrelated questions. The
three topics become the three largest groups in this share of the sets:

- sets of 85 to 165 questions: 100% with 0.4 or 0.35, 75% with 0.3 or 0.25
- sets of 400 questions: 75% with 0.4, 38% with 0.35, 25% with 0.3
"""

MIN_BRIDGE_SIMILARITY = 0.05
"""Minimum similarity of centroids at which groups in different languages are joined.

Measured on the question sets of `MIN_GROUP_SIMILARITY`: 0.067 to 0.16 for groups with the same topic, at
most 0.036 for unrelated groups with two or more terms in common. With one term in common, unrelated groups
reach 0.16; `MIN_BRIDGE_TERMS` excludes them.
"""

MIN_BRIDGE_TERMS = 2
"""Minimum number of terms that groups in different languages must share to be joined."""

MIN_BRIDGE_GROUP_SIZE = 3
"""Minimum number of questions in a group that is joined with a group in another language."""

MIN_TERM_SHARE = 0.4
"""A term counts as shared by a group if at least this share of the group's questions contain it."""

MAX_UNDOCUMENTED_SHARE = 1e-4
"""Share of the documents' words below which a term counts as undocumented (one word in 10,000)."""

UNSPLIT_WORD_ZIPF = 5.0
"""Chinese words of at least this Zipf frequency are not split into characters.

The characters of a rarer word are additional terms. For example, 优惠券 also yields the term 券, but 商品
does not yield 商 and 品.
"""

COMMON_CHARACTER_SHARE = 10 ** (COMMON_ZIPF + 0.7 - 9)
"""A character that occurs in at least this share of the words of everyday text yields no term: 1 in 300.

The limit is higher than the one for common words (COMMON_ZIPF, 1 in 1,600), because a character occurs in
many words.
"""

COMMON_DOCUMENT_WORD_SHARE = 1e-3
"""Share of the documents' words above which a word counts as common.

Common Chinese words are not split into characters, and terms of common words are discounted.
"""

DISCOUNT_BASE = 50
"""A term that is common in the documents is discounted if more than 1 in 50 questions contain it."""

MIN_DISCOUNT_TEXTS = 100
"""The discount is computed as if there were at least this many questions.

If there are only a few, most of them can be about one topic, whose terms would otherwise be discounted too
much.
"""

WordShares = Callable[[Iterable[str]], Mapping[str, float]]
"""Maps words to their share of the documents' words; words that do not occur are omitted."""

_DEVELOPER_CHARACTERS = frozenset("".join(word for word in DEVELOPER_WORDS if not word.isascii()))


@dataclass(frozen=True)
class TopicTerm:
    """A word's stem, or a Chinese character."""

    text: str
    word: str
    """For a stem, the first word from which it was derived; for a character, the character itself."""
    expected_share: float
    """Expected share of this term among the words of questions."""
    document_share: float
    """Share (0 to 1) of the documents' words that equal the word from which the term was derived.

    If the term was derived from several words, the most frequent one counts.
    """


def extract_terms(
    texts: Sequence[str],
    document_word_shares: WordShares | None = None,
    glossary: Glossary | None = None,
) -> list[list[TopicTerm]]:
    """Return the distinct terms of each text; equal terms are the same object in all texts."""
    words_by_text = [_content_words(text, glossary) for text in texts]
    distinct = dict.fromkeys(word for words in words_by_text for word in words)
    shares = document_word_shares(distinct) if document_word_shares else {}
    by_word = {word: list(_terms(word, shares.get(word, 0.0))) for word in distinct}
    merged: dict[str, TopicTerm] = {}
    for term in (term for word_terms in by_word.values() for term in word_terms):
        other = merged.get(term.text, term)
        merged[term.text] = TopicTerm(
            term.text,
            other.word,
            max(term.expected_share, other.expected_share),
            max(term.document_share, other.document_share),
        )
    keys_by_text = [
        dict.fromkeys(term.text for word in words for term in by_word[word])
        for words in words_by_text
    ]
    return [[merged[key] for key in keys] for keys in keys_by_text]


def term_weights(terms: Sequence[Sequence[TopicTerm]]) -> dict[TopicTerm, float]:
    """Return the weight of each term; terms that are not more frequent than expected are omitted."""
    counts = Counter(term for text_terms in terms for term in text_terms)
    total = sum(counts.values())
    surprise = {
        term: math.log(count / (total * term.expected_share)) for term, count in counts.items()
    }
    return {
        term: surprise[term] * math.log(1 + count)
        for term, count in counts.items()
        if surprise[term] > 0
    }


def _discount_factors(terms: Sequence[Sequence[TopicTerm]]) -> dict[TopicTerm, float]:
    """Return the factor, 0 to 1, by which each term contributes to the similarity of two texts.

    The factor is less than 1 if the term is common in the documents and occurs in more than 1 /
    `DISCOUNT_BASE` of the texts, where at least `MIN_DISCOUNT_TEXTS` texts are assumed.
    """
    counts = Counter(term for text_terms in terms for term in text_terms)
    texts = max(len(terms), MIN_DISCOUNT_TEXTS)
    return {
        term: min(1.0, math.log(texts / count) / math.log(DISCOUNT_BASE))
        if term.document_share > COMMON_DOCUMENT_WORD_SHARE
        else 1.0
        for term, count in counts.items()
    }


def _content_words(text: str, glossary: Glossary | None) -> list[str]:
    text = extract_details(text[:MAX_QUESTION_CHARS]).search_query
    if glossary:
        text = " ".join([text, *glossary.equivalents(text)])
    return [word for word in dict.fromkeys(vocabulary_words(text)) if is_content_word(word)]


def _terms(word: str, document_share: float) -> Iterator[TopicTerm]:
    """Yield the term of `word` and, for an uncommon Chinese word, the terms of its characters.

    `document_share` is the word's share of the documents' words. The characters make 代金券 similar to
    优惠券, because both words contain 券.
    """
    everyday = 10 ** (zipf_frequency(word) - 9)
    is_developer_word = word in DEVELOPER_WORDS
    has_developer_share = is_developer_word or word in _DEVELOPER_CHARACTERS
    expected = max(everyday, DEVELOPER_SHARE if has_developer_share else 0.0, document_share)
    yield TopicTerm(stem(word), word, expected, document_share)
    is_common = (
        is_developer_word
        or document_share > COMMON_DOCUMENT_WORD_SHARE
        or zipf_frequency(word) >= UNSPLIT_WORD_ZIPF
    )
    if not word.isascii() and not is_common:
        for character in dict.fromkeys(word):
            yield from _character_terms(character, document_share)


def _character_terms(character: str, document_share: float) -> Iterator[TopicTerm]:
    everyday = max(_character_shares().get(character, 0.0), 10 ** (RAREST_ZIPF - 9))
    if everyday < COMMON_CHARACTER_SHARE:
        developer_share = DEVELOPER_SHARE if character in _DEVELOPER_CHARACTERS else 0.0
        share = max(everyday, developer_share)
        yield TopicTerm(character, character, share, document_share)


@lru_cache
def _character_shares() -> dict[str, float]:
    """Map each character to the share of words that contain it, in everyday Chinese text."""
    shares: defaultdict[str, float] = defaultdict(float)
    for word, zipf in listed_words("zh"):
        for character in set(word):
            shares[character] += 10 ** (zipf - 9)
    return dict(shares)


@dataclass(frozen=True)
class TextGroup:
    """Texts with the same meaning."""

    members: tuple[int, ...]
    """Indices into the grouped texts, ascending."""
    representative: int
    """The member most similar to all others (medoid)."""
    undocumented: tuple[str, ...]
    """Words that members share and the documents lack or hardly contain, the most frequent first.

    Empty if the word frequencies of the documents are not known.
    """
    name: str = ""
    """A name for the topic, written by a model; empty if no model named it."""


def group_texts(
    texts: Sequence[str],
    vectors: Sequence[Sequence[float]] | None = None,
    *,
    document_word_shares: WordShares | None = None,
    glossary: Glossary | None = None,
) -> list[TextGroup]:
    """Group `texts` by meaning, the largest group first; a group can have a single member.

    `vectors` are the embeddings of `texts`, `document_word_shares` returns how frequent words are in the
    documents, and `glossary` defines synonyms. Each of them can be None. Only the first `MAX_TEXTS` texts
    are grouped.
    """
    texts = texts[:MAX_TEXTS]
    if not texts:
        return []
    terms = extract_terms(texts, document_word_shares, glossary)
    rows = _term_matrix(terms)
    similarity = _similarity(rows, vectors)
    clusters = _join_languages(_cluster(similarity), rows, texts)
    groups = [_group(sorted(members), similarity, terms) for members in clusters]
    if document_word_shares is None:
        groups = [replace(group, undocumented=()) for group in groups]
    return sorted(groups, key=lambda group: (-len(group.members), group.members))


def _term_matrix(terms: Sequence[Sequence[TopicTerm]]) -> Any:
    """Return a sparse matrix of term weights, with a row per text and a column per term.

    Each row is scaled to unit length before the discounts are applied. In the opposite order, scaling would
    undo the discount of a text that has only one term.
    """
    import numpy as np
    from scipy import sparse

    weights = term_weights(terms)
    columns = {term: column for column, term in enumerate(weights)}
    cells = [
        (row, columns[term], weights[term])
        for row, text_terms in enumerate(terms)
        for term in text_terms
        if term in weights
    ]
    row, column, weight = zip(*cells, strict=True) if cells else ((), (), ())
    shape = (len(terms), max(len(columns), 1))
    matrix = sparse.csr_array((np.asarray(weight, np.float32), (row, column)), shape=shape)
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    factors = _discount_factors(terms)
    # A similarity multiplies the cells of two texts, so each cell gets the square root of the factor.
    roots = np.sqrt([factors[term] for term in columns] or [1.0]).astype(np.float32)
    unit = sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ matrix
    return unit @ sparse.diags_array(roots)


def _similarity(rows: Any, vectors: Sequence[Sequence[float]] | None) -> "Matrix":
    """Return the cosine similarity of terms or of embeddings, whichever is higher; shape (texts, texts)."""
    import numpy as np

    by_terms = np.asarray((rows @ rows.T).toarray(), np.float32)
    if not vectors:
        return by_terms
    return np.maximum(by_terms, _centred_cosines(np.asarray(vectors, np.float32)[: len(by_terms)]))


def _centred_cosines(vectors: "Matrix") -> "Matrix":
    """Return cosine similarities after subtracting the mean vector, so that unrelated texts are near 0.

    Mu and Viswanath, "All-but-the-Top", ICLR 2018.
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
    for index, label in enumerate(fcluster(tree, 1 - MIN_GROUP_SIMILARITY, "distance")):
        clusters.setdefault(int(label), []).append(index)
    return list(clusters.values())


def _join_languages(clusters: list[list[int]], rows: Any, texts: Sequence[str]) -> list[list[int]]:
    """Join clusters in different languages that share enough terms, the most similar pair first."""
    large = [members for members in clusters if len(members) >= MIN_BRIDGE_GROUP_SIZE]
    small = [members for members in clusters if len(members) < MIN_BRIDGE_GROUP_SIZE]
    while best := max(_joinable_pairs(large, rows, texts), default=None):
        _, one, other = best
        large[one] = large[one] + large[other]
        del large[other]
    return large + small


def _joinable_pairs(
    clusters: Sequence[Sequence[int]], rows: Any, texts: Sequence[str]
) -> Iterator[tuple[float, int, int]]:
    """Yield the similarity and the indices of each pair of clusters that may be joined."""
    centroids = [_centroid(rows, members) for members in clusters]
    chinese = [_is_chinese([texts[index] for index in members]) for members in clusters]
    for one, other in combinations(range(len(clusters)), 2):
        common = centroids[one] * centroids[other]
        pair_similarity = float(common.sum())
        enough = (
            pair_similarity >= MIN_BRIDGE_SIMILARITY
            # A term counts as shared only if it contributes more than a tenth of the required similarity.
            and (common > MIN_BRIDGE_SIMILARITY / 10).sum() >= MIN_BRIDGE_TERMS
        )
        if enough and chinese[one] != chinese[other]:
            yield pair_similarity, one, other


def _centroid(rows: Any, members: Sequence[int]) -> Any:
    import numpy as np

    centroid = np.asarray(rows[list(members)].sum(axis=0))
    return centroid / (np.linalg.norm(centroid) or 1)


def _is_chinese(texts: Sequence[str]) -> bool:
    return sum(detect_language(text) == "zh" for text in texts) * 2 > len(texts)


def _group(
    members: Sequence[int], similarity: "Matrix", terms: Sequence[Sequence[TopicTerm]]
) -> TextGroup:
    import numpy as np

    inner = similarity[np.ix_(members, members)].sum(axis=1)
    counts = Counter(term for index in members for term in terms[index])
    shared = [
        term
        for term, count in counts.most_common()
        if count >= MIN_TERM_SHARE * len(members) and term.document_share < MAX_UNDOCUMENTED_SHARE
    ]
    return TextGroup(
        members=tuple(members),
        representative=members[int(inner.argmax())],
        undocumented=tuple(term.word for term in shared),
    )
