"""A name as the words that tell it from others, and the versions that it names."""

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
_LONE_DIGIT = re.compile(r"(?<![a-z0-9./:_-])([1-9])$")
_EMPTY = re.compile(r"[的与和及]|\b(?:an?|the|of|for|to|in|on|and|with|how|do|i|my|https?)\b")
_CHINESE_GENERIC = ("接口", "文档", "指南", "说明", "教程", "手册", "页面", "章节", "服务", "怎么",
                    "如何")  # fmt: skip
_LATIN_GENERIC = ("api", "doc", "documentation", "guide", "manual", "tutorial", "reference", "page",
                  "endpoint", "interface", "service")  # fmt: skip
_PIECE = re.compile(rf"[a-z0-9]+|{'|'.join(_CHINESE_GENERIC)}|[^\W\da-z_]")

GENERIC = frozenset(map(stem, (*_CHINESE_GENERIC, *_LATIN_GENERIC)))
"""Words that people add to a name, or leave out."""


class ParsedName(NamedTuple):
    """A name, read."""

    words: tuple[str, ...]
    """Latin words as stems, Chinese characters, and Chinese words that are generic as a whole."""
    versions: frozenset[str]
    """`2` for V2, v2.0 and 第2版."""

    def terms(self) -> Iterator[str]:
        """The words, each two Chinese ones that stand together, and each two Latin ones in one."""
        yield from self.words
        for first, second in pairwise(self.words):
            if first.isascii() == second.isascii():
                yield first + second

    def telling(self) -> "ParsedName":
        """This name without generic words; as it is where it has no others."""
        words = tuple(word for word in self.words if word not in GENERIC)
        return ParsedName(words or self.words, self.versions)


def parse_name(text: str) -> ParsedName:
    """`text` as a name, whatever its width, case and punctuation."""
    plain = _CAMEL_BREAK.sub(" ", normalise(text)).casefold().strip()
    versions = [next(filter(None, groups)) for groups in _VERSION.findall(plain)]
    plain = _VERSION.sub(" ", plain)
    if lone := _LONE_DIGIT.search(plain):
        versions.append(lone[1])
        plain = plain[: lone.start()]
    words = _PIECE.findall(_EMPTY.sub("", plain.replace("_", " ")))
    return ParsedName(tuple(map(stem, words)), frozenset(map(_plain_version, versions)))


def with_wholes(versions: Iterable[str]) -> Iterator[str]:
    """`versions`, each with what it is a part of: 2.1 is a version 2."""
    for version in versions:
        parts = version.split(".")
        yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _plain_version(version: str) -> str:
    """`2` for `2.0` and `02`."""
    return re.sub(r"(?:\.0+)+$", "", version).lstrip("0") or "0"
