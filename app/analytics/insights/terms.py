"""Extracts the terms that indicate a question's topic, and weights them.

The weight of a term is the logarithm of observed over expected frequency, as in pointwise mutual
information (Church and Hanks, "Word Association Norms, Mutual Information, and Lexicography", 1990), times
log(1 + n) for the n questions that contain it. The expected frequency is based on everyday
language, general developer vocabulary and the platform's own documents, not on the questions. Therefore, a
term that occurs in many questions keeps its weight, and common words such as "interface" and "order" have
a low weight.
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

MAX_QUESTION_CHARS = 2_000
"""Maximum length of a question, in characters; longer questions are truncated."""

UNSPLIT_WORD_ZIPF = 5.0
"""Minimum Zipf frequency of a word that is not split into characters: 商品 does not yield 商 and 品."""

COMMON_CHARACTER_SHARE = 10 ** (COMMON_ZIPF + 0.7 - 9)
"""Share of everyday text above which a character is common and yields no term: 1 in 300.

It is higher than the share of a COMMON_ZIPF word, 1 in 1,600, because a character occurs in many words.
"""

COMMON_DOCUMENT_WORD_SHARE = 1e-3
"""Share of the documents' words above which a word is common and not split into characters."""

WordShares = Callable[[Iterable[str]], Mapping[str, float]]
"""Maps words to their share of the documents' words; words that do not occur are omitted."""

_DEVELOPER_CHARACTERS = frozenset("".join(word for word in DEVELOPER_WORDS if not word.isascii()))


@dataclass(frozen=True)
class TopicTerm:
    """A word's stem, or a Chinese character."""

    text: str
    expected_share: float
    """Expected share of this term among the words of questions."""
    document_share: float
    """Share of the word that the term comes from, among the words of the documents."""


def extract_terms(
    texts: Sequence[str], documented: WordShares | None = None, glossary: Glossary | None = None
) -> list[list[TopicTerm]]:
    """Return the distinct terms of each text; equal terms are the same object in all texts."""
    words_by_text = [_content_words(text, glossary) for text in texts]
    distinct = dict.fromkeys(word for words in words_by_text for word in words)
    shares = documented(distinct) if documented else {}
    by_word = {word: list(_terms(word, shares.get(word, 0.0))) for word in distinct}
    merged: dict[str, TopicTerm] = {}
    for term in (term for word_terms in by_word.values() for term in word_terms):
        other = merged.get(term.text, term)
        merged[term.text] = TopicTerm(
            term.text,
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


def _content_words(text: str, glossary: Glossary | None) -> list[str]:
    text = search_query(text[:MAX_QUESTION_CHARS])
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
    developer = is_developer_word or word in _DEVELOPER_CHARACTERS
    expected = max(everyday, DEVELOPER_SHARE if developer else 0.0, document_share)
    yield TopicTerm(stem(word), expected, document_share)
    common = (
        is_developer_word
        or document_share > COMMON_DOCUMENT_WORD_SHARE
        or zipf_frequency(word) >= UNSPLIT_WORD_ZIPF
    )
    if not word.isascii() and not common:
        for character in dict.fromkeys(word):
            yield from _character_terms(character, document_share)


def _character_terms(character: str, document_share: float) -> Iterator[TopicTerm]:
    everyday = max(_character_shares().get(character, 0.0), 10 ** (RAREST_ZIPF - 9))
    if everyday < COMMON_CHARACTER_SHARE:
        developer_share = DEVELOPER_SHARE if character in _DEVELOPER_CHARACTERS else 0.0
        yield TopicTerm(character, max(everyday, developer_share), document_share)


@lru_cache
def _character_shares() -> dict[str, float]:
    """Map each character to the total share of the words that contain it in everyday Chinese text."""
    shares: defaultdict[str, float] = defaultdict(float)
    for word, zipf in listed_words("zh"):
        for character in set(word):
            shares[character] += 10 ** (zipf - 9)
    return dict(shares)
