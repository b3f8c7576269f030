"""Examples of bodies and parameters."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from pydantic import ValidationError

from ingestion.sources.openapi.references import Node
from schemas.api_document import Example

MAX_EXAMPLES = 30
"""Examples of one body."""

MAX_EXAMPLE_CHARS = 12_000
"""Characters of an example as JSON; a longer one is left out."""

_MAX_CELL_CHARS = 200
"""Characters of an example in a table cell, and of an example's title."""


class NamedExample(NamedTuple):
    """An example and its name in the description."""

    name: str
    example: Example


def named_examples(holder: Node) -> Iterator[NamedExample]:
    """Yield the examples of a media type: its `example`, else its `examples`. Raises SourceError."""
    if "example" in holder:
        example = make_example(holder["example"].value, "")
        if example is not None:
            yield NamedExample("", example)
            return
    for number, (name, each) in enumerate(holder["examples"].items()):
        if number < MAX_EXAMPLES:
            node = each.resolve()
            example = make_example(node["value"].value, node.text("summary") or name)
            if example is not None:
                yield NamedExample(name, example)


def make_example(value: object, title: str) -> Example | None:
    """Return `value` as an example; None when it is empty or too long."""
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
    """Return the first example among `holders` that fits a table cell; empty if there is none."""
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
    for each in holder["examples"].elements():
        yield each.value
    for _, each in holder["examples"].items():
        if "value" in each:
            yield each["value"].value
