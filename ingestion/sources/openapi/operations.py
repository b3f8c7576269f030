"""Examples as descriptions give them.
An operation of a description, whichever version wrote it.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from ingestion.sources.openapi.references import Node
from schemas.api_document import Example

MOST_EXAMPLES = 30
"""Examples of one body."""

LONGEST_EXAMPLE = 12_000
"""Characters of an example, as JSON; a longer one is left out."""

MOST_SERVERS = 5

LONGEST_BASE = 300
"""Characters of a server's path."""


@dataclass(frozen=True)
class OperationField:
    """A parameter outside of the body's schema."""

    name: str
    location: str
    """path, query, header, cookie or formData."""
    node: Node
    schema: Node
    is_public: bool = False
    """Whether other operations have the very same."""


class NamedExample(NamedTuple):
    """An example, and the name that the description has for it."""

    name: str
    example: Example


@dataclass(frozen=True)
class MediaContent:
    """A body of one media type."""

    type: str
    schema: Node
    examples: tuple[NamedExample, ...] = ()

    @property
    def is_form(self) -> bool:
        """Whether it is sent as a form."""
        return self.type.startswith(("multipart/", "application/x-www-form-urlencoded"))


@dataclass(frozen=True)
class OperationResponse:
    """What an operation answers with under one status."""

    status: str
    """`200`, `4XX`, `default`."""
    description: str
    media: tuple[MediaContent, ...]
    headers: Node

    @property
    def is_success(self) -> bool:
        """Whether the status says so."""
        return self.status.startswith("2")


@dataclass(frozen=True)
class OperationPlace:
    """Where an operation stands."""

    method: str
    path: str
    item: Node
    node: Node

    def __str__(self) -> str:
        """Its name where it has no other."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Operation:
    """All that is said of an operation; schemas may still hold `$ref`s."""

    place: OperationPlace
    fields: tuple[OperationField, ...]
    body_types: tuple[str, ...]
    """What the request's Content-Type may be."""
    body_description: str
    body_required: bool
    body: tuple[MediaContent, ...]
    responses: tuple[OperationResponse, ...]
    servers: tuple[str, ...]
    security: Node
    """Requirements, any of which is enough."""
    schemes: Node
    """Security schemes by name."""


def base_path(servers: tuple[str, ...]) -> str:
    """The path of the first server, without a slash at its end; empty where it is not plain."""
    try:
        path = urlsplit(servers[0]).path.rstrip("/") if servers else ""
    except ValueError:
        return ""
    is_plain = path.startswith("/") and not set(path) & set("{}")
    return path if is_plain and len(path) <= LONGEST_BASE else ""


def absolute(server: str, document: str) -> str:
    """`server` as a whole url, where the description came from one."""
    try:
        return urljoin(document, server) if document.startswith("http") else server
    except ValueError:
        return server


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
