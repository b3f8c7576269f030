"""JSON and YAML as plain values: keys are strings, dates are text, and nothing is out of bounds."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType

import yaml

from schemas.errors import SourceError
from schemas.source import SourceLimits

DEEPEST = 150
"""Lists and tables within each other, aliases followed."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = MappingProxyType(
    {"": None, "~": None, "null": None, "Null": None, "NULL": None}
    | dict.fromkeys(("true", "True", "TRUE"), True)
    | dict.fromkeys(("false", "False", "FALSE"), False)
)
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def parse(data: bytes, limits: SourceLimits) -> object:
    """What `data` says, JSON or YAML (its first document), in UTF-8 or with a UTF-16 BOM.

    Scalars are those of JSON; of two equal keys the later counts. Raises SourceError.
    """
    text = _text(data)
    if text.lstrip()[:1] not in ("{", "["):
        return _parse_yaml(text, limits)
    try:
        return _parse_json(text, limits)
    except ValueError as error:
        if text.lstrip()[1:].lstrip()[:1] in ('"', "{", "["):
            raise SourceError(f"not valid JSON: {error}") from None
        return _parse_yaml(text, limits)  # YAML between braces needs no quotes


def _text(data: bytes) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise SourceError(f"not UTF-8 (byte {error.start})") from None


def _too_many(limits: SourceLimits) -> SourceError:
    return SourceError(f"means more than {limits.values} values (APIDESK_MAX_VALUES)")


def _too_deep() -> SourceError:
    return SourceError(f"nests more than {DEEPEST} lists and tables deep")


# --- JSON


def _parse_json(text: str, limits: SourceLimits) -> object:
    if _count_json(text) > limits.values:
        raise _too_many(limits)
    try:
        found = json.loads(text, parse_constant=str)
    except RecursionError:
        raise _too_deep() from None
    _mend(found)
    return found


def _count_json(text: str) -> int:
    """At least the values in `text`, known before it costs the memory to hold them."""
    count = text.count(",") + text.count("{") + text.count("[")
    if count < 100_000:
        return count
    bare = _QUOTED.sub("", text)
    return bare.count(",") + bare.count("{") + bare.count("[")


def _mend(found: object) -> None:
    """Halves of characters, which no text may hold, become `?`; raises SourceError for depth."""
    level: list[object] = [found]
    for _ in range(DEEPEST + 1):
        level = [inner for outer in level for inner in _mended(outer)]
        if not level:
            return
    raise _too_deep()


def _mended(outer: object) -> Iterator[object]:
    """The lists and tables within `outer`, whose own strings are whole afterwards."""
    if isinstance(outer, dict):
        if any(_is_broken(x) for pair in outer.items() for x in pair):
            whole = {_whole(key): _whole(value) for key, value in outer.items()}
            outer.clear()
            outer.update(whole)
        yield from (value for value in outer.values() if isinstance(value, dict | list))
    elif isinstance(outer, list):
        if any(map(_is_broken, outer)):
            outer[:] = map(_whole, outer)
        yield from (value for value in outer if isinstance(value, dict | list))


def _is_broken(value: object) -> bool:
    return isinstance(value, str) and not value.isascii() and bool(_SURROGATE.search(value))


def _whole(value: object) -> object:
    return _SURROGATE.sub("?", value) if isinstance(value, str) else value


# --- YAML


@dataclass
class _Known:
    """A value that is built, and what it means with its aliases followed."""

    value: object
    size: int = 1
    depth: int = 0
    done: bool = True


@dataclass
class _Open:
    """A list or table whose end has not come yet."""

    known: _Known
    key: str | None = None
    has_key: bool = False
    merged: list[dict[str, object]] = field(default_factory=list)


def _parse_yaml(text: str, limits: SourceLimits) -> object:
    try:
        return _Builder(limits).build(yaml.parse(text, Loader=_Loader))
    except yaml.YAMLError as error:
        problem = " ".join(str(getattr(error, "problem", None) or "cannot be read").split())
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise SourceError(f"not valid YAML: {problem}{where}") from None


class _Builder:
    """Builds values from a parser's events, one by one: a document too large ends at once.

    PyYAML's own constructor builds first, recursively, and multiplies merge keys without end.
    """

    def __init__(self, limits: SourceLimits) -> None:
        self.limits = limits
        self.anchors: dict[str, _Known] = {}
        self.open: list[_Open] = []
        self.root = _Known(None)
        self.merged = 0

    def build(self, events: Iterator[yaml.Event]) -> object:
        for event in events:
            if isinstance(event, yaml.DocumentEndEvent):
                break
            self._take(event)
        return self.root.value

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                known = _Known(_scalar(event))
                self._anchor(event.anchor, known)
                self._add(known, is_merge=event.value == "<<" and event.implicit[0])
            case yaml.AliasEvent():
                self._add(self._alias(event.anchor))
            case yaml.SequenceStartEvent():
                self._begin(event.anchor, [])
            case yaml.MappingStartEvent():
                self._begin(event.anchor, {})
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._end()

    def _anchor(self, name: str | None, known: _Known) -> None:
        if name is not None:
            self.anchors[name] = known

    def _alias(self, name: str | None) -> _Known:
        known = self.anchors.get(name or "")
        if known is None:
            raise SourceError("not valid YAML: an alias has no anchor")
        if not known.done:
            raise SourceError("means values without end: an alias lies within its own anchor")
        return known

    def _begin(self, anchor: str | None, value: object) -> None:
        known = _Known(value, depth=1, done=False)
        self._anchor(anchor, known)
        self.open.append(_Open(known))
        if len(self.open) > DEEPEST:
            raise _too_deep()

    def _end(self) -> None:
        ended = self.open.pop()
        ended.known.done = True
        for table in ended.merged:
            self._merge(ended.known.value, table)
        self._add(ended.known)

    def _merge(self, into: object, table: dict[str, object]) -> None:
        """What `<<` brings, where there is none of that name; however little, it costs time."""
        self.merged += len(table)
        if self.merged > self.limits.values:
            raise _too_many(self.limits)
        if isinstance(into, dict):
            into.update({key: value for key, value in table.items() if key not in into})

    def _add(self, known: _Known, is_merge: bool = False) -> None:
        if not self.open:
            self.root = known
            return
        outer = self.open[-1]
        if isinstance(outer.known.value, dict) and not outer.has_key:
            outer.key, outer.has_key = None if is_merge else _key(known.value), True
            return
        self._measure(outer.known, known)
        if isinstance(outer.known.value, list):
            outer.known.value.append(known.value)
        else:
            _put(outer, known.value)
            outer.has_key = False

    def _measure(self, outer: _Known, inner: _Known) -> None:
        outer.size += inner.size
        outer.depth = max(outer.depth, inner.depth + 1)
        if outer.size > self.limits.values:
            raise _too_many(self.limits)
        if outer.depth > DEEPEST + 1:
            raise _too_deep()


def _put(outer: _Open, value: object) -> None:
    """`value` under the key that is waiting; without one it is what `<<` merges."""
    table = outer.known.value
    if outer.key is not None and isinstance(table, dict):
        table[outer.key] = value
    elif isinstance(value, dict):
        outer.merged.append(value)
    elif isinstance(value, list):
        outer.merged.extend(each for each in value if isinstance(each, dict))


def _key(value: object) -> str:
    if isinstance(value, dict | list):
        raise SourceError("not what an API is described with: a key is a list or a table")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _scalar(event: yaml.ScalarEvent) -> object:
    """Null, true, false and numbers as JSON has them; everything else is text, dates too."""
    text = event.value
    if not event.implicit[0]:
        return text
    if text in _PLAIN:
        return _PLAIN[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
