"""Operations of OpenAPI 3.0 and 3.1."""

import re
from collections.abc import Iterator

from ingestion.sources.openapi.examples import named_examples
from ingestion.sources.openapi.operation import (
    MOST_SERVERS,
    MediaContent,
    Operation,
    OperationField,
    OperationPlace,
    OperationResponse,
    absolute,
)
from ingestion.sources.openapi.references import Node

MOST_MEDIA = 8
"""Media types of one body."""

_VARIABLE = re.compile(r"\{([^{}]*)\}")


def read_v3(root: Node, place: OperationPlace, fields: tuple[OperationField, ...]) -> Operation:
    """The operation at `place`, whose parameters are `fields`. Raises SourceError."""
    body = place.node["requestBody"].followed()
    media = tuple(_media(body["content"]))
    return Operation(
        place=place,
        fields=fields,
        body_types=tuple(each.type for each in media),
        body_description=body.text("description"),
        body_required=body.flag("required"),
        body=media,
        responses=tuple(_responses(place.node["responses"])),
        servers=tuple(_servers(root, place)),
        security=(place.node if "security" in place.node else root)["security"],
        schemes=root["components"]["securitySchemes"],
    )


def field_v3(name: str, location: str, node: Node, is_public: bool) -> OperationField:
    """A parameter, whose schema may lie under a media type."""
    schema = node["schema"]
    if not schema.is_table:
        schema = next((media["schema"] for _, media in node["content"].fields()), schema)
    return OperationField(name, location, node, schema, is_public)


def _media(content: Node) -> Iterator[MediaContent]:
    for number, (name, media) in enumerate(content.fields()):
        if number < MOST_MEDIA:
            media = media.followed()
            yield MediaContent(name.strip().lower(), media["schema"], tuple(named_examples(media)))


def _responses(responses: Node) -> Iterator[OperationResponse]:
    for status, response in responses.fields():
        if status and not status.startswith("x-"):
            response = response.followed()
            yield OperationResponse(
                status,
                response.text("description") or response.text("summary"),
                tuple(_media(response["content"])),
                response["headers"],
            )


def _servers(root: Node, place: OperationPlace) -> Iterator[str]:
    """The servers that are said nearest to the operation."""
    for holder in (place.node, place.item, root):
        servers = [s for s in holder["servers"].elements() if s.text("url")]
        if servers:
            for server in servers[:MOST_SERVERS]:
                yield absolute(_filled(server), root.base)
            return


def _filled(server: Node) -> str:
    """The server's url with the defaults of its variables."""

    def default(match: re.Match[str]) -> str:
        return server["variables"][match[1]].text("default") or match[0]

    return _VARIABLE.sub(default, server.text("url"))
