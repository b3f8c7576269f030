"""Extraction and index of permission names, such as 标签打印权限包 and Parcel Read Package."""

import re
from collections.abc import Iterator

from ingestion.text.words import dictionary_words
from runnables.grounding.names import Mention
from runnables.word_lists import read_word_lists

_PERMISSION_NOUN = re.compile(
    r"权限[包组]|(?<=[A-Za-z0-9] )(?:[Pp]ermission )?Package\b|(?<=[A-Za-z0-9] )permission package\b"
)
"""The last word of a permission's name."""

_TITLE_WORDS = re.compile(r"(?:\b[A-Z][A-Za-z0-9-]*\s)+$")
_HAN = re.compile(r"[\u4e00-\u9fff]+$")
_MAX_TITLE_CHARS, _MAX_HAN_CHARS = 60, 14
"""Maximum number of characters before the noun that are searched, so that the cost stays linear."""

_NOT_IN_NAMES = read_word_lists(__file__)["not_in_names"]


def extract_permissions(text: str) -> Iterator[Mention]:
    """Yield the permissions that `text` names; an expression such as "this package" is not a name."""
    for match in _PERMISSION_NOUN.finditer(text):
        words = list(_name_words(text, match.start()))
        if words:
            has_space = text[match.start() - 1] == " "
            start = match.start() - sum(len(word) + has_space for word in words)
            lowered = (match[0].lower(), *(word.lower() for word in words))
            yield Mention("permission", text[start : match.end()], start, words=lowered)


def _name_words(text: str, end: int) -> Iterator[str]:
    """Yield the words of the name that ends at `end`, last one first."""
    for word in reversed(_words_before(text, end)):
        if word in _NOT_IN_NAMES:
            return
        yield word


def _words_before(text: str, end: int) -> tuple[str, ...]:
    """Return the capitalised or Chinese words directly before `end`, in order."""
    if text[end - 1 : end] == " ":
        title = _TITLE_WORDS.search(text[max(0, end - _MAX_TITLE_CHARS) : end])
        return tuple(title[0].split()) if title else ()
    han = _HAN.search(text[max(0, end - _MAX_HAN_CHARS) : end])
    return dictionary_words(han[0]) if han else ()


class PermissionIndex:
    """Index of the permissions that documents name."""

    def __init__(self) -> None:
        self._names: set[tuple[str, ...]] = set()
        self._endings: set[tuple[str, ...]] = set()

    def add(self, text: str) -> None:
        """Index the permissions in `text`."""
        for mention in extract_permissions(text):
            name = _to_name(mention)
            self._names.add(name)
            self._endings.update(_endings(name))

    def contains(self, mention: Mention) -> bool:
        """Return whether this name and an indexed name are equal, or one ends with the other.

        If all indexed permissions are in another language, the name counts as contained, because it may be
        a translation.
        """
        name = _to_name(mention)
        if name[:1] not in self._endings:
            return bool(self._names)
        return name in self._endings or any(ending in self._names for ending in _endings(name))


def _to_name(mention: Mention) -> tuple[str, ...]:
    """Return the language of the name, and its words without the noun, last one first.

    Without the noun, names that end with 权限包 and 权限组 are equal.
    """
    noun, *words = mention.words
    return ("en" if noun.isascii() else "zh", *words)


def _endings(name: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Return the language alone, with the name's last word, with its last two words, and so on."""
    return (name[:end] for end in range(1, len(name) + 1))
