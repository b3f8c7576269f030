"""Reads operations of Swagger 2.0 descriptions."""

from collections.abc import Iterator

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
)
from ingestion.sources.openapi.references import Node

_JSON = "application/json"


def shared_parameters(root: Node) -> Node:
    """Return the reusable parameters of a description, by name."""
    return root["parameters"]


def read_operation(
    root: Node, path_operation: PathOperation, parameters: tuple[OperationParameter, ...]
) -> Operation:
    """Read the content of an operation. Its body is one of the `parameters`. Raises SourceError."""
    bodies = [parameter for parameter in parameters if parameter.location == "body"]
    is_form = any(parameter.location == "formData" for parameter in parameters)
    consumes = _media_types(root, path_operation, "consumes")
    return Operation(
        path_operation=path_operation,
        parameters=tuple(parameter for parameter in parameters if parameter.location != "body"),
        body_types=consumes if bodies or is_form else (),
        body_description=bodies[0].node.text("description") if bodies else "",
        body_required=bool(bodies) and bodies[0].node.flag("required"),
        body=tuple(_body(parameter, consumes) for parameter in bodies[:1]),
        responses=tuple(_responses(root, path_operation)),
        servers=tuple(_servers(root, path_operation)),
        security=(path_operation.node if "security" in path_operation.node else root)["security"],
        schemes=root["securityDefinitions"],
    )


def read_parameter(name: str, location: str, node: Node, is_common: bool) -> OperationParameter:
    """Return a parameter. Its schema is `node` itself, except for a body, which has the key `schema`."""
    return OperationParameter(
        name, location, node, node["schema"] if location == "body" else node, is_common
    )


def _body(parameter: OperationParameter, consumes: tuple[str, ...]) -> MediaContent:
    examples = [*parameter.node["x-examples"].items(), ("", parameter.node["x-example"])]
    return MediaContent(_preferred_type(consumes), parameter.schema, tuple(_examples(examples)))


def _examples(named: list[tuple[str, Node]]) -> Iterator[NamedExample]:
    for name, node in named[:MAX_EXAMPLES]:
        example = make_example(node.value, "")
        if example is not None:
            yield NamedExample(name, example)


def _media_types(root: Node, path_operation: PathOperation, key: str) -> tuple[str, ...]:
    holder = path_operation.node if key in path_operation.node else root
    values = (node.value for node in holder[key].elements())
    types = (value.strip().lower() for value in values if isinstance(value, str))
    return tuple(filter(None, types)) or (_JSON,)


def _preferred_type(types: tuple[str, ...]) -> str:
    return _JSON if _JSON in types else types[0]


def _responses(root: Node, path_operation: PathOperation) -> Iterator[OperationResponse]:
    main = _preferred_type(_media_types(root, path_operation, "produces"))
    for status, response in path_operation.node["responses"].items():
        if status and not status.startswith("x-"):
            response = response.resolve()
            named = list(response["examples"].items())
            media: tuple[MediaContent, ...] = ()
            if named or response["schema"].is_object:
                media = (MediaContent(main, response["schema"], tuple(_examples(named))),)
            yield OperationResponse(
                status, response.text("description"), media, response["headers"]
            )


def _servers(root: Node, path_operation: PathOperation) -> Iterator[str]:
    host, base = root.text("host"), root.text("basePath")
    holder = path_operation.node if "schemes" in path_operation.node else root
    values = (node.value for node in holder["schemes"].elements())
    schemes = [value for value in values if isinstance(value, str)]
    path = "/" + base.strip("/") if base.strip("/") else ""
    if not host:
        yield from (
            [absolute_server_url(path or "/", root.base)]
            if path or root.base.startswith("http")
            else []
        )
        return
    for scheme in (schemes or ["https"])[:MAX_SERVERS]:
        yield f"{scheme}://{host}{path}"
