"""Text that every later step can encode.
Which of the two languages a text is in, and how many tokens it is worth.
How common words are in everyday Chinese and English, from the word lists of the `wordfreq` library.

Its own dictionaries of both lists take 85 MB. Here each list lies in order in one string, which takes
10 MB with what is as common as `RAREST_ZIPF`, and a word is found by bisection.
Which words name things: nouns, as jieba's dictionary has them.
"""

import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile

from schemas.choices import Language

_HALF_PAIR = re.compile("[\ud800-\udfff]")


def whole_characters(text: str) -> str:
    """`text` with U+FFFD for each half of a surrogate pair, which UTF-8 cannot hold.

    Cut-off emoji leave halves behind in JSON, and bytes that are no UTF-8 on the command line.
    """
    return _HALF_PAIR.sub("\ufffd", text)


def storable(text: str) -> str:
    """`text` with U+FFFD for what PostgreSQL cannot hold: NUL, and half a surrogate pair."""
    return whole_characters(text).replace("\0", "\ufffd")


_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-z]+")


def detect_language(text: str) -> Language:
    """`zh` when Chinese characters weigh as much as Latin words, else `en`.

    A Chinese word is about two characters, so two characters count as one word; technical Chinese
    is full of English identifiers, so it takes one Chinese word to three Latin ones to be Chinese.
    """
    han_words = len(_HAN.findall(text)) / 2
    latin_words = len(_LATIN_WORD.findall(text))
    return "zh" if han_words and han_words * 3 >= latin_words else "en"


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, estimated without a tokenizer's tables.

    A Chinese character is about one token; other text about one token in four characters.
    """
    han = len(_HAN.findall(text))
    return han + math.ceil((len(text) - han) / 4)


def truncate_to_tokens(text: str, tokens: int) -> str:
    """Return the longest prefix of `text` that is estimated at no more than `tokens`."""
    text = text[: 4 * tokens]  # one token is at most four characters
    lengths = range(len(text) + 1)
    return text[: bisect_right(lengths, tokens, key=lambda n: estimate_tokens(text[:n])) - 1]


COMMON_ZIPF = 5.8
"""Words more common than this (about 1 in 1,600) tell nothing of a question."""

RAREST_ZIPF = 2.0
"""A word that is in no list, or is rarer, is taken to be this common: once in ten million words."""


@lru_cache(maxsize=20_000)
def zipf_frequency(word: str) -> float:
    """How common `word` is: log10 of uses per billion words, `RAREST_ZIPF` to 8."""
    return _list("en" if word.isascii() else "zh").zipf(word)


def listed_words(language: Language) -> Iterator[tuple[str, float]]:
    """All words of a list with their Zipf frequencies, the commonest first."""
    import wordfreq

    by_centibels = wordfreq.read_cBpack(wordfreq.available_languages()[language])
    for centibels, words in enumerate(by_centibels):
        zipf = wordfreq.cB_to_zipf(-centibels)
        yield from ((word, zipf) for word in words)


class _WordList(Sequence[bytes]):
    """Words in order, and how common each is."""

    def __init__(self, words: Iterator[tuple[str, float]]) -> None:
        in_order = sorted((word.encode(), zipf) for word, zipf in words)
        self._text = b"".join(word for word, _ in in_order)
        self._bounds = array("I", accumulate((len(word) for word, _ in in_order), initial=0))
        self._zipfs = array("d", (zipf for _, zipf in in_order))

    def zipf(self, word: str) -> float:
        """How common `word` is."""
        sought = word.encode(errors="surrogatepass")
        at = bisect_left(self, sought)
        return self._zipfs[at] if at < len(self) and self[at] == sought else RAREST_ZIPF

    def __len__(self) -> int:
        return len(self._zipfs)

    def __getitem__(self, at: int) -> bytes:  # type: ignore[override]  # bisection takes no slices
        return self._text[self._bounds[at] : self._bounds[at + 1]]


@lru_cache
def _list(language: Language) -> _WordList:
    return _WordList(takewhile(lambda listed: listed[1] > RAREST_ZIPF, listed_words(language)))


_NOUNS = ("n", "vn", "an", "l", "i", "j")
"""Beginnings of jieba's tags: nouns and names, verbs and adjectives used as nouns, phrases, short forms."""


@lru_cache(maxsize=100_000)
def may_be_noun(word: str) -> bool:
    """Whether `word` may name a thing: false of Chinese verbs, adverbs and particles.

    Nothing tells it of English words and of those that are in no dictionary: they may.
    """
    import rjieba

    if word.isascii() or not rjieba.has_word(word):
        return True
    *_, (_, tag) = rjieba.tag(word, False)
    return tag.startswith(_NOUNS)
