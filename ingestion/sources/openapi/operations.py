"""Data types for operations, independent of the OpenAPI version of the description."""

from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from ingestion.sources.openapi.examples import NamedExample
from ingestion.sources.openapi.references import Node

MAX_SERVERS = 5
"""Maximum number of servers that are listed for an operation."""

MAX_BASE_PATH_CHARS = 300
"""Maximum length of a server's path, in characters."""


@dataclass(frozen=True)
class OperationParameter:
    """A parameter that is not part of the body's schema."""

    name: str
    location: str
    """`path`, `query`, `header`, `cookie`, `formData` or, in Swagger 2.0, `body`."""
    node: Node
    schema: Node
    is_public: bool = False
    """Whether the parameter is common to several operations; documents list such parameters separately."""


@dataclass(frozen=True)
class MediaContent:
    """A request or response body of one media type."""

    type: str
    schema: Node
    examples: tuple[NamedExample, ...] = ()

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


@dataclass(frozen=True)
class PathOperation:
    """A method and path, with the nodes of the operation and of its path item."""

    method: str
    path: str
    item: Node
    node: Node

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
    body_required: bool
    body: tuple[MediaContent, ...]
    responses: tuple[OperationResponse, ...]
    servers: tuple[str, ...]
    security: Node
    """Alternative security requirements."""
    schemes: Node
    """Security schemes by name."""


def base_path(servers: tuple[str, ...]) -> str:
    """Return the path of the first server, without its trailing slash.

    The result is empty if there is no server, or if its path contains variables or is too long.
    """
    try:
        path = urlsplit(servers[0]).path.rstrip("/") if servers else ""
    except ValueError:
        return ""
    is_plain = path.startswith("/") and not set(path) & set("{}")
    return path if is_plain and len(path) <= MAX_BASE_PATH_CHARS else ""


def absolute_server_url(server: str, document: str) -> str:
    """Return `server` as an absolute URL, resolved against `document`, the URL of the description.

    If the description is a file, `server` is returned unchanged.
    """
    try:
        return urljoin(document, server) if document.startswith("http") else server
    except ValueError:
        return server
