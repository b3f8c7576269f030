"""Reads the tags of MDX components: their attributes, and the operation of an API that they name."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

MAX_OBJECT_CHARS = 5_000
"""Maximum length of an object in an attribute that is read; a longer one is an example."""

_QUOTED = r"\"[^\"]*\"|'[^']*'"


def _braces(depth: int) -> str:
    inner = "" if depth == 0 else f"|{_braces(depth - 1)}"
    return rf"\{{(?:\"(?:[^\"\\]|\\.)*+\"|[^{{}}\"]{inner})*+\}}"


_BRACES = _braces(6)
ATTRIBUTES = rf"(?:\s+[\w:@.-]+(?:\s*=\s*(?:{_QUOTED}|{_BRACES}|[^\s\"'>{{]+))?)*"
"""Pattern of the attributes of a tag. The value of one may be an object in several pairs of braces."""

_ATTRIBUTE = re.compile(
    rf"(?P<name>[\w:@.-]+)(?:\s*=\s*(?:(?P<quoted>{_QUOTED})|(?P<braces>{_BRACES})|(?P<bare>[^\s\"'>{{]+)))?"
)
_NO_TEXT = re.compile(r"[{<\[]|(?:true|false|null|undefined)$")
METHOD = re.compile("get|post|put|patch|delete|head|options", re.IGNORECASE)
_TARGET = re.compile(r"(?:https?://|/)[^\s\"'`]*")


def attributes_of(text: str) -> dict[str, str]:
    """Return the attributes in a tag; one without a value is `true`, an object is in braces."""
    return {match["name"]: _value(match) for match in _ATTRIBUTE.finditer(text)}


def _value(match: re.Match[str]) -> str:
    if match["quoted"]:
        return match["quoted"][1:-1].strip()
    if match["braces"]:
        inner = match["braces"][1:-1].strip()
        is_text = len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "\"'`"
        return inner[1:-1].strip() if is_text else inner
    return match["bare"] or "true"


def object_of(text: str) -> dict[str, Any]:
    """Return an object in JSON or JavaScript, such as `{ name: 'id', required: true }`.

    Empty if it is none, or refers to variables or functions in a way that is no YAML.
    """
    if not text.startswith("{") or len(text) > MAX_OBJECT_CHARS:
        return {}
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}


def call_in(values: Iterable[object]) -> str:
    """Return the call, such as `POST /v1/x`, if the values are a method and a URL; else nothing."""
    texts = [value for value in values if isinstance(value, str)]
    method = next(filter(METHOD.fullmatch, texts), "")
    target = next(filter(_TARGET.fullmatch, texts), "")
    return f"{method.upper()} {target}" if method and target else ""


def title_of(values: Mapping[str, str], names: Iterable[str]) -> str:
    """Return the first of the attributes `names` that is text."""
    texts = (values.get(name, "") for name in names)
    return next((text for text in texts if text and not _NO_TEXT.match(text)), "")
