"""Fact check: every name in an answer is looked up in the chunks that the answer cites."""

import re
from collections.abc import Iterable, Iterator
from itertools import combinations

from runnables.grounding.addresses import AddressIndex
from runnables.grounding.extract_mentions import (
    COMPOUND_NAME,
    extract_mentions,
    is_snake_or_camel_case,
)
from runnables.grounding.markdown_text import blank_program_code
from runnables.grounding.mention import Mention
from runnables.grounding.names import is_standard
from runnables.grounding.permissions import PermissionIndex

_MAX_NAME_PARTS = 10
"""Maximum number of parts of a dotted name that are indexed; fields are not nested deeper."""

_WORD = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_FIELD = re.compile(
    r"\"([A-Za-z_]\w*)\"\s*:|^[ \t]*\|[ `*]*([A-Za-z_]\w*)[ `*]*\||`([A-Za-z_]\w*)`",
    re.ASCII | re.MULTILINE,
)
"""A word used as a name: a JSON key, the first cell of a table row, or a code span."""

_CODE_CELL = re.compile(r"^[ \t]*\|[ `*]*(\d{4,6})[ `*]*\|", re.MULTILINE)
_LIST_BRACKETS = re.compile(r"\[(?:\d*|[a-z])\]")
"""Brackets that mark a field as a list or select one item: `[]`, `[0]`, `[i]`."""

_CONTAINERS = {
    "response", "resp", "res", "request", "req", "payload", "result", "json", "params", "body",
}  # fmt: skip
"""Usual names of variables that contain a request or a response."""


class FactIndex:
    """Index of the names in cited chunks and in the question."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Index `texts`, the Markdown of each chunk.

        An HTTP method named in a text applies only to paths in that text.
        """
        self._names: set[str] = set()
        self._lower_names: set[str] = set()
        self._fields: set[str] = set()
        self._first_parts: set[str] = set()
        """The first part of each dotted name."""
        self._code_prefixes: set[tuple[int, str]] = set()
        """Length and first two digits of each error code."""
        self._addresses = AddressIndex()
        self._permissions = PermissionIndex()
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Index one more text."""
        text = text.replace("\\_", "_")
        self._addresses.add(text)
        self._permissions.add(text)
        names = set(_WORD.findall(text))
        for name in set(COMPOUND_NAME.findall(text)):
            names.update(_sub_names(name))
        self._names |= names
        self._lower_names.update(map(str.lower, names))
        self._fields.update(name for groups in _FIELD.findall(text) for name in groups if name)
        prose_names = COMPOUND_NAME.findall(blank_program_code(text))
        self._first_parts.update(name.partition(".")[0] for name in prose_names if "." in name)
        self._code_prefixes.update(map(_code_prefix, _CODE_CELL.findall(text)))
        self._add_nested_fields()

    def _add_nested_fields(self) -> None:
        """If a dotted name begins with a field, index its parts as fields.

        This applies to `data.total` if `data` is a field, but not to `isv.x`, as `isv` is not a field.
        """
        for parts in [name.split(".") for name in self._names if "." in name]:
            if parts[0] in self._fields:
                self._fields.update(parts)

    def contains(self, mention: Mention) -> bool:
        """Return whether the mentioned name is indexed, as written or in an equivalent form."""
        match mention.kind:
            case "target":
                return self._addresses.contains(mention)
            case "permission":
                return self._permissions.contains(mention)
            case "number":
                return mention.text in self._names or not self._is_error_code(mention)
            case "name":
                return self._contains_name(mention)
            case "word":
                word = mention.text
                is_known = word in self._names or _strip_brackets(word) in self._names
                return is_known or (mention.maybe_external and word.lower() in self._names)

    def _is_error_code(self, mention: Mention) -> bool:
        return mention.is_explicit or _code_prefix(mention.text) in self._code_prefixes

    def _contains_name(self, mention: Mention) -> bool:
        name = _strip_brackets(mention.text)
        if name in self._names or ("." not in name and name.lower() in self._lower_names):
            return True
        parts = re.split(r"[.:]", name)
        if parts[0] in _CONTAINERS and parts[0] not in self._fields:
            del parts[0]
        if len(parts) > 1 and all(map(self._is_field, parts)):
            return True
        return mention.maybe_external and not self._belongs_to_platform(parts)

    def _belongs_to_platform(self, parts: list[str]) -> bool:
        """Return whether a dotted name begins like an indexed one, or contains an indexed name."""
        first = parts[0]
        return (
            first in self._fields
            or (first in self._first_parts and not is_standard(first))
            or any(is_snake_or_camel_case(part) and part in self._names for part in parts)
        )

    def _is_field(self, part: str) -> bool:
        """Return whether `part` is an indexed field, or an indexed name in snake_case or camelCase."""
        return part in self._fields or (is_snake_or_camel_case(part) and part in self._names)


def find_unverified_facts(statement: str, index: FactIndex) -> list[str]:
    """Return the distinct names in `statement` that `index` does not contain, as written and in order."""
    unverified: dict[str, None] = {}
    for mention in extract_mentions(statement):
        if mention.text not in unverified and not index.contains(mention):
            unverified[mention.text] = None
    return list(unverified)


def _code_prefix(code: str) -> tuple[int, str]:
    """Return the length and the first two digits, which similar codes of a platform share."""
    return len(code), code[:2]


def _strip_brackets(name: str) -> str:
    return _LIST_BRACKETS.sub("", name)


def _sub_names(name: str) -> Iterator[str]:
    """Yield the name, and each run of consecutive parts of it.

    For example, `a.b.c` gives `a`, `a.b`, `b`, `b.c` and so on. If the name contains colons, the
    parts between them are also yielded.
    """
    yield name
    name = _strip_brackets(name)
    yield from (name, name.rstrip("_"))
    parts = name.split(".")[:_MAX_NAME_PARTS]
    if len(parts) > 1:
        yield from (".".join(parts[i:j]) for i, j in combinations(range(len(parts) + 1), 2))
    if ":" in name:
        yield from name.split(":")
