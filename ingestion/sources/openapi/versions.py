"""Reads operations of OpenAPI 3.0, OpenAPI 3.1 and Swagger 2.0 into the same data types."""

import re
from collections.abc import Iterator
from itertools import islice

from ingestion.sources.openapi.operations import (
    MAX_EXAMPLES,
    MAX_SERVERS,
    MediaContent,
    NamedExample,
    Operation,
    OperationParameter,
    OperationResponse,
    PathOperation,
    absolute_server_url,
    make_example,
    named_examples,
)
from ingestion.sources.openapi.references import Node
from schemas.errors import SourceError

MAX_MEDIA_TYPES = 8
"""Maximum number of media types of one body in OpenAPI 3. Further media types are ignored."""

_JSON = "application/json"
_MULTIPART = "multipart/form-data"
_URL_ENCODED = "application/x-www-form-urlencoded"
_VARIABLE = re.compile(r"\{([^{}]*)\}")


class OpenApi3:
    """Reads OpenAPI 3.0 and 3.1 descriptions."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self.shared_parameters = root["components"]["parameters"]
        """The reusable parameters of the description, by name."""

    def read_parameter(
        self, name: str, location: str, node: Node, is_common: bool
    ) -> OperationParameter:
        """Return a parameter. Its schema is `schema` or that of the first media type in `content`."""
        schema = node["schema"]
        if not schema.is_object:
            schema = next((media["schema"] for _, media in node["content"].items()), schema)
        return OperationParameter(name, location, node, schema, is_common)

    def read_operation(
        self, path_operation: PathOperation, parameters: tuple[OperationParameter, ...]
    ) -> Operation:
        """Read the content of an operation with these `parameters`. Raises SourceError."""
        body = path_operation.node["requestBody"].resolve()
        media = tuple(_media(body["content"], is_required=body.is_true("required")))
        return Operation(
            path_operation=path_operation,
            parameters=parameters,
            body_types=tuple(content.type for content in media),
            body_description=body.text("description"),
            body=media,
            responses=tuple(
                OperationResponse(
                    status,
                    response.text("description") or response.text("summary"),
                    tuple(_media(response["content"])),
                    response["headers"],
                )
                for status, response in _responses(path_operation)
            ),
            servers=tuple(self._servers(path_operation)),
            security=_declared(path_operation, self._root, "security"),
            schemes=self._root["components"]["securitySchemes"],
        )

    def _servers(self, path_operation: PathOperation) -> Iterator[str]:
        """Yield the servers of the operation, or else of its path, or else of the description.

        The default server `/` is relative to the URL of the description. A description in a file has no
        default server.
        """
        for holder in (path_operation.node, path_operation.item, self._root):
            servers = [server for server in holder["servers"].elements() if server.text("url")]
            if servers:
                for server in servers[:MAX_SERVERS]:
                    yield absolute_server_url(_expand_server_variables(server), self._root.base)
                return
        if self._root.base.startswith("http"):
            yield absolute_server_url("/", self._root.base)


class Swagger2:
    """Reads Swagger 2.0 descriptions."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self.shared_parameters = root["parameters"]
        """The reusable parameters of the description, by name."""

    def read_parameter(
        self, name: str, location: str, node: Node, is_common: bool
    ) -> OperationParameter:
        """Return a parameter. Its schema is `node` itself or, for a body, the value of `schema`."""
        schema = node["schema"] if location == "body" else node
        return OperationParameter(name, location, node, schema, is_common)

    def read_operation(
        self, path_operation: PathOperation, parameters: tuple[OperationParameter, ...]
    ) -> Operation:
        """Read the content of an operation, whose `parameters` include its body. Raises SourceError."""
        bodies = [parameter for parameter in parameters if parameter.location == "body"]
        is_form = any(parameter.location == "formData" for parameter in parameters)
        has_file = any(parameter.node.text("type") == "file" for parameter in parameters)
        form_type = _MULTIPART if has_file else _URL_ENCODED
        consumes = self._media_types(path_operation, "consumes", form_type if is_form else _JSON)
        return Operation(
            path_operation=path_operation,
            parameters=tuple(parameter for parameter in parameters if parameter.location != "body"),
            body_types=consumes if bodies or is_form else (),
            body_description=bodies[0].node.text("description") if bodies else "",
            body=tuple(_body(parameter, consumes) for parameter in bodies[:1]),
            responses=tuple(self._read_responses(path_operation)),
            servers=tuple(self._servers(path_operation)),
            security=_declared(path_operation, self._root, "security"),
            schemes=self._root["securityDefinitions"],
        )

    def _media_types(
        self, path_operation: PathOperation, key: str, default: str = _JSON
    ) -> tuple[str, ...]:
        declared = _declared(path_operation, self._root, key).elements()
        types = (node.value.strip().lower() for node in declared if isinstance(node.value, str))
        return tuple(filter(None, types)) or (default,)

    def _read_responses(self, path_operation: PathOperation) -> Iterator[OperationResponse]:
        main = _preferred_type(self._media_types(path_operation, "produces"))
        for status, response in _responses(path_operation):
            named = list(response["examples"].items())
            media: tuple[MediaContent, ...] = ()
            if named or response["schema"].is_object:
                media = (MediaContent(main, response["schema"], tuple(_examples(named))),)
            yield OperationResponse(
                status, response.text("description"), media, response["headers"]
            )

    def _servers(self, path_operation: PathOperation) -> Iterator[str]:
        root = self._root
        host, base_path = root.text("host"), root.text("basePath").strip("/")
        path = f"/{base_path}" if base_path else ""
        if not host:
            if path or root.base.startswith("http"):
                yield absolute_server_url(path or "/", root.base)
            return
        declared = _declared(path_operation, root, "schemes").elements()
        schemes = [node.value for node in declared if isinstance(node.value, str)]
        for scheme in (schemes or ["https"])[:MAX_SERVERS]:
            yield f"{scheme}://{host}{path}"


def reader_for_version(root: Node) -> OpenApi3 | Swagger2:
    """Return the reader for the OpenAPI version that a description declares.

    Raises SourceError if the version is not supported.
    """
    if root.text("swagger").startswith("2"):
        return Swagger2(root)
    if root.text("openapi").startswith("3"):
        return OpenApi3(root)
    raise SourceError("not an OpenAPI 3.0, OpenAPI 3.1 or Swagger 2.0 description")


def _declared(path_operation: PathOperation, root: Node, key: str) -> Node:
    """Return the operation's value of `key` or, if it has none, the root's, which is the default."""
    return path_operation.node[key] if key in path_operation.node else root[key]


def _responses(path_operation: PathOperation) -> Iterator[tuple[str, Node]]:
    """Yield each status with its response, whose `$ref` is resolved. Raises SourceError."""
    for status, response in path_operation.node["responses"].items():
        if status and not status.startswith("x-"):
            yield status, response.resolve()


def _media(content: Node, *, is_required: bool = False) -> Iterator[MediaContent]:
    for name, reference in islice(content.items(), MAX_MEDIA_TYPES):
        media = reference.resolve()
        examples = tuple(named_examples(media))
        yield MediaContent(name.strip().lower(), media["schema"], examples, is_required)


def _expand_server_variables(server: Node) -> str:
    """Return the server's URL with its variables replaced by their default values."""

    def default(match: re.Match[str]) -> str:
        return server["variables"][match[1]].text("default") or match[0]

    return _VARIABLE.sub(default, server.text("url"))


def _body(parameter: OperationParameter, consumes: tuple[str, ...]) -> MediaContent:
    examples = [*parameter.node["x-examples"].items(), ("", parameter.node["x-example"])]
    return MediaContent(
        _preferred_type(consumes),
        parameter.schema,
        tuple(_examples(examples)),
        parameter.node.is_true("required"),
    )


def _examples(named: list[tuple[str, Node]]) -> Iterator[NamedExample]:
    for name, node in named[:MAX_EXAMPLES]:
        example = make_example(node.value, "")
        if example is not None:
            yield NamedExample(name, example)


def _preferred_type(types: tuple[str, ...]) -> str:
    return _JSON if _JSON in types else types[0]
