"""Reads the examples of bodies and parameters."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from pydantic import ValidationError

from ingestion.sources.openapi.references import Node
from schemas.api_document import Example

MAX_EXAMPLES = 30
"""Maximum number of examples of one body."""

MAX_EXAMPLE_CHARS = 12_000
"""Maximum length of an example as JSON, in characters. Longer ones are omitted."""

_MAX_CELL_CHARS = 200
"""Maximum length of an example in a table cell and of an example's title, in characters."""


class NamedExample(NamedTuple):
    """An example and its name in the description."""

    name: str
    example: Example


def named_examples(holder: Node) -> Iterator[NamedExample]:
    """Yield the `example` of a media type or, if it has none, its `examples`. Raises SourceError."""
    if "example" in holder:
        example = make_example(holder["example"].value, "")
        if example is not None:
            yield NamedExample("", example)
            return
    for number, (name, reference) in enumerate(holder["examples"].items()):
        if number < MAX_EXAMPLES:
            node = reference.resolve()
            example = make_example(node["value"].value, node.text("summary") or name)
            if example is not None:
                yield NamedExample(name, example)


def make_example(value: object, title: str) -> Example | None:
    """Return `value` as an example; None if it is null, too long or invalid."""
    if value is None or len(as_text(value)) > MAX_EXAMPLE_CHARS:
        return None
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):  # JSON written as a string
            value = json.loads(value, parse_constant=str)
    try:
        return Example(title=title[:_MAX_CELL_CHARS], value=value)
    except ValidationError:
        return None


def as_text(value: object) -> str:
    """Return `value` as text: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def short_example(*holders: Node) -> str:
    """Return the first example of `holders` that fits into a table cell; empty if there is none."""
    for holder in holders:
        for value in _declared_examples(holder):
            text = as_text(value)
            if value is not None and len(text) <= _MAX_CELL_CHARS:
                return text
    return ""


def _declared_examples(holder: Node) -> Iterator[object]:
    for key in ("example", "x-example"):
        if key in holder:
            yield holder[key].value
    for example in holder["examples"].elements():
        yield example.value
    for _, example in holder["examples"].items():
        if "value" in example:
            yield example["value"].value
