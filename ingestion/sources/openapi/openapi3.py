"""Reads operations of OpenAPI 3.0 and 3.1 descriptions."""

import re
from collections.abc import Iterator

from ingestion.sources.openapi.operations import (
    MAX_SERVERS,
    MediaContent,
    Operation,
    OperationParameter,
    OperationResponse,
    PathOperation,
    absolute_server_url,
    named_examples,
)
from ingestion.sources.openapi.references import Node

MAX_MEDIA_TYPES = 8
"""Maximum number of media types of one body. Further ones are ignored."""

_VARIABLE = re.compile(r"\{([^{}]*)\}")


def shared_parameters(root: Node) -> Node:
    """Return the reusable parameters of a description, by name."""
    return root["components"]["parameters"]


def read_operation(
    root: Node, path_operation: PathOperation, parameters: tuple[OperationParameter, ...]
) -> Operation:
    """Read the content of an operation, except its `parameters`, which are given. Raises SourceError."""
    body = path_operation.node["requestBody"].resolve()
    media = tuple(_media(body["content"]))
    return Operation(
        path_operation=path_operation,
        parameters=parameters,
        body_types=tuple(content.type for content in media),
        body_description=body.text("description"),
        body_required=body.flag("required"),
        body=media,
        responses=tuple(_responses(path_operation.node["responses"])),
        servers=tuple(_servers(root, path_operation)),
        security=(path_operation.node if "security" in path_operation.node else root)["security"],
        schemes=root["components"]["securitySchemes"],
    )


def read_parameter(name: str, location: str, node: Node, is_common: bool) -> OperationParameter:
    """Return a parameter. Its schema is that of `schema` or of the first media type in `content`."""
    schema = node["schema"]
    if not schema.is_object:
        schema = next((media["schema"] for _, media in node["content"].items()), schema)
    return OperationParameter(name, location, node, schema, is_common)


def _media(content: Node) -> Iterator[MediaContent]:
    for number, (name, media) in enumerate(content.items()):
        if number < MAX_MEDIA_TYPES:
            media = media.resolve()
            yield MediaContent(name.strip().lower(), media["schema"], tuple(named_examples(media)))


def _responses(responses: Node) -> Iterator[OperationResponse]:
    for status, response in responses.items():
        if status and not status.startswith("x-"):
            response = response.resolve()
            yield OperationResponse(
                status,
                response.text("description") or response.text("summary"),
                tuple(_media(response["content"])),
                response["headers"],
            )


def _servers(root: Node, path_operation: PathOperation) -> Iterator[str]:
    """Yield the servers of the operation; if it has none, those of its path or of the description."""
    for holder in (path_operation.node, path_operation.item, root):
        servers = [server for server in holder["servers"].elements() if server.text("url")]
        if servers:
            for server in servers[:MAX_SERVERS]:
                yield absolute_server_url(_expand_server_variables(server), root.base)
            return


def _expand_server_variables(server: Node) -> str:
    """Return the server's URL with its variables replaced by their default values."""

    def default(match: re.Match[str]) -> str:
        return server["variables"][match[1]].text("default") or match[0]

    return _VARIABLE.sub(default, server.text("url"))
