"""Data types for the operations of an OpenAPI description, in any OpenAPI version.

The functions of this module list operations, and read examples and the URLs of servers.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple, get_args
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from ingestion.sources.openapi.references import Node, quote_text
from schemas.document import ApiDocument, Example
from schemas.errors import SourceError

MAX_EXAMPLES = 30
"""Maximum number of examples of one body."""

MAX_EXAMPLE_CHARS = 12_000
"""Maximum length of an example (text or JSON), in characters. Longer examples are omitted."""

_MAX_CELL_CHARS = 200
"""Maximum length of an example in a table cell and of an example's title, in characters."""

_MAX_CUT_EXAMPLE_CHARS = 600
"""Length in characters to which the first example is cut if no example fits into a table cell."""

MAX_SERVERS = 5
"""Maximum number of servers that are listed for an operation."""

MAX_BASE_PATH_CHARS = 300
"""Maximum length of a server's path, in characters."""

METHODS = tuple(get_args(ApiDocument.model_fields["method"].annotation))
"""HTTP methods in upper case."""


class NamedExample(NamedTuple):
    """An example and its name in the OpenAPI description."""

    name: str
    example: Example


def named_examples(holder: Node) -> Iterator[NamedExample]:
    """Yield the valid examples of a media type: its `example`, or else its `examples`.

    Raises SourceError.
    """
    if "example" in holder:
        example = make_example(holder["example"].value, "")
        if example is not None:
            yield NamedExample("", example)
            return
    for name, reference in islice(holder["examples"].items(), MAX_EXAMPLES):
        node = reference.resolve()
        example = make_example(node["value"].value, node.text("summary") or name)
        if example is not None:
            yield NamedExample(name, example)


def make_example(value: object, title: str) -> Example | None:
    """Return `value` as an example; None if it is null, too long or invalid.

    A JSON object or array that is written as a string is parsed.
    """
    if value is None or len(as_text(value)) > MAX_EXAMPLE_CHARS:
        return None
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value, parse_constant=str)
    try:
        return Example(title=title[:_MAX_CELL_CHARS], value=value)
    except ValidationError:
        return None


def as_text(value: object) -> str:
    """Return a string unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def short_example(*holders: Node) -> str:
    """Return the first example of `holders` that fits into a table cell; empty if there is no example.

    If no example fits, the first one is returned, up to `_MAX_CUT_EXAMPLE_CHARS`. An ellipsis shows that it
    is cut.
    """
    values = (value for holder in holders for value in _declared_examples(holder))
    texts = [as_text(value) for value in values if value is not None]
    short = next((text for text in texts if len(text) <= _MAX_CELL_CHARS), "")
    if short or not texts:
        return short
    first = texts[0]
    is_cut = len(first) > _MAX_CUT_EXAMPLE_CHARS
    return f"{first[:_MAX_CUT_EXAMPLE_CHARS].rstrip()}…" if is_cut else first


def _declared_examples(holder: Node) -> Iterator[object]:
    for key in ("example", "x-example"):
        if key in holder:
            yield holder[key].value
    for example in holder["examples"].elements():
        yield example.value
    for _, example in holder["examples"].items():
        if "value" in example:
            yield example["value"].value


@dataclass(frozen=True)
class OperationParameter:
    """A parameter, or a header of a response, as the OpenAPI description declares it."""

    name: str
    location: str
    """`path`, `query`, `header` or `cookie`; in Swagger 2.0 also `formData` or `body`."""
    node: Node
    schema: Node
    is_common: bool = False
    """Whether one declaration of the parameter applies to several operations.

    Documents list common parameters in a separate table.
    """


@dataclass(frozen=True)
class MediaContent:
    """A request or response body of one media type."""

    type: str
    schema: Node
    examples: tuple[NamedExample, ...] = ()
    is_required: bool = False
    """Whether a request must have the body."""

    @property
    def is_form(self) -> bool:
        """Whether the body is sent as a form."""
        return self.type.startswith(("multipart/", "application/x-www-form-urlencoded"))


@dataclass(frozen=True)
class OperationResponse:
    """A response with its status."""

    status: str
    """For example `200`, `4XX` or `default`."""
    description: str
    media: tuple[MediaContent, ...]
    headers: Node

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status.startswith("2")

    @property
    def examples(self) -> list[NamedExample]:
        """The examples of all media types."""
        return [example for media in self.media for example in media.examples]


EventKind = Literal["webhook", "callback"]


@dataclass(frozen=True)
class PlatformEvent:
    """The webhook or callback that a request belongs to."""

    kind: EventKind
    name: str
    callers: "list[PathOperation]" = field(default_factory=list)
    """The operations after which the platform sends the callback; empty for a webhook."""


@dataclass(frozen=True)
class PathOperation:
    """A method and path, with the nodes of the operation and of its path item."""

    method: str
    path: str
    """A path such as `/users/{id}`; for a webhook, its name; for a callback, an expression for the URL."""
    item: Node
    """The path item that contains the operation."""
    node: Node
    """The operation."""
    event: PlatformEvent | None = None
    """Set if the platform sends the request; None if developers call the operation."""

    def __str__(self) -> str:
        """Return method and path."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Operation:
    """The content of an operation. Its schemas may contain `$ref`s."""

    path_operation: PathOperation
    parameters: tuple[OperationParameter, ...]
    body_types: tuple[str, ...]
    """Accepted values of the request's Content-Type header."""
    body_description: str
    body: tuple[MediaContent, ...]
    responses: tuple[OperationResponse, ...]
    servers: tuple[str, ...]
    security: Node
    """Alternative security requirements."""
    schemes: Node
    """Security schemes by name."""

    def __str__(self) -> str:
        """Return method and path."""
        return str(self.path_operation)

    @property
    def success_responses(self) -> tuple[OperationResponse, ...]:
        """The responses with a 2xx status, or the only response if its status is `default`.

        If an operation also has responses with other statuses, `default` stands for unexpected errors.
        """
        is_only_default = [response.status for response in self.responses] == ["default"]
        return tuple(each for each in self.responses if is_only_default or each.is_success)


def base_path(servers: tuple[str, ...]) -> str:
    """Return the path of the first server, without its trailing slash.

    The result is empty if that path is unusable, for example because it contains variables.
    """
    try:
        path = urlsplit(servers[0]).path.rstrip("/") if servers else ""
    except ValueError:
        return ""
    is_plain = path.startswith("/") and not set(path) & set("{}")
    return path if is_plain and len(path) <= MAX_BASE_PATH_CHARS else ""


def absolute_server_url(server: str, description_url: str) -> str:
    """Return `server` as an absolute URL, resolved against the URL of the OpenAPI description.

    If the OpenAPI description is a file, or if a URL is invalid, `server` is returned unchanged.
    """
    try:
        return urljoin(description_url, server) if description_url.startswith("http") else server
    except ValueError:
        return server


def path_error(subject: str, reason: str) -> SourceError:
    """Return an error about the path or operation `subject`, which is shortened in the message."""
    return SourceError(f"{quote_text(subject)[1:-1]}: {reason}")


def path_operations(paths: Node) -> Iterator[PathOperation | SourceError]:
    """Yield every operation of `paths`, and a SourceError in place of each path that cannot be read."""
    for path, item in paths.items():
        if path.startswith("x-") or item.value is None:
            continue
        if not item.is_object:
            yield path_error(path, "is not an object")
            continue
        try:
            target = item.resolve()
        except SourceError as error:
            yield path_error(path, str(error))
            continue
        yield from _operations_of_path(path, item, target)


def _operations_of_path(path: str, item: Node, target: Node) -> Iterator[PathOperation]:
    """Yield the operations of a path item and of the target of its `$ref`.

    If the path item and the target have an operation with the same method, only the operation of the path
    item is yielded.
    """
    methods: set[str] = set()
    for holder in (item, target):
        for key, node in holder.items():
            method = key.upper()
            if method in METHODS and method not in methods:
                methods.add(method)
                yield PathOperation(method, path, holder, node)


def parameter_ids(operation: Node) -> Iterator[int]:
    """Yield the Python object ids of the parameters that `operation` declares or refers to."""
    for parameter in operation["parameters"].elements():
        try:
            yield id(parameter.resolve().value)
        except SourceError:
            continue  # reported when the operation is read
