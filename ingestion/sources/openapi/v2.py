"""Operations of Swagger 2.0."""

from collections.abc import Iterator

from ingestion.sources.openapi.examples import example
from ingestion.sources.openapi.operation import (
    MOST_EXAMPLES,
    MOST_SERVERS,
    MediaContent,
    NamedExample,
    Operation,
    OperationField,
    OperationPlace,
    OperationResponse,
    absolute,
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
