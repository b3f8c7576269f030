"""Which words name things: nouns, as jieba's dictionary has them."""

from functools import lru_cache

from ingestion.words import quiet_jieba

_NOUNS = ("n", "vn", "an", "l", "i", "j")
"""Beginnings of jieba's tags: nouns and names, verbs and adjectives used as nouns, phrases, short forms."""


@lru_cache(maxsize=100_000)
def may_be_noun(word: str) -> bool:
    """Whether `word` may name a thing: false of Chinese verbs, adverbs and particles.

    Nothing tells it of English words and of those that are in no dictionary: they may.
    """
    if word.isascii():
        return True
    dictionary = _dictionary()
    at = dictionary.find(f"\n{word} ".encode())
    if at < 0:
        return True
    entry = dictionary[at + 1 : dictionary.index(b"\n", at + 1)].decode()
    return entry.rpartition(" ")[2].startswith(_NOUNS)


@lru_cache
def _dictionary() -> bytes:
    """5 MB; `jieba.posseg` would make 50 MB of it."""
    with quiet_jieba().get_dict_file() as file:
        return b"\n" + bytes(file.read()) + b"\n"
