"""Operations of Swagger 2.0.
Operations of OpenAPI 3.0 and 3.1.
"""

import re
from collections.abc import Iterator

from ingestion.sources.openapi.operations import (
    MOST_EXAMPLES,
    MOST_SERVERS,
    MediaContent,
    NamedExample,
    Operation,
    OperationField,
    OperationPlace,
    OperationResponse,
    absolute,
    example,
    named_examples,
)
from ingestion.sources.openapi.references import Node

_JSON = "application/json"


def read_v2(root: Node, place: OperationPlace, fields: tuple[OperationField, ...]) -> Operation:
    """The operation at `place`, whose parameters are `fields`, the body among them.

    Raises SourceError.
    """
    bodies = [field for field in fields if field.location == "body"]
    is_form = any(field.location == "formData" for field in fields)
    consumes = _types(root, place, "consumes")
    return Operation(
        place=place,
        fields=tuple(field for field in fields if field.location != "body"),
        body_types=consumes if bodies or is_form else (),
        body_description=bodies[0].node.text("description") if bodies else "",
        body_required=bool(bodies) and bodies[0].node.flag("required"),
        body=tuple(_body(field, consumes) for field in bodies[:1]),
        responses=tuple(_v2_responses(root, place)),
        servers=tuple(_v2_servers(root, place)),
        security=(place.node if "security" in place.node else root)["security"],
        schemes=root["securityDefinitions"],
    )


def field_v2(name: str, location: str, node: Node, is_public: bool) -> OperationField:
    """A parameter; all but a body are their own schema."""
    return OperationField(
        name, location, node, node["schema"] if location == "body" else node, is_public
    )


def _body(field: OperationField, consumes: tuple[str, ...]) -> MediaContent:
    examples = [*field.node["x-examples"].fields(), ("", field.node["x-example"])]
    return MediaContent(_main(consumes), field.schema, tuple(_examples(examples)))


def _examples(named: list[tuple[str, Node]]) -> Iterator[NamedExample]:
    for name, node in named[:MOST_EXAMPLES]:
        found = example(node.value, "")
        if found is not None:
            yield NamedExample(name, found)


def _types(root: Node, place: OperationPlace, key: str) -> tuple[str, ...]:
    holder = place.node if key in place.node else root
    said = [t.value.strip().lower() for t in holder[key].elements() if isinstance(t.value, str)]
    return tuple(filter(None, said)) or (_JSON,)


def _main(types: tuple[str, ...]) -> str:
    return _JSON if _JSON in types else types[0]


def _v2_responses(root: Node, place: OperationPlace) -> Iterator[OperationResponse]:
    main = _main(_types(root, place, "produces"))
    for status, response in place.node["responses"].fields():
        if status and not status.startswith("x-"):
            response = response.followed()
            named = list(response["examples"].fields())
            media: tuple[MediaContent, ...] = ()
            if named or response["schema"].is_table:
                media = (MediaContent(main, response["schema"], tuple(_examples(named))),)
            yield OperationResponse(
                status, response.text("description"), media, response["headers"]
            )


def _v2_servers(root: Node, place: OperationPlace) -> Iterator[str]:
    host, base = root.text("host"), root.text("basePath")
    holder = place.node if "schemes" in place.node else root
    schemes = [s.value for s in holder["schemes"].elements() if isinstance(s.value, str)]
    path = "/" + base.strip("/") if base.strip("/") else ""
    if not host:
        yield from (
            [absolute(path or "/", root.base)] if path or root.base.startswith("http") else []
        )
        return
    for scheme in (schemes or ["https"])[:MOST_SERVERS]:
        yield f"{scheme}://{host}{path}"


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
