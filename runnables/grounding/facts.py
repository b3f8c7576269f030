"""Checked facts: what an answer names of the platform stands in what it cites, or is listed."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from urllib.parse import urlsplit

from runnables.grounding.identifiers import (
    METHODS,
    PATH,
    RUN,
    URL,
    Mention,
    is_spelled,
    is_standard,
    mentions,
    permissions,
    without_programs,
)

_Path = tuple[str, ...]

_MOST_PARTS = 10
"""Parts of a dotted name that are looked at; no field lies deeper."""

_PLACEHOLDER = re.compile(r"\{.*\}|<.*>|:\w+|\$.+|\[.*\]")
_EXAMPLE = re.compile(r"(?:my|your|xxx|some|example).*", re.IGNORECASE)
_ADDRESS = re.compile(rf"({METHODS})?[\s`'\"*]{{0,4}}({URL}|{PATH})", re.ASCII)
_METHOD = re.compile(rf"(?<![A-Za-z_])({METHODS})(?![A-Za-z_])")
_LABELLED_METHOD = re.compile(
    rf"^[^:：\n]{{1,30}}[:：][\s`*]{{0,4}}({METHODS})[`*\s]*$", re.MULTILINE
)
_CALLED = re.compile(r"\.(get|post|put|patch|delete)\(", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
_KEY = re.compile(
    r"\"([A-Za-z_]\w*)\"\s*:|^[ \t]*\|[ `*]*([A-Za-z_]\w*)[ `*]*\||`([A-Za-z_]\w*)`",
    re.ASCII | re.MULTILINE,
)
_CODE_CELL = re.compile(r"^[ \t]*\|[ `*]*(\d{4,6})[ `*]*\|", re.MULTILINE)

_CONTAINERS = {
    "response", "resp", "res", "request", "req", "payload", "result", "json", "params", "body",
}  # fmt: skip
"""What developers call the variable that holds what was sent or came back."""

_CITATION = re.compile(r"\[\d{1,3}\]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_WHOLE = re.compile(r"\s*(?:[-*+]\s|\d{1,3}[.)]\s|\||`{3}|~{3})")
_UNCUT = re.compile(
    rf"`[^`\n]+`|{URL}(?<=[A-Za-z0-9/_=&-])"
    r"|\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|No|Fig|Dr|Mr|Ms|Mrs|[A-Z])\.(?=\s)"
)
_MARKS = r"(?:\s{0,3}\[\d{1,3}\])*"
_SENTENCE_END = re.compile(
    rf"(?:[。！？；…]+[\"'”’」』）)]*{_MARKS}|(?<![.!?])[.!?]++[\"'”’)]*{_MARKS}(?=\s|$))\s*|\n\s*\n"
)


class Known:
    """What cited chunks and question say, ready to be looked up.

    `texts` are Markdown, one a chunk: a method belongs to a path that stands in the same text.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._fields: set[str] = set()
        self._heads: set[str] = set()
        self._code_families: set[tuple[int, str]] = set()
        self._addresses = _Addresses()
        self._permissions: set[tuple[str, ...]] = set()
        for text in texts:
            self._read(text.replace("\\_", "_"))
        self._folded = {name.lower() for name in self._names}
        self._close_fields()

    def _read(self, text: str) -> None:
        self._addresses.read(text)
        self._permissions.update(mention.words for mention in permissions(text))
        self._names.update(_WORD.findall(text))
        for match in RUN.finditer(text):
            self._names.update(_pieces(match[0]))
        self._fields.update(name for found in _KEY.findall(text) for name in found if name)
        shown = RUN.findall(without_programs(text))
        self._heads.update(run.partition(".")[0] for run in shown if "." in run)
        for code in _CODE_CELL.findall(text):
            self._code_families.add((len(code), code[:2]))

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
                return self._holds_permission(mention.words)
            case "number":
                return mention.text in self._names or not self._is_code(mention)
            case "name":
                return self._holds_name(mention)
            case "word":
                word = mention.text
                known = word in self._names or _normal(word) in self._names
                return known or (mention.foreign and word.lower() in self._names)

    def _is_code(self, mention: Mention) -> bool:
        return mention.stated or (len(mention.text), mention.text[:2]) in self._code_families

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

    def _holds_permission(self, asked: tuple[str, ...]) -> bool:
        """Whether a name's last words are those of a known one, up to where either of them begins.

        A name in a language that no known one is in, while others are known, cannot be looked up and is
        let pass: it may be the translation of one.
        """
        known = [words for words in self._permissions if words[0].isascii() == asked[0].isascii()]
        agree = (all(a == k for a, k in zip(asked[1:], words[1:], strict=False)) for words in known)
        return any(agree) if known else bool(self._permissions)


def unverified(statement: str, known: Known) -> list[str]:
    """The facts that `statement` states and `known` does not hold: as they stand there, once, in order."""
    found: dict[str, None] = {}
    for mention in mentions(statement):
        if mention.text not in found and not known.holds(mention):
            found[mention.text] = None
    return list(found)


def without(statement: str, facts: Sequence[str]) -> str:
    """`statement` without the sentences that state one of `facts`; empty when nothing is left.

    A Markdown fence, a list item and a row of a table are one sentence each; citation marks stay
    or go with the sentence they follow.
    """
    wanted = [
        re.compile(rf"(?<![A-Za-z0-9_]){re.escape(fact)}(?![A-Za-z0-9_])") for fact in facts if fact
    ]
    kept = [s for s in _sentences(statement) if not any(w.search(s) for w in wanted)]
    text = "".join(kept).strip()
    return text if re.search(r"\w", _CITATION.sub("", text)) else ""


def _sentences(text: str) -> Iterator[str]:
    """The sentences of `text` with what stands between them: joined, they are `text` again."""
    prose: list[str] = []
    for block in _blocks(text):
        if _WHOLE.match(block):
            yield from _cut("".join(prose))
            prose = []
            yield block
        else:
            prose.append(block)
    yield from _cut("".join(prose))


def _blocks(text: str) -> Iterator[str]:
    """Each line, and each fence as one, with their ends."""
    fence = ""
    held: list[str] = []
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        held.append(line)
        if not fence and mark:
            fence = mark[1]
        elif fence and mark and mark[1].startswith(fence) and not line.strip(" `~\r\n"):
            fence = ""
        if not fence:
            yield "".join(held)
            held = []
    if held:
        yield "".join(held)


def _cut(prose: str) -> Iterator[str]:
    shown = _UNCUT.sub(lambda match: "x" * len(match[0]), prose)
    start = 0
    for end in _SENTENCE_END.finditer(shown):
        yield prose[start : end.end()]
        start = end.end()
    if start < len(prose):
        yield prose[start:]


def _normal(name: str) -> str:
    """A name without the brackets of lists."""
    return re.sub(r"\[(?:\d*|[a-z])\]", "", name)


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


class _Addresses:
    """Hosts and paths, and the methods that stand with them."""

    def __init__(self) -> None:
        self._hosts: set[str] = set()
        self._bases: set[_Path] = set()
        self._prefixes: set[_Path] = set()
        self._by_end: dict[_Path, set[_Path]] = defaultdict(set)
        self._methods: dict[_Path, set[str]] = defaultdict(set)

    def read(self, text: str) -> None:
        """Adds what `text` says. Its only method, or the one it labels so, is that of its paths."""
        general = set(_LABELLED_METHOD.findall(text)) or {
            method
            for line in text.split("\n")
            if not _ADDRESS.search(line)
            for method in _methods_in(line)
        }
        for line in text.split("\n"):
            found = _ADDRESS.findall(line)
            of_line = _methods_in(line) if found else set()
            for method, address in found:
                self._add(address, {method} if method else of_line or general)

    def _add(self, address: str, methods: set[str]) -> None:
        host, path = _split(address)
        if host:
            self._hosts.add(host)
            self._bases.add(path)
        general = tuple(map(_general, path))
        self._methods[general] |= methods
        for i in range(min(len(path), 20)):
            self._prefixes.add(path[: i + 1])
            for form in {path[i:], general[i:]}:
                self._by_end[form].add(general)

    def holds(self, mention: Mention) -> bool:
        """Whether host and path occur, and the method with that path."""
        host, path = _split(mention.target)
        if mention.foreign and (host or path[:2] not in self._prefixes):
            return True
        if host and host not in self._hosts:
            return False
        if not path:
            return True
        full = self._resolve(path)
        if not full:
            return mention.target.endswith("/") and path in self._prefixes
        return not mention.method or any(mention.method in self._methods[f] for f in full)

    def _resolve(self, path: _Path) -> set[_Path]:
        """The known paths that `path` is, ends, or begins with a known base."""
        general = tuple(map(_general, path))
        lenient = tuple("{}" if _EXAMPLE.fullmatch(part) else part for part in general)
        full: set[_Path] = set()
        for form in {path, general, lenient}:
            full |= self._by_end.get(form, set())
        for i in range(1, min(len(path), 20)):
            if path[:i] in self._bases and general[i:] in self._methods:
                full.add(general[i:])
        return full


def _methods_in(line: str) -> set[str]:
    return {*_METHOD.findall(line), *(name.upper() for name in _CALLED.findall(line))}


def _split(address: str) -> tuple[str, _Path]:
    """Host, empty without one, and the parts of the path."""
    try:
        parts = urlsplit(address.rstrip(".,;:!?*"))
    except ValueError:  # such as a bracket that does not close
        return "", (address,)
    path = parts.path.rstrip(".,;:!?*")
    return parts.netloc.lower(), tuple(part for part in path.split("/") if part)


def _general(part: str) -> str:
    """A part of a path, `{}` where it stands for a value or is one."""
    is_value = part.isdigit() or sum(map(str.isdigit, part)) > 2
    return "{}" if is_value or _PLACEHOLDER.fullmatch(part) else part
