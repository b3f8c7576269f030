"""How common words are in everyday Chinese and English, from the word lists of the `wordfreq` library.

Its own dictionaries of both lists take 85 MB. Here each list lies in order in one string, which takes
10 MB with what is as common as `RAREST_ZIPF`, and a word is found by bisection.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile

from schemas.language import Language

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
