"""Parses a model's reply into a validated object, even if text surrounds the JSON or the JSON is broken."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

T = TypeVar("T", bound=BaseModel)

MAX_REPLY_CHARS = 60_000
"""Maximum length of the text that is parsed, in characters; the rest of a reply is ignored."""

MAX_REPAIR_CHARS = 6_000
"""Maximum length of broken JSON that is repaired, in characters; the rest is ignored."""

MAX_REPAIR_MARKS = 600
"""Maximum number of quotation marks and opening braces in broken JSON that is repaired.

The time of a repair grows with the square of their number.
"""

MAX_OBJECT_STARTS = 100
"""Maximum number of opening braces at which decoding is tried."""

_THINKING = re.compile(
    r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)"
    r"|\A(?:(?!<think).)*?</think(?:ing)?>",  # no opening tag: some chat templates put it into the prompt
    re.DOTALL | re.IGNORECASE,
)
_FENCE = re.compile(r"```[\w-]*\s*\n?(.*?)(?:```|\Z)", re.DOTALL)


class UnreadableReply(ValueError):
    """The text contains no valid object of the schema; the message tells the model what to correct."""


def parse_object(text: str, schema: type[T], repair: bool = True) -> tuple[T, bool]:
    """Return an object in `text` that is valid for `schema`, and whether it was repaired.

    Longer objects are tried before shorter ones. Broken JSON is tried last, and only if `repair` is true.
    Raises UnreadableReply.
    """
    problem = "there is no JSON object in it"
    for repaired, value in _candidate_objects(text[:MAX_REPLY_CHARS], repair):
        try:
            return schema.model_validate(_unwrap(value, schema)), repaired
        except ValidationError as error:
            problem = "; ".join(f"{_location(e)}: {e['msg']}" for e in error.errors()[:5])
        except _SchemaEchoed:
            problem = "it repeats the JSON Schema instead of returning an object that follows it"
    raise UnreadableReply(problem)


def replace_unencodable(text: str) -> str:
    """Return `text` without NUL characters, and with U+FFFD in place of unpaired surrogates.

    PostgreSQL rejects NUL characters, and UTF-8 cannot encode surrogates.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")


def strip_thinking(text: str) -> str:
    """Return `text` without the thinking of a reasoning model."""
    return _THINKING.sub("", text).strip()


def partial_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object at the first brace of `text`, which may be unfinished; None if there is none.

    An unfinished string in the object is left out.
    """
    text = strip_thinking(text)
    try:
        value = from_json(text[text.index("{") :].encode(errors="replace"), allow_partial=True)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def is_unfinished(text: str) -> bool:
    """Return whether `text` ends before or within the JSON object that starts at its first brace.

    Text without a brace counts as unfinished, because it may have ended before the object. If only the last
    brace is missing, the object counts as finished. Text with a syntax error before its end does not count
    as unfinished, because `json_repair` can often repair it.
    """
    _, brace, rest = strip_thinking(text).partition("{")
    json_text = brace + rest
    is_at_end = _syntax_error(json_text).startswith("EOF while parsing")
    return is_at_end and bool(_syntax_error(f"{json_text}}}"))


def _syntax_error(text: str) -> str:
    """Return the message of the first syntax error in JSON; empty if there is none."""
    try:
        from_json(text.encode(errors="replace"))
    except ValueError as error:
        return str(error)
    return ""


class _SchemaEchoed(Exception):
    """The model returned the JSON Schema."""


def _candidate_objects(text: str, repair: bool) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Yield each object in `text` as `(is_repaired, object)`. Repaired objects come last."""
    candidates = list(dict.fromkeys(_candidate_texts(text)))
    for candidate in candidates:
        yield from ((False, value) for value in _decode_objects(candidate))
    for candidate in candidates if repair else ():
        if is_unfinished(candidate):
            value: object = partial_object(candidate)
        else:
            value = _repair(candidate[candidate.index("{") :])
        if isinstance(value, dict):
            yield True, value


def _candidate_texts(text: str) -> Iterator[str]:
    """Yield the parts of `text` that may be JSON.

    These are the text without thinking, the content of each code fence, and the whole text.
    """
    text = replace_unencodable(text)
    answer = strip_thinking(text) or text
    yield answer
    yield from (fence.strip() for fence in _FENCE.findall(answer))
    yield text.strip()


def _decode_objects(text: str) -> list[dict[str, Any]]:
    """Return the complete JSON objects in `text`, longest first."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    objects: list[tuple[int, dict[str, Any]]] = []
    position = 0
    for _ in range(MAX_OBJECT_STARTS):
        if (start := text.find("{", position)) < 0:
            break
        try:
            value, position = decoder.raw_decode(text, start)
            value = _encodable_value(value)
        except (ValueError, RecursionError):
            position = start + 1
        else:
            objects.append((position - start, value))
    return [value for _, value in sorted(objects, key=lambda item: -item[0])]


def _repair(text: str) -> object:
    text = text[:MAX_REPAIR_CHARS]
    if text.count('"') + text.count("{") > MAX_REPAIR_MARKS:
        return None
    try:
        return _encodable_value(json_repair.loads(text))
    except (ValueError, RecursionError):
        return None


def _encodable_value(value: object) -> Any:
    """Return `value` without anything that JSON in UTF-8 cannot encode."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return json.loads(replace_unencodable(text), parse_constant=lambda _: None)


def _unwrap(value: dict[str, Any], schema: type[BaseModel]) -> dict[str, Any]:
    """Return `value` or, if `value` only wraps one object with fields of the schema, that object.

    For a schema with the field `ok`, `{"result": {"ok": true}}` becomes `{"ok": true}`. Raises
    _SchemaEchoed if `value` is a JSON Schema.
    """
    if "$defs" in value or ("properties" in value and value.get("type") == "object"):
        raise _SchemaEchoed
    names = _field_names(schema)
    inner = [item for item in value.values() if isinstance(item, dict) and names & set(item)]
    if names & set(value) and len(value) > 1:
        return value
    return inner[0] if len(inner) == 1 else value


@lru_cache
def _field_names(schema: type[BaseModel]) -> frozenset[str]:
    """Return the names of the schema's fields, as in JSON and as in Python."""
    return frozenset(schema.model_json_schema()["properties"]) | frozenset(schema.model_fields)


def _location(error: Any) -> str:
    return ".".join(map(str, error["loc"])) or "the object"
