"""Parses YAML into plain values within limits, with the scalars of JSON."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType

import yaml

from schemas.errors import SourceError
from schemas.platform import SourceLimits

MAX_DEPTH = 150
"""Levels of nested lists and objects, with aliases expanded."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTANTS = MappingProxyType(
    {"": None, "~": None, "null": None, "Null": None, "NULL": None}
    | dict.fromkeys(("true", "True", "TRUE"), True)
    | dict.fromkeys(("false", "False", "FALSE"), False)
)
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def parse_yaml(text: str, limits: SourceLimits) -> object:
    """Return the first YAML document in `text`, with scalars as in JSON. Raises SourceError."""
    try:
        return _ValueBuilder(limits).build(yaml.parse(text, Loader=_Loader))
    except yaml.YAMLError as error:
        problem = " ".join(str(getattr(error, "problem", None) or "cannot be read").split())
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise SourceError(f"not valid YAML: {problem}{where}") from None


def too_many_values(limits: SourceLimits) -> SourceError:
    """Return the error for a document with too many values."""
    return SourceError(f"contains more than {limits.values} values (APIDESK_MAX_VALUES)")


def too_deep() -> SourceError:
    """Return the error for a document that is nested too deep."""
    return SourceError(f"nests lists and objects more than {MAX_DEPTH} deep")


@dataclass
class _BuiltValue:
    """A value, with its size and depth when aliases are expanded."""

    value: object
    size: int = 1
    depth: int = 0
    complete: bool = True


@dataclass
class _OpenCollection:
    """A list or object that is still being built."""

    built: _BuiltValue
    key: str | None = None
    has_key: bool = False
    merged: list[dict[str, object]] = field(default_factory=list)


class _ValueBuilder:
    """Builds values from parser events, and stops as soon as a limit is exceeded.

    PyYAML's own constructor is recursive, and does not limit what merge keys expand to.
    """

    def __init__(self, limits: SourceLimits) -> None:
        self.limits = limits
        self.anchors: dict[str, _BuiltValue] = {}
        self.stack: list[_OpenCollection] = []
        self.root = _BuiltValue(None)
        self.merged = 0

    def build(self, events: Iterator[yaml.Event]) -> object:
        for event in events:
            if isinstance(event, yaml.DocumentEndEvent):
                break
            self._handle(event)
        return self.root.value

    def _handle(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                built = _BuiltValue(_scalar(event))
                self._anchor(event.anchor, built)
                self._append(built, is_merge=event.value == "<<" and event.implicit[0])
            case yaml.AliasEvent():
                self._append(self._alias(event.anchor))
            case yaml.SequenceStartEvent():
                self._begin(event.anchor, [])
            case yaml.MappingStartEvent():
                self._begin(event.anchor, {})
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._end()

    def _anchor(self, name: str | None, built: _BuiltValue) -> None:
        if name is not None:
            self.anchors[name] = built

    def _alias(self, name: str | None) -> _BuiltValue:
        built = self.anchors.get(name or "")
        if built is None:
            raise SourceError("not valid YAML: an alias has no anchor")
        if not built.complete:
            raise SourceError("contains an alias within its own anchor")
        return built

    def _begin(self, anchor: str | None, value: object) -> None:
        built = _BuiltValue(value, depth=1, complete=False)
        self._anchor(anchor, built)
        self.stack.append(_OpenCollection(built))
        if len(self.stack) > MAX_DEPTH:
            raise too_deep()

    def _end(self) -> None:
        ended = self.stack.pop()
        ended.built.complete = True
        for mapping in ended.merged:
            self._merge(ended.built.value, mapping)
        self._append(ended.built)

    def _merge(self, target: object, mapping: dict[str, object]) -> None:
        """Merge the keys of `<<` that `target` lacks; each one counts against the limit."""
        self.merged += len(mapping)
        if self.merged > self.limits.values:
            raise too_many_values(self.limits)
        if isinstance(target, dict):
            target.update({key: value for key, value in mapping.items() if key not in target})

    def _append(self, built: _BuiltValue, is_merge: bool = False) -> None:
        if not self.stack:
            self.root = built
            return
        outer = self.stack[-1]
        if isinstance(outer.built.value, dict) and not outer.has_key:
            outer.key, outer.has_key = None if is_merge else _key(built.value), True
            return
        self._measure(outer.built, built)
        if isinstance(outer.built.value, list):
            outer.built.value.append(built.value)
        else:
            _put(outer, built.value)
            outer.has_key = False

    def _measure(self, outer: _BuiltValue, inner: _BuiltValue) -> None:
        outer.size += inner.size
        outer.depth = max(outer.depth, inner.depth + 1)
        if outer.size > self.limits.values:
            raise too_many_values(self.limits)
        if outer.depth > MAX_DEPTH + 1:
            raise too_deep()


def _put(outer: _OpenCollection, value: object) -> None:
    """Store `value` under the current key, or remember it as the value of `<<`."""
    mapping = outer.built.value
    if outer.key is not None and isinstance(mapping, dict):
        mapping[outer.key] = value
    elif isinstance(value, dict):
        outer.merged.append(value)
    elif isinstance(value, list):
        outer.merged.extend(each for each in value if isinstance(each, dict))


def _key(value: object) -> str:
    if isinstance(value, dict | list):
        raise SourceError("not a description: a key is a list or an object")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _scalar(event: yaml.ScalarEvent) -> object:
    """Convert null, true, false and numbers as in JSON; everything else, dates included, is text."""
    text = event.value
    if not event.implicit[0]:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
