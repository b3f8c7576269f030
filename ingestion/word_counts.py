"""How often words occur in a collection, remembered: several steps of each question ask for the same."""

from collections.abc import Callable, Iterable

REMEMBERED_WORDS = 50_000
"""Words whose counts are kept: some 5 MB."""


class WordCounts:
    """Counts of words, read once by `read`, which leaves out the words that do not occur."""

    def __init__(self, read: Callable[[list[str]], dict[str, int]]) -> None:
        self._read = read
        self._known: dict[str, int] = {}
        """0 for words that do not occur."""

    def of(self, words: Iterable[str]) -> dict[str, int]:
        """How often each of `words` occurs; words that do not are left out."""
        wanted = list(dict.fromkeys(words))
        known = self._known  # another thread may begin it anew
        counts = {word: known[word] for word in wanted if word in known}
        if missing := [word for word in wanted if word not in counts]:
            found = dict.fromkeys(missing, 0) | self._read(missing)
            counts |= found
            if len(known) + len(found) <= REMEMBERED_WORDS:
                known.update(found)
            else:
                self._known = found
        return {word: counts[word] for word in wanted if counts[word]}

    def forget(self) -> None:
        """Read all counts anew."""
        self._known = {}
