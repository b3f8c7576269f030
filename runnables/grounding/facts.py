"""Checked facts: what an answer names of the platform stands in what it cites, or is listed."""

import re
from collections.abc import Iterable, Iterator
from itertools import combinations

from runnables.grounding.addresses import AddressIndex
from runnables.grounding.identifiers import RUN, is_spelled, mentions
from runnables.grounding.markdown_text import without_programs
from runnables.grounding.mention import Mention
from runnables.grounding.names import is_standard
from runnables.grounding.permissions import PermissionIndex

_MOST_PARTS = 10
"""Parts of a dotted name that are looked at; no field lies deeper."""

_WORD = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_FIELD = re.compile(
    r"\"([A-Za-z_]\w*)\"\s*:|^[ \t]*\|[ `*]*([A-Za-z_]\w*)[ `*]*\||`([A-Za-z_]\w*)`",
    re.ASCII | re.MULTILINE,
)
"""A word that is used as a name: a key in JSON, a row's first cell, a code span."""

_CODE_CELL = re.compile(r"^[ \t]*\|[ `*]*(\d{4,6})[ `*]*\|", re.MULTILINE)
_LIST = re.compile(r"\[(?:\d*|[a-z])\]")
"""What says that a field is a list, or which of its items is meant: `[]`, `[0]`, `[i]`."""

_CONTAINERS = {
    "response", "resp", "res", "request", "req", "payload", "result", "json", "params", "body",
}  # fmt: skip
"""What developers call the variable that holds what was sent or came back."""


class FactIndex:
    """What cited chunks and question say, ready to be looked up.

    `texts` are Markdown, one a chunk: a method belongs to a path that stands in the same text.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._names: set[str] = set()
        self._fields: set[str] = set()
        self._heads: set[str] = set()
        """What dotted names begin with."""
        self._code_families: set[tuple[int, str]] = set()
        """How long the error codes are, and their first two digits."""
        self._folded: set[str] = set()
        """The names in lower case."""
        self._addresses = AddressIndex()
        self._permissions = PermissionIndex()
        for text in texts:
            self.read(text)

    def read(self, text: str) -> None:
        """Adds what one more text says."""
        text = text.replace("\\_", "_")
        self._addresses.read(text)
        self._permissions.read(text)
        names = set(_WORD.findall(text))
        for run in set(RUN.findall(text)):
            names.update(_pieces(run))
        self._names |= names
        self._folded.update(map(str.lower, names))
        self._fields.update(name for found in _FIELD.findall(text) for name in found if name)
        shown = RUN.findall(without_programs(text))
        self._heads.update(run.partition(".")[0] for run in shown if "." in run)
        for code in _CODE_CELL.findall(text):
            self._code_families.add(_family(code))
        self._close_fields()

    def _close_fields(self) -> None:
        """The parts of a dotted name are fields where its first one is: `data.total`, not `isv.x`."""
        dotted = [name.split(".") for name in self._names if "." in name]
        for parts in dotted:
            if parts[0] in self._fields:
                self._fields.update(parts)

    def holds(self, mention: Mention) -> bool:
        """Whether what `mention` names occurs, in this shape or one that means the same."""
        match mention.kind:
            case "target":
                return self._addresses.holds(mention)
            case "permission":
                return self._permissions.holds(mention)
            case "number":
                return mention.text in self._names or not self._is_code(mention)
            case "name":
                return self._holds_name(mention)
            case "word":
                word = mention.text
                known = word in self._names or _normal(word) in self._names
                return known or (mention.foreign and word.lower() in self._names)

    def _is_code(self, mention: Mention) -> bool:
        return mention.stated or _family(mention.text) in self._code_families

    def _holds_name(self, mention: Mention) -> bool:
        name = _normal(mention.text)
        if name in self._names or ("." not in name and name.lower() in self._folded):
            return True
        parts = re.split(r"[.:]", name)
        if parts[0] in _CONTAINERS and parts[0] not in self._fields:
            del parts[0]
        if len(parts) > 1 and all(map(self._is_field, parts)):
            return True
        return mention.foreign and not self._is_ours(parts)

    def _is_ours(self, parts: list[str]) -> bool:
        """Whether a dotted name begins as a known one does, or has a part that is a known name."""
        first = parts[0]
        return (
            first in self._fields
            or (first in self._heads and not is_standard(first))
            or any(is_spelled(part) and part in self._names for part in parts)
        )

    def _is_field(self, part: str) -> bool:
        """Whether it is used as a name; a word that is spelled as no other word is, anywhere."""
        return part in self._fields or (is_spelled(part) and part in self._names)


def unverified(statement: str, known: FactIndex) -> list[str]:
    """The facts that `statement` states and `known` does not hold: as they stand there, once, in order."""
    found: dict[str, None] = {}
    for mention in mentions(statement):
        if mention.text not in found and not known.holds(mention):
            found[mention.text] = None
    return list(found)


def _family(code: str) -> tuple[int, str]:
    """What the codes of one platform have in common."""
    return len(code), code[:2]


def _normal(name: str) -> str:
    """A name without the brackets of lists."""
    return _LIST.sub("", name)


def _pieces(run: str) -> Iterator[str]:
    """`run`, and what lies between any two of its dots."""
    yield run
    run = _normal(run)
    yield from (run, run.rstrip("_"))
    parts = run.split(".")[:_MOST_PARTS]
    if len(parts) > 1:
        yield from (".".join(parts[i:j]) for i, j in combinations(range(len(parts) + 1), 2))
    if ":" in run:
        yield from run.split(":")
