"""Text as the words that full-text search sees, the same for documents and questions.

jieba cuts identifiers at `_`, `/`, `.` and `-`, so `cancel_pick_up` is found by its parts only. The
whole is added beside the parts as one joined word (`cancelpickup`), and so are the parts of
camelCase, which jieba leaves whole. English words are indexed by their stems.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from ingestion.text.language import COMMON_ZIPF, zipf_frequency

_IDENTIFIER = re.compile(r"[A-Za-z0-9]++(?:[_./:\-]++[A-Za-z0-9]++)+")
_CAMEL = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]*[a-z][A-Z][A-Za-z0-9]*")
_CAMEL_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONG_RUN = re.compile(r"(\w{400})(?=\w)")
_SCHEME_AND_HOST = re.compile(r"^[a-z]+:/+[^/]+/")
_LATIN_WORD = re.compile(r"[a-z]{3,}")
_PIECE = re.compile(r"[a-z0-9]+|[^\x00-\x7f]+")
_WORD = re.compile(r"[^\W_]")


def normalise(text: str) -> str:
    """NFKC (full width becomes half width), and no run beyond 400 characters."""
    return _LONG_RUN.sub(r"\1 ", unicodedata.normalize("NFKC", text))


def query_text(question: str) -> str:
    """What full-text search is asked for `question`: its `index_words` between spaces, without common
    ones.
    """
    words = vocabulary_words(question)
    telling = [word for word in words if zipf_frequency(word) < COMMON_ZIPF]
    return " ".join(map(stem, telling or words)) or normalise(question)


def vocabulary_words(text: str) -> list[str]:
    """The words of `text` as people write them, and its joined identifiers."""
    text = normalise(text)
    return split_words(" ".join([text, *_joined_forms(text)]))


def index_words(text: str) -> list[str]:
    """The words of `text` as full-text search indexes them: English ones as stems, and identifiers in
    joined form too.

    Cut here and not in Milvus, so that documents and questions are cut alike, by the dictionary
    alone: what jieba's hidden Markov model makes of an unknown word depends on its neighbours.
    """
    return [stem(word) for word in vocabulary_words(text)]


def split_words(text: str) -> list[str]:
    """The words of `text` in lower case, without punctuation.

    Chinese is cut into words of jieba's dictionary alone: what its hidden Markov model makes up has
    no frequency. Latin letters and digits need no dictionary, which is many times as slow.
    """
    words: list[str] = []
    for piece in _PIECE.findall(text.lower()):
        if piece.isascii():
            words.append(piece)
        else:
            words += filter(_WORD.search, dictionary_words(piece))
    return words


@lru_cache(maxsize=10_000)
def dictionary_words(piece: str) -> tuple[str, ...]:
    """Chinese cut into words of jieba's dictionary alone, punctuation among them.

    By jieba-rs: the same words in a tenth of the time and half the memory of jieba. Kept, since the
    same chunks are cut again for each question that finds them.
    """
    import rjieba

    whole = piece.encode("utf-8", "replace").decode()  # it refuses half a surrogate pair
    return tuple(rjieba.cut(whole, False))


def with_parts(words: Iterable[str]) -> Iterator[str]:
    """`words`, each Chinese one after its characters.

    People write 泄漏 for 泄露 and 寄 for 寄出: a character in common is a little of the word in common.
    """
    for word in words:
        if len(word) > 1 and not word.isascii():
            yield from word
        yield word


def _joined_forms(text: str) -> list[str]:
    return list(dict.fromkeys(form for form in _forms(text) if form))


def _forms(text: str) -> Iterator[str]:
    for identifier in _IDENTIFIER.findall(text):
        path = _SCHEME_AND_HOST.sub("", identifier.lower())
        yield _joined(path)
        yield from (_joined(part) for part in path.split("/") if not part.isalnum())
    for identifier in _CAMEL.findall(text):
        yield from _CAMEL_BREAK.sub(" ", identifier).lower().split()


def _joined(identifier: str) -> str:
    return re.sub(r"[^a-z0-9]", "", identifier)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """An English word's stem (Porter2, from the Snowball library); any other word as it is."""
    if not _LATIN_WORD.fullmatch(word):
        return word
    import snowballstemmer

    # A new one each time: it keeps the word in itself, and threads would stem each other's.
    return str(snowballstemmer.stemmer("english").stemWord(word))
