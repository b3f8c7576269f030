"""Which words name things: nouns, as jieba's dictionary has them."""

from functools import lru_cache

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
