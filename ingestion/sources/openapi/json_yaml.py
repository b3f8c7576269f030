"""Parses JSON and YAML into values that JSON can represent, within limits."""

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import MappingProxyType

import yaml

from schemas.errors import SourceError
from schemas.platform import SourceLimits

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)

MAX_DEPTH = 150
"""Maximum number of levels of lists and objects below the root, with aliases expanded."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_CONSTANTS = MappingProxyType(
    {"": None, "~": None, "null": None, "Null": None, "NULL": None}
    | dict.fromkeys(("true", "True", "TRUE"), True)
    | dict.fromkeys(("false", "False", "FALSE"), False)
)

_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def parse_json_or_yaml(data: bytes, limits: SourceLimits) -> object:
    """Parse JSON or YAML, in UTF-8 or in UTF-16 with a BOM.

    Only the first of several YAML documents is parsed. If a key occurs more than once, the last value is
    used. Raises SourceError if `data` is malformed, has another encoding or exceeds a limit.
    """
    text = _decode(data)
    if text.lstrip()[:1] not in ("{", "["):
        return parse_yaml(text, limits)
    try:
        return _parse_json(text, limits)
    except ValueError as error:
        second = text.lstrip()[1:].lstrip()[:1]
        if second in ('"', "{", "["):
            raise SourceError(f"not valid JSON: {error}") from None
        return parse_yaml(text, limits)  # YAML in flow style, such as {openapi: 3.1.0}


def _decode(data: bytes) -> str:
    has_bom = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        return data.decode("utf-16" if has_bom else "utf-8-sig")
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if has_bom else "UTF-8"
        raise SourceError(f"not {encoding} (byte {error.start})") from None


def _parse_json(text: str, limits: SourceLimits) -> object:
    # Strings are removed only if the first count exceeds the limit, because removing them is slow.
    if _count_marks(text) > limits.values and _count_marks(_QUOTED.sub("", text)) > limits.values:
        raise value_limit_error(limits)
    try:
        value = json.loads(text, parse_float=_parse_float, parse_constant=str)
    except RecursionError:
        raise depth_limit_error() from None
    _check_depth(value)
    # Replace each unpaired surrogate by `?`, because it cannot be encoded as UTF-8.
    if _ESCAPED_SURROGATE.search(text):
        valid = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        value = json.loads(valid)
    return value


def _count_marks(text: str) -> int:
    """Return the number of commas and opening brackets in `text`.

    If `text` contains no strings, this is about the number of its values.
    """
    return text.count(",") + text.count("{") + text.count("[")


def _check_depth(value: object) -> None:
    """Raise SourceError if a list or object is more than MAX_DEPTH levels below the root."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level for inner in _children(outer)]
        if not level:
            return
    raise depth_limit_error()


def _children(outer: object) -> Iterator[object]:
    """Yield the lists and objects in `outer`."""
    inner = outer.values() if isinstance(outer, dict) else outer
    if isinstance(inner, Iterable):
        yield from (value for value in inner if isinstance(value, dict | list))


def parse_yaml(text: str, limits: SourceLimits) -> object:
    """Return the first YAML document in `text`.

    Unquoted scalars are null, booleans or decimal numbers if YAML 1.2 defines them as such. Other scalars,
    including dates, are text. Raises SourceError if `text` is malformed or exceeds a limit.
    """
    try:
        return _ValueBuilder(limits).build(yaml.parse(text, Loader=_Loader))
    except yaml.YAMLError as error:
        problem = " ".join(str(getattr(error, "problem", None) or "cannot be read").split())
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise SourceError(f"not valid YAML: {problem}{where}") from None


def value_limit_error(limits: SourceLimits) -> SourceError:
    """Return the error for a document with too many values."""
    return SourceError(f"contains more than {limits.values} values (APIDESK_MAX_VALUES)")


def depth_limit_error() -> SourceError:
    """Return the error for a document that is nested too deeply."""
    return SourceError(f"nests lists and objects more than {MAX_DEPTH} levels deep")


@dataclass
class _BuiltValue:
    """A parsed value."""

    value: object
    size: int = 1
    """Number of values, including this one, with aliases expanded."""
    depth: int = 0
    """Number of nested levels of lists and objects, with aliases expanded; 0 for a scalar."""
    is_complete: bool = True
    """Whether the end of the list or object was parsed."""


@dataclass
class _OpenCollection:
    """A list or object that is still being built."""

    built: _BuiltValue
    key: str | None = None
    """Key of the next value; None for the key `<<`."""
    has_key: bool = False
    """Whether the key of the next value was parsed. Always false for a list."""
    merged: list[dict[str, object]] = field(default_factory=list)
    """The values of the key `<<`: objects to merge into this one."""


class _ValueBuilder:
    """Builds a value from parser events and stops as soon as a limit is exceeded.

    PyYAML's own constructor is recursive and does not limit the size of merged objects.
    """

    def __init__(self, limits: SourceLimits) -> None:
        self.limits = limits
        self.anchors: dict[str, _BuiltValue] = {}
        self.stack: list[_OpenCollection] = []
        self.root = _BuiltValue(None)
        self.merged_keys = 0

    def build(self, events: Iterator[yaml.Event]) -> object:
        for event in events:
            if isinstance(event, yaml.DocumentEndEvent):
                break
            self._handle(event)
        return self.root.value

    def _handle(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                built = _BuiltValue(_parse_scalar(event))
                self._set_anchor(event.anchor, built)
                self._append(built, is_merge=event.value == "<<" and event.implicit[0])
            case yaml.AliasEvent():
                self._append(self._resolve_alias(event.anchor))
            case yaml.SequenceStartEvent():
                self._begin(event.anchor, [])
            case yaml.MappingStartEvent():
                self._begin(event.anchor, {})
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._end()

    def _set_anchor(self, name: str | None, built: _BuiltValue) -> None:
        if name is not None:
            self.anchors[name] = built

    def _resolve_alias(self, name: str | None) -> _BuiltValue:
        built = self.anchors.get(name or "")
        if built is None:
            raise SourceError("not valid YAML: an alias has no anchor")
        if not built.is_complete:
            raise SourceError("contains an alias inside the value that it refers to")
        return built

    def _begin(self, anchor: str | None, value: object) -> None:
        built = _BuiltValue(value, depth=1, is_complete=False)
        self._set_anchor(anchor, built)
        self.stack.append(_OpenCollection(built))
        if len(self.stack) > MAX_DEPTH + 1:
            raise depth_limit_error()

    def _end(self) -> None:
        ended = self.stack.pop()
        ended.built.is_complete = True
        for mapping in ended.merged:
            self._merge(ended.built.value, mapping)
        self._append(ended.built)

    def _merge(self, target: object, mapping: dict[str, object]) -> None:
        """Add the keys of `mapping` that `target` lacks. All keys of `mapping` count towards the limit."""
        self.merged_keys += len(mapping)
        if self.merged_keys > self.limits.values:
            raise value_limit_error(self.limits)
        if isinstance(target, dict):
            target.update({key: value for key, value in mapping.items() if key not in target})

    def _append(self, built: _BuiltValue, is_merge: bool = False) -> None:
        if not self.stack:
            self.root = built
            return
        outer = self.stack[-1]
        if isinstance(outer.built.value, dict) and not outer.has_key:
            outer.key = None if is_merge else _key_text(built.value)
            outer.has_key = True
            return
        self._add_size(outer.built, built)
        if isinstance(outer.built.value, list):
            outer.built.value.append(built.value)
        else:
            _put(outer, built.value)
            outer.has_key = False

    def _add_size(self, outer: _BuiltValue, inner: _BuiltValue) -> None:
        outer.size += inner.size
        outer.depth = max(outer.depth, inner.depth + 1)
        if outer.size > self.limits.values:
            raise value_limit_error(self.limits)
        if outer.depth > MAX_DEPTH + 1:
            raise depth_limit_error()


def _put(outer: _OpenCollection, value: object) -> None:
    """Store `value` under the current key. If the key is `<<`, add `value` to the objects to merge."""
    mapping = outer.built.value
    if outer.key is not None and isinstance(mapping, dict):
        mapping[outer.key] = value
    elif isinstance(value, dict):
        outer.merged.append(value)
    elif isinstance(value, list):
        outer.merged.extend(mapping for mapping in value if isinstance(mapping, dict))


def _key_text(value: object) -> str:
    """Return a key as text, because the keys of JSON objects are strings.

    Raises SourceError if the key is a list or an object.
    """
    if isinstance(value, dict | list):
        raise SourceError("a key is a list or an object, but must be text")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _parse_scalar(event: yaml.ScalarEvent) -> object:
    """Return the value of a scalar: null, a boolean, a decimal number or, for anything else, text."""
    text = event.value
    if not event.implicit[0]:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return _parse_float(text) if _FLOAT.fullmatch(text) else text


def _parse_float(text: str) -> float | str:
    """Return the number, or `text` itself if the number is too large for a float."""
    number = float(text)
    return number if math.isfinite(number) else text
