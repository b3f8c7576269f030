"""Examples as descriptions give them."""

import json
from collections.abc import Iterator
from contextlib import suppress

from pydantic import ValidationError

from ingestion.sources.openapi.operation import LONGEST_EXAMPLE, MOST_EXAMPLES, NamedExample
from ingestion.sources.openapi.references import Node
from schemas.api_document import Example

_LONGEST_CELL = 200


def named_examples(holder: Node) -> Iterator[NamedExample]:
    """The examples of a media type: the one, else the first of several. Raises SourceError."""
    if "example" in holder:
        found = example(holder["example"].value, "")
        if found is not None:
            yield NamedExample("", found)
            return
    for number, (name, each) in enumerate(holder["examples"].fields()):
        if number < MOST_EXAMPLES:
            each = each.followed()
            found = example(each["value"].value, each.text("summary") or name)
            if found is not None:
                yield NamedExample(name, found)


def example(value: object, title: str) -> Example | None:
    """`value` as an example; None for one that is empty or too long."""
    if value is None or len(as_text(value)) > LONGEST_EXAMPLE:
        return None
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):  # JSON that was written as text
            value = json.loads(value, parse_constant=str)
    try:
        return Example(title=title[:_LONGEST_CELL], value=value)
    except ValidationError:
        return None


def as_text(value: object) -> str:
    """`value` as it stands in a sentence: text bare, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cell_example(*holders: Node) -> str:
    """The example of a parameter: of the first of `holders` that has one; a long one is left out."""
    for holder in holders:
        for value in _examples(holder):
            text = as_text(value)
            if value is not None and len(text) <= _LONGEST_CELL:
                return text
    return ""


def _examples(holder: Node) -> Iterator[object]:
    for key in ("example", "x-example"):
        if key in holder:
            yield holder[key].value
    for each in holder["examples"].elements():
        yield each.value
    for _, each in holder["examples"].fields():
        if "value" in each:
            yield each["value"].value
