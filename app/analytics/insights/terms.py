"""The words of questions that carry their topic, and how much each of them tells.

A term tells the more, the more questions have it than chance would give them: the logarithm of observed
over expected, as in pointwise mutual information (Church and Hanks, "Word Association Norms, Mutual
Information, and Lexicography", 1990), times that of how many have it. What chance gives follows from
everyday language, from what developers of any platform say, and from the platform's own documents. So
interface and order weigh little, and the word that fifteen people ask about is not punished for it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ingestion.text.language import COMMON_ZIPF, RAREST_ZIPF, listed_words, zipf_frequency
from ingestion.text.words import stem, vocabulary_words
from runnables.question.extract_details import search_query
from runnables.question.topic_scorer import DEVELOPER_SHARE, DEVELOPER_WORDS, is_content_word
from runnables.retrieval.query_analysis import Glossary

LONGEST_TEXT = 2_000
"""Characters of a question that are read."""

COMMON_WORD_ZIPF = 5.0
"""Characters of commoner words are no topic: 商品 is cut into words, not into 商 and 品."""

COMMON_CHARACTER = 10 ** (COMMON_ZIPF + 0.7 - 9)
"""A character is in many words: one of 300 is common where for a word it is one of 1,600."""

DOCUMENTED_WORD = 1e-3
"""Share of the documents' words from which on a word is a common one of the platform."""

WordShares = Callable[[Iterable[str]], Mapping[str, float]]
"""Each of some words with its share of the documents' words; those that they do not hold are left out."""

_DEVELOPER_CHARACTERS = frozenset("".join(w for w in DEVELOPER_WORDS if not w.isascii()))


@dataclass(frozen=True)
class TopicTerm:
    """A word's stem, or a Chinese character."""

    text: str
    expected: float
    """The share of a question's words that it has by chance."""
    documented: float
    """Its share of the documents' words."""


def terms_of(
    texts: Sequence[str], documented: WordShares | None = None, glossary: Glossary | None = None
) -> list[list[TopicTerm]]:
    """The terms of each text, without repetition; a term is the same object in all of them."""
    words = [_words(text, glossary) for text in texts]
    distinct = dict.fromkeys(word for each in words for word in each)
    shares = documented(distinct) if documented else {}
    made = {word: list(_terms(word, shares.get(word, 0.0))) for word in distinct}
    commonest: dict[str, TopicTerm] = {}
    for term in (term for each in made.values() for term in each):
        known = commonest.get(term.text, term)
        commonest[term.text] = TopicTerm(
            term.text,
            max(term.expected, known.expected),
            max(term.documented, known.documented),
        )
    keys = [dict.fromkeys(term.text for word in each for term in made[word]) for each in words]
    return [[commonest[key] for key in each] for each in keys]


def weights_of(terms: Sequence[Sequence[TopicTerm]]) -> dict[TopicTerm, float]:
    """How much each term tells; those that are not more frequent than chance are left out."""
    counts = Counter(term for each in terms for term in each)
    total = sum(counts.values())
    surprise = {term: math.log(count / (total * term.expected)) for term, count in counts.items()}
    return {
        term: surprise[term] * math.log(1 + count)
        for term, count in counts.items()
        if surprise[term] > 0
    }


def _words(text: str, glossary: Glossary | None) -> list[str]:
    text = search_query(text[:LONGEST_TEXT])
    if glossary:
        text = " ".join([text, *glossary.widen(text)])
    return [word for word in dict.fromkeys(vocabulary_words(text)) if is_content_word(word)]


def _terms(word: str, documented: float) -> Iterator[TopicTerm]:
    """`word`, and the characters of a Chinese one: 代金券 and 优惠券 have 券 in common."""
    everyday = 10 ** (zipf_frequency(word) - 9)
    known = word in DEVELOPER_WORDS
    developers = known or word in _DEVELOPER_CHARACTERS
    expected = max(everyday, DEVELOPER_SHARE if developers else 0.0, documented)
    yield TopicTerm(stem(word), expected, documented)
    common = known or documented > DOCUMENTED_WORD or zipf_frequency(word) >= COMMON_WORD_ZIPF
    if not word.isascii() and not common:
        for character in dict.fromkeys(word):
            yield from _character(character, documented)


def _character(character: str, documented: float) -> Iterator[TopicTerm]:
    everyday = max(_character_shares().get(character, 0.0), 10 ** (RAREST_ZIPF - 9))
    if everyday < COMMON_CHARACTER:
        developers = DEVELOPER_SHARE if character in _DEVELOPER_CHARACTERS else 0.0
        yield TopicTerm(character, max(everyday, developers), documented)


@lru_cache
def _character_shares() -> dict[str, float]:
    """The share of everyday Chinese words that hold each character."""
    shares: defaultdict[str, float] = defaultdict(float)
    for word, zipf in listed_words("zh"):
        for character in set(word):
            shares[character] += 10 ** (zipf - 9)
    return dict(shares)
