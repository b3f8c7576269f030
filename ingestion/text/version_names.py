"""Finds the versions of documentation in paths and questions, and compares versions.

A version is a folder such as `v1`, `version-2.x`, `1.0` or `next` in the path of a file, in the URL of a
page, or in the path of an API.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_PRERELEASE = r"[-_.]?(?:alpha|beta|preview|rc)[-.\d]*"
_UNRELEASED = r"next|unreleased|nightly|beta"
_CURRENT = r"latest|stable|current"
_FOLDER = re.compile(
    rf"(?:v|version|release)[-_. ]?\d{{1,4}}(?:\.(?:\d{{1,4}}|x))*(?:{_PRERELEASE})?"
    rf"|\d{{1,4}}(?:\.(?:\d{{1,4}}|x))+(?:{_PRERELEASE})?|{_UNRELEASED}|{_CURRENT}",
    re.IGNORECASE,
)
_IS_UNRELEASED = re.compile(rf"{_UNRELEASED}|.*\d{_PRERELEASE}", re.IGNORECASE)
_IS_CURRENT = re.compile(_CURRENT, re.IGNORECASE)
_LONG_PREFIX = re.compile(r"(?:version|release)[-_. ]?", re.IGNORECASE)
_NOT_PATH = re.compile(r"^[a-z]+:/+[^/]*|\?.*|#(?!/).*", re.IGNORECASE)
"""Matches the parts of a URL that are not its path: scheme and host, query, and anchor."""

_IN_QUESTION = re.compile(
    r"(?<![a-z0-9_.-])(?:"
    r"(?:(?:version|版本)[ :：]?v?|v) ?(?P<number>\d{1,4}(?:\.\d{1,4})*(?:\.x)?)"
    r"|(?P<series>\d{1,4}(?:\.\d{1,4})*\.x)"
    r"|(?P<edition>\d{1,4}(?:\.\d{1,4})*) ?版本?"
    r"|(?P<dotted>\d{1,4}(?:\.\d{1,4})+)"
    r")(?![a-z0-9_]|\.\w)",
    re.IGNORECASE,
)
"""A version in a question.

The groups are `number` ("v2"), `series` ("2.x"), `edition` ("2.3 版本") and `dotted` ("1.0"). A bare number
such as "1.0" may also mean something else.
"""


class Version(NamedTuple):
    """A version that can be compared: unreleased versions sort first, and the current version last."""

    stage: int
    """0 for an unreleased version, 1 for a numbered one, 2 for the current version or an empty name."""
    numbers: tuple[int, ...]


@lru_cache(maxsize=1_000)
def parse_version(name: str) -> Version:
    """Return the version with this name. An empty name stands for the current version."""
    numbers = tuple(map(int, re.findall(r"\d{1,9}", name)))
    if _IS_UNRELEASED.fullmatch(name):
        return Version(0, numbers)
    return Version(2 if not name or _IS_CURRENT.fullmatch(name) else 1, numbers)


def version_of_paths(paths: Iterable[str]) -> str:
    """Return the name of the first version in `paths`; empty if there is none.

    Only folders count, because a page named `v1.2` often contains the release notes of this version.
    """
    folders = (folder for path in paths for folder in _NOT_PATH.sub("", path).split("/")[:-1])
    found = next(filter(_FOLDER.fullmatch, folders), "").lower()
    name = _LONG_PREFIX.sub("", found)
    return f"v{name}" if name.isdecimal() else name


@lru_cache(maxsize=10_000)
def path_without_version(path: str) -> str:
    """Return `path` without the folders that are versions: `a/x.md` for `a/v1/x.md` and `a/v2/x.md`."""
    *folders, last = path.split("/")
    return "/".join([*(folder for folder in folders if not _FOLDER.fullmatch(folder)), last])


def asked_versions(question: str, names: Iterable[str]) -> dict[str, str]:
    """Return the versions in `names` that `question` mentions, each with the words that mention it.

    "v2" mentions `2.x` and all its releases, such as `v2.3`. "v2.3" mentions `v2.3` and `2.x`, but a bare
    "2.3" mentions only `v2.3`. If no version matches, the next major version, such as "v4" after `v3`,
    means the unreleased version in `names`, such as `next`.
    """
    names = list(names)
    mentions = list(_IN_QUESTION.finditer(question))
    asked = {
        name: mention[0].strip()
        for name in names
        for mention in mentions
        if _is_mentioned(name, mention)
    }
    majors = [version.numbers[0] for version in map(parse_version, names) if version.numbers]
    if asked or not majors:
        return asked
    return {
        name: mention[0].strip()
        for name in names
        for mention in mentions
        if parse_version(name).stage == 0
        and mention["number"]
        and _numbers(mention[0])[0] == max(majors) + 1
    }


def _is_mentioned(name: str, mention: re.Match[str]) -> bool:
    """Return whether `mention`, a match of `_IN_QUESTION`, means the version `name`."""
    asked, numbers = _numbers(mention[0]), parse_version(name).numbers
    if mention["dotted"]:
        return asked == numbers
    return bool(numbers) and all(a == b for a, b in zip(asked, numbers, strict=False))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))
