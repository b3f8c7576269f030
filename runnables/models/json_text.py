"""What a model wrote for JSON -> a validated object, whatever stands around it or is wrong with it."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError

T = TypeVar("T", bound=BaseModel)

LONGEST = 60_000
"""Characters of a reply that are read; no answer is longer."""

LONGEST_REPAIR = 6_000
"""Characters that are repaired."""

MOST_MARKS = 600
"""Quotation marks and opening braces in them; the time that repairing takes grows with their square."""

BRACES = 100
"""Opening braces at which an object is looked for."""

_THINKING = re.compile(
    r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)"
    r"|\A(?:(?!<think).)*?</think(?:ing)?>",  # some chat templates have opened it already
    re.DOTALL | re.IGNORECASE,
)
_FENCE = re.compile(r"```[\w-]*\s*\n?(.*?)(?:```|\Z)", re.DOTALL)


class UnreadableReply(ValueError):
    """No object of the schema is in the text; the message says what is wrong, for the model to mend."""


def read_object(text: str, schema: type[T], mend: bool = True) -> tuple[T, bool]:
    """The first `schema` object in `text`, and whether it had to be repaired. Raises NotReadable."""
    problem = "there is no JSON object in it"
    for repaired, value in _values(text[:LONGEST], mend):
        try:
            return schema.model_validate(_unwrapped(value, schema)), repaired
        except ValidationError as error:
            problem = "; ".join(f"{_place(e)}: {e['msg']}" for e in error.errors()[:5])
        except _Echoed:
            problem = "it repeats the JSON Schema instead of filling it"
    raise UnreadableReply(problem)


def clean(text: str) -> str:
    """`text` that UTF-8 can hold: halves of a surrogate pair that have lost the other one go."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")


def without_thinking(text: str) -> str:
    """`text` without a reasoning model's preamble."""
    return _THINKING.sub("", text).strip()


class _Echoed(Exception):
    """The model sent the schema back."""


def _values(text: str, mend: bool) -> Iterator[tuple[bool, dict[str, Any]]]:
    """The objects that `text` may mean: as it stands first, repaired last."""
    candidates = list(dict.fromkeys(_candidates(text)))
    for candidate in candidates:
        yield from ((False, value) for value in _decoded(candidate))
    for candidate in candidates if mend else ():
        start = candidate.find("{")
        mended = _repaired(candidate[start:]) if start >= 0 else None
        if isinstance(mended, dict):
            yield True, mended


def _candidates(text: str) -> Iterator[str]:
    """The parts of `text` that may be the JSON: all of it, what follows the thinking, each fence."""
    text = clean(text)
    answer = without_thinking(text) or text
    yield answer
    yield from (fence.strip() for fence in _FENCE.findall(answer))
    yield text.strip()


def _decoded(text: str) -> list[dict[str, Any]]:
    """The whole JSON objects in `text`, the longest first."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    found: list[tuple[int, dict[str, Any]]] = []
    position = 0
    for _ in range(BRACES):
        if (start := text.find("{", position)) < 0:
            break
        try:
            value, position = decoder.raw_decode(text, start)
            value = _sound(value)
        except (ValueError, RecursionError):
            position = start + 1
        else:
            found.append((position - start, value))
    return [value for _, value in sorted(found, key=lambda each: -each[0])]


def _repaired(text: str) -> object:
    text = text[:LONGEST_REPAIR]
    if text.count('"') + text.count("{") > MOST_MARKS:
        return None
    try:
        return _sound(json_repair.loads(text))
    except (ValueError, RecursionError):
        return None


def _sound(value: object) -> Any:
    """`value` without what JSON in UTF-8 cannot hold."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return json.loads(clean(text), parse_constant=lambda _: None)


def _unwrapped(value: dict[str, Any], schema: type[BaseModel]) -> dict[str, Any]:
    """`value`, or what it wraps under a name that the schema does not have or under a single one."""
    if "$defs" in value or ("properties" in value and value.get("type") == "object"):
        raise _Echoed
    names = _names(schema)
    inner = [v for v in value.values() if isinstance(v, dict) and names & set(v)]
    if names & set(value) and len(value) > 1:
        return value
    return inner[0] if len(inner) == 1 else value


@lru_cache
def _names(schema: type[BaseModel]) -> frozenset[str]:
    """What its fields may be called, on the wire and in Python."""
    return frozenset(schema.model_json_schema()["properties"]) | frozenset(schema.model_fields)


def _place(error: Any) -> str:
    return ".".join(map(str, error["loc"])) or "the object"
