"""Parsing of names into stems and version numbers that can be compared."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ingestion.text.words import normalise, stem

_CAMEL_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VERSION = re.compile(
    r"(?<![a-z0-9])(?:version|ver|v)[ ._-]?(\d+(?:\.\d+)*)(?![a-z0-9])"
    r"|版本(\d+)|(?<![\d.])(\d+)(?:\.\d+)*版"
)
_TRAILING_DIGIT = re.compile(r"(?<![a-z0-9./:_-])([1-9])$")
_STOP_WORD = re.compile(r"[的与和及]|\b(?:an?|the|of|for|to|in|on|and|with|how|do|i|my|https?)\b")
_CHINESE_GENERIC = ("接口", "文档", "指南", "说明", "教程", "手册", "页面", "章节", "服务", "怎么",
                    "如何")  # fmt: skip
_LATIN_GENERIC = ("api", "doc", "documentation", "guide", "manual", "tutorial", "reference", "page",
                  "endpoint", "interface", "service")  # fmt: skip
_WORD = re.compile(rf"[a-z0-9]+|{'|'.join(_CHINESE_GENERIC)}|[^\W\da-z_]")

GENERIC_WORDS = frozenset(map(stem, (*_CHINESE_GENERIC, *_LATIN_GENERIC)))
"""Stems of words such as "API" and "guide", which people often add to a name or omit."""


class ParsedName(NamedTuple):
    """The words and versions of a name."""

    words: tuple[str, ...]
    """Stems of Latin words, generic Chinese words, and the characters of other Chinese words."""
    versions: frozenset[str]
    """Normalised version numbers, such as `2` for V2, v2.0 and 第2版."""

    def terms(self) -> Iterator[str]:
        """Yield each word, and each pair of adjacent words of the same script joined into one term."""
        yield from self.words
        for first, second in pairwise(self.words):
            if first.isascii() == second.isascii():
                yield first + second

    def without_generic_words(self) -> "ParsedName":
        """Return the name without generic words; unchanged if it has no other words."""
        words = tuple(word for word in self.words if word not in GENERIC_WORDS)
        return ParsedName(words or self.words, self.versions)


def parse_name(text: str) -> ParsedName:
    """Parse `text` as a name, ignoring character width, case and punctuation."""
    rest = _CAMEL_BREAK.sub(" ", normalise(text)).casefold().strip()
    versions = [next(filter(None, groups)) for groups in _VERSION.findall(rest)]
    rest = _VERSION.sub(" ", rest)
    if digit := _TRAILING_DIGIT.search(rest):
        versions.append(digit[1])
        rest = rest[: digit.start()]
    words = _WORD.findall(_STOP_WORD.sub("", rest.replace("_", " ")))
    return ParsedName(tuple(map(stem, words)), frozenset(map(_normalise_version, versions)))


def with_parent_versions(versions: Iterable[str]) -> Iterator[str]:
    """Yield each version and its parent versions, such as 2 and 2.1 for version 2.1."""
    for version in versions:
        parts = version.split(".")
        yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _normalise_version(version: str) -> str:
    """Return `version` without leading zeros and trailing `.0`: `2` for `02` and `2.0`."""
    return re.sub(r"(?:\.0+)+$", "", version).lstrip("0") or "0"
