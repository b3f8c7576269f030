"""Frequencies of everyday Chinese and English words, from the word lists of the `wordfreq` library.

wordfreq's own dictionaries of both lists take 85 MB. Here each list is one sorted string that is
searched by bisection, which takes 10 MB for the words above `RAREST_ZIPF`.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile

from schemas.choices import Language

COMMON_ZIPF = 5.8
"""More common words (about 1 in 1,600) carry no information about a question."""

RAREST_ZIPF = 2.0
"""Frequency of rarer and unlisted words: once in ten million words."""


@lru_cache(maxsize=20_000)
def zipf_frequency(word: str) -> float:
    """Return the Zipf frequency of `word`: log10 of uses per billion words, `RAREST_ZIPF` to 8."""
    return _word_list("en" if word.isascii() else "zh").zipf_frequency(word)


def listed_words(language: Language) -> Iterator[tuple[str, float]]:
    """Yield the words of a list with their Zipf frequencies, most frequent first."""
    import wordfreq

    by_centibels = wordfreq.read_cBpack(wordfreq.available_languages()[language])
    for centibels, words in enumerate(by_centibels):
        zipf = wordfreq.cB_to_zipf(-centibels)
        yield from ((word, zipf) for word in words)


class _WordList(Sequence[bytes]):
    """A sorted list of words with their frequencies."""

    def __init__(self, words: Iterator[tuple[str, float]]) -> None:
        ordered = sorted((word.encode(), zipf) for word, zipf in words)
        self._text = b"".join(word for word, _ in ordered)
        self._bounds = array("I", accumulate((len(word) for word, _ in ordered), initial=0))
        self._zipfs = array("d", (zipf for _, zipf in ordered))

    def zipf_frequency(self, word: str) -> float:
        key = word.encode(errors="surrogatepass")
        index = bisect_left(self, key)
        is_listed = index < len(self) and self[index] == key
        return self._zipfs[index] if is_listed else RAREST_ZIPF

    def __len__(self) -> int:
        return len(self._zipfs)

    def __getitem__(self, index: int) -> bytes:  # type: ignore[override]  # bisection takes no slices
        return self._text[self._bounds[index] : self._bounds[index + 1]]


@lru_cache
def _word_list(language: Language) -> _WordList:
    return _WordList(takewhile(lambda listed: listed[1] > RAREST_ZIPF, listed_words(language)))
