"""Parses JSON and YAML into values that JSON can represent, within limits."""

import json
import re
from collections.abc import Iterator
from itertools import chain

from ingestion.sources.openapi.yaml_values import (
    MAX_DEPTH,
    depth_limit_error,
    parse_yaml,
    value_limit_error,
)
from schemas.errors import SourceError
from schemas.platform import SourceLimits

_SURROGATE = re.compile("[\ud800-\udfff]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def parse_json_or_yaml(data: bytes, limits: SourceLimits) -> object:
    """Parse JSON or YAML (the first document), in UTF-8 or in UTF-16 with a BOM.

    If a key occurs more than once, the last value is used. Raises SourceError.
    """
    text = _decode(data)
    if text.lstrip()[:1] not in ("{", "["):
        return parse_yaml(text, limits)
    try:
        return _parse_json(text, limits)
    except ValueError as error:
        if text.lstrip()[1:].lstrip()[:1] in ('"', "{", "["):
            raise SourceError(f"not valid JSON: {error}") from None
        return parse_yaml(text, limits)  # a YAML flow mapping, whose keys need no quotes


def _decode(data: bytes) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise SourceError(f"not UTF-8 (byte {error.start})") from None


def _parse_json(text: str, limits: SourceLimits) -> object:
    if _count_json(text) > limits.values:
        raise value_limit_error(limits)
    try:
        value = json.loads(text, parse_constant=str)
    except RecursionError:
        raise depth_limit_error() from None
    _replace_surrogates(value)
    return value


def _count_json(text: str) -> int:
    """Return a lower bound for the number of values in `text` without parsing it."""
    count = text.count(",") + text.count("{") + text.count("[")
    if count < 100_000:
        return count
    bare = _QUOTED.sub("", text)
    return bare.count(",") + bare.count("{") + bare.count("[")


def _replace_surrogates(value: object) -> None:
    """Replace unpaired surrogates, which are invalid text, by `?`. Raises SourceError above MAX_DEPTH."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level for inner in _replace_in_children(outer)]
        if not level:
            return
    raise depth_limit_error()


def _replace_in_children(outer: object) -> Iterator[object]:
    """Replace surrogates in the strings of `outer`, and yield its inner lists and objects."""
    if isinstance(outer, dict):
        if any(map(_has_surrogate, chain.from_iterable(outer.items()))):
            replaced = {
                _without_surrogates(key): _without_surrogates(value) for key, value in outer.items()
            }
            outer.clear()
            outer.update(replaced)
        yield from (value for value in outer.values() if isinstance(value, dict | list))
    elif isinstance(outer, list):
        if any(map(_has_surrogate, outer)):
            outer[:] = map(_without_surrogates, outer)
        yield from (value for value in outer if isinstance(value, dict | list))


def _has_surrogate(value: object) -> bool:
    return isinstance(value, str) and not value.isascii() and bool(_SURROGATE.search(value))


def _without_surrogates(value: object) -> object:
    return _SURROGATE.sub("?", value) if isinstance(value, str) else value
