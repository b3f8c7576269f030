"""Litestar extensions: the OpenAPI document, JSON with unpaired surrogates, and the header `Allow`.

The OpenAPI document includes the errors that a route declares with `errors=`.
"""

import json
from collections.abc import Iterator
from http import HTTPStatus
from inspect import getdoc
from typing import TYPE_CHECKING, Any, get_args

from litestar import Request
from litestar.exceptions import ClientException, SerializationException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import (
    Components,
    OpenAPIResponse,
    Operation,
    Schema,
    SecurityRequirement,
    SecurityScheme,
    Tag,
)
from litestar.params import BodyKwarg, HeaderParameter, PathParameter, QueryParameter
from litestar.plugins import OpenAPISchemaPlugin, ReceiveRoutePlugin
from litestar.routes import BaseRoute, HTTPRoute
from litestar.serialization import decode_json
from litestar.typing import FieldDefinition
from pydantic import BaseModel
from pydantic.alias_generators import to_snake
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from app.api.problems import PROBLEM_JSON, Problem, status_of
from ingestion.text.language import replace_surrogates
from schemas.errors import ApideskError

if TYPE_CHECKING:
    from litestar._openapi.schema_generation import SchemaCreator


class JsonRequest(Request[Any, Any, Any]):
    r"""A request whose JSON body may contain unpaired surrogates (`"\ud83d"`)."""

    async def json(self) -> Any:
        """Return the body's JSON value, with unpaired surrogates replaced.

        Raises ClientException if the body is not valid JSON in UTF-8, or is too deeply nested.
        """
        try:
            return _decode(await self.body())
        except (ValueError, RecursionError, SerializationException) as error:
            raise ClientException from error


def _decode(body: bytes) -> Any:
    # Unlike `decode_json`, `json.loads` accepts unpaired surrogates.
    text = json.dumps(json.loads(body.decode()), ensure_ascii=False)
    return decode_json(replace_surrogates(text))


class AllowHeaderPlugin(ReceiveRoutePlugin):
    """Lists every method of a path in the header `Allow` of responses to OPTIONS requests.

    Litestar lists only the methods of the first handler.
    """

    def __init__(self) -> None:
        self._first_routes: dict[str, HTTPRoute] = {}

    def receive_route(self, route: BaseRoute) -> None:
        """Copy the methods of `route` to the first route of its path, which answers OPTIONS requests.

        Litestar creates a route for each new handler of a path; the last route has all methods.
        """
        if isinstance(route, HTTPRoute):
            self._first_routes.setdefault(route.path, route).methods = route.methods


QUESTIONS_TAG = "questions"
DOCUMENTS_TAG = "documents"
OPERATING_TAG = "operating"

TAGS = [
    Tag(QUESTIONS_TAG, "Ask questions, retrieve chunks, rate answers, delete sessions."),
    Tag(DOCUMENTS_TAG, "Ingest the platform's documents."),
    Tag(OPERATING_TAG, "Health, metrics and reports."),
]

SECURITY_REQUIREMENTS: list[SecurityRequirement] = [{"bearer": []}, {"apiKey": []}]

SECURITY_SCHEMES = Components(
    security_schemes={
        "bearer": SecurityScheme(type="http", scheme="bearer"),
        "apiKey": SecurityScheme(type="apiKey", name="X-API-Key", security_scheme_in="header"),
    }
)

ACCESS_PROBLEMS = {
    401: "The API key is missing, unknown, revoked or expired",
    403: "The API key lacks the required scope, or no API key is configured and the request is not local",
    429: "The rate limit is exceeded; `Retry-After` gives the seconds to wait",
}
"""Descriptions of the guard's error responses, by status, for routes that require a scope."""

PUBLIC_ACCESS_PROBLEMS = {403: "No API key is configured and the request is not local"}
"""Descriptions of the guard's error responses, by status, for public routes."""

INVALID_REQUEST = (
    "The request does not match this OpenAPI document; "
    "`detail` names the field, or says that the body is not JSON"
)
NOT_FOUND = "The resource does not exist or belongs to another caller"
BODY_TIMEOUT = "The body did not arrive within the time limit of this server"
TOO_LARGE = "The body or one of its fields exceeds the limits of this server"
INTERNAL_ERROR = "An unexpected error occurred"

COMPONENT_REF = "#/components/schemas/{model}"

_PARAMETER_KINDS = (BodyKwarg, PathParameter, QueryParameter, HeaderParameter)


def success_response(operation: Operation) -> OpenAPIResponse:
    """Return the response of `operation` with status 200."""
    response = (operation.responses or {})["200"]
    assert isinstance(response, OpenAPIResponse)
    return response


class OpenApiModelsPlugin(OpenAPISchemaPlugin):
    """Describes pydantic models with pydantic's own JSON Schema.

    Litestar's pydantic plugin loses `additionalProperties`, the docstrings of fields, and the
    constraints of nullable fields.
    """

    @staticmethod
    def is_plugin_supported_type(value: Any) -> bool:
        """Return whether `value` is a pydantic model."""
        return isinstance(value, type) and issubclass(value, BaseModel)

    def to_openapi_schema(
        self, field_definition: FieldDefinition, schema_creator: "SchemaCreator"
    ) -> Schema:
        """Return the schema of a model, and register the schemas of its nested models."""
        model = field_definition.annotation
        schema = schema_creator.schema_registry.get_schema_for_field_definition(field_definition)
        json_schema = model.model_json_schema(
            ref_template=COMPONENT_REF, schema_generator=_SchemaGenerator, mode="serialization"
        )
        json_schema.pop("$defs", None)
        for name, value in json_schema.items():
            setattr(schema, to_snake(name), value)
        for field in model.model_fields.values():
            for nested in _models_in(field.annotation):
                schema_creator.for_field_definition(FieldDefinition.from_annotation(nested))
        return schema


class _SchemaGenerator(GenerateJsonSchema):
    """Generates schemas without field titles and without a component for pydantic's JsonValue."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False: pydantic's titles only repeat the names of the fields."""
        return False

    def definition_ref_schema(
        self, schema: core_schema.DefinitionReferenceSchema
    ) -> JsonSchemaValue:
        """Return the reference, or the empty schema for pydantic's JsonValue."""
        if "JsonValue" in schema["schema_ref"]:
            return {}
        return super().definition_ref_schema(schema)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


class OpenApiProblemsPlugin(ReceiveRoutePlugin):
    """Adds the errors of each route and of its guard to the OpenAPI document.

    Also removes the security requirements of public routes.
    """

    def receive_route(self, route: BaseRoute) -> None:
        """Add the error responses to the handlers of `route`."""
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else []:
            if not handler.include_in_schema:
                continue
            is_public = handler.opt.get("needs", "admin") is None
            if is_public:
                handler.security = [{}]
            access = PUBLIC_ACCESS_PROBLEMS if is_public else ACCESS_PROBLEMS
            responses = {
                status: ResponseSpec(Problem, False, description, PROBLEM_JSON)
                for status, description in (_problems(handler, route) | access).items()
            }
            # The responses that the handler itself declares take precedence.
            handler.responses = dict(sorted({**responses, **(handler.responses or {})}.items()))


def _problems(handler: HTTPRouteHandler, route: BaseRoute) -> dict[int, str]:
    """Return the descriptions of the errors of a handler, by status."""
    parameters = handler.parsed_fn_signature.parameters
    problems: dict[int, str] = {}
    if any(isinstance(field.kwarg_definition, _PARAMETER_KINDS) for field in parameters.values()):
        problems[HTTPStatus.BAD_REQUEST] = INVALID_REQUEST
    if route.path_parameters:
        problems[HTTPStatus.NOT_FOUND] = NOT_FOUND
    if "data" in parameters:
        problems[HTTPStatus.REQUEST_TIMEOUT] = BODY_TIMEOUT
        problems[HTTPStatus.REQUEST_ENTITY_TOO_LARGE] = TOO_LARGE
    problems[HTTPStatus.INTERNAL_SERVER_ERROR] = INTERNAL_ERROR
    for status, sentences in _error_descriptions(handler.opt.get("errors", ())).items():
        problems[status] = " ".join(sentences).rstrip(".")
    return problems


def _error_descriptions(errors: tuple[type[ApideskError], ...]) -> dict[int, list[str]]:
    """Return the first lines of the errors' docstrings, by status."""
    descriptions: dict[int, list[str]] = {}
    for error in errors:
        sentence = (getdoc(error) or "").splitlines()[0]
        descriptions.setdefault(status_of(error), []).append(sentence)
    return descriptions
