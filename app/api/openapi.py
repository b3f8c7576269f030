"""What the routes are grouped by in the OpenAPI document.
The models of requests and responses, as the OpenAPI document has them.
How routes fail, as the OpenAPI document has it.

A route names what it may raise beyond what everybody meets: `errors=(IngestionRunning,)`.
What Litestar has no words for in the description of POST /ask: its events, and what can follow.
What Litestar has no words for in the description of GET /insights: one table as CSV.
OPTIONS of every path
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from inspect import getdoc
from typing import TYPE_CHECKING, Any, get_args

from litestar.handlers import HTTPRouteHandler
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import (
    Example,
    Link,
    OpenAPIMediaType,
    OpenAPIResponse,
    Operation,
    Schema,
    Tag,
)
from litestar.openapi.spec.enums import OpenAPIType
from litestar.params import BodyKwarg, HeaderParameter, PathParameter, QueryParameter
from litestar.plugins import OpenAPISchemaPlugin, ReceiveRoutePlugin
from litestar.routes import BaseRoute, HTTPRoute
from litestar.typing import FieldDefinition
from pydantic import BaseModel
from pydantic.alias_generators import to_snake
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from app.api.problems import PROBLEM_JSON, Problem, status_of
from schemas.answer import Answer, Source
from schemas.errors import ApideskError
from schemas.question import StructuredQuestion

if TYPE_CHECKING:
    from litestar._openapi.schema_generation import SchemaCreator

QUESTIONS = "questions"
DOCUMENTS = "documents"
OPERATING = "operating"

TAGS = [
    Tag(QUESTIONS, "Ask, look up, judge, forget."),
    Tag(DOCUMENTS, "Index what changed."),
    Tag(OPERATING, "Whether it works, and how well."),
]


COMPONENT = "#/components/schemas/{model}"


class OpenApiModelsPlugin(OpenAPISchemaPlugin):
    """Describes models as pydantic itself does.

    Litestar's own plugin for pydantic loses what holds for a field that may be null, that nothing may
    be added, and every docstring.
    """

    @staticmethod
    def is_plugin_supported_type(value: Any) -> bool:
        """Whether `value` is a model."""
        return isinstance(value, type) and issubclass(value, BaseModel)

    def to_openapi_schema(
        self, field_definition: FieldDefinition, schema_creator: "SchemaCreator"
    ) -> Schema:
        """The component for a model; those for the models in it are made as well."""
        model = field_definition.annotation
        schema = schema_creator.schema_registry.get_schema_for_field_definition(field_definition)
        written = model.model_json_schema(
            ref_template=COMPONENT, schema_generator=_Plain, mode="serialization"
        )
        written.pop("$defs", None)
        for name, value in written.items():
            setattr(schema, to_snake(name), value)
        for part in _parts(model):
            schema_creator.for_field_definition(FieldDefinition.from_annotation(part))
        return schema


class _Plain(GenerateJsonSchema):
    """Without titles that say a field's name again, and without a name for what may be anything."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False

    def definition_ref_schema(
        self, schema: core_schema.DefinitionReferenceSchema
    ) -> JsonSchemaValue:
        """The reference; of pydantic's JsonValue what that stands for."""
        if "JsonValue" in schema["schema_ref"]:
            return {}
        return super().definition_ref_schema(schema)


def _parts(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The models that the fields of `model` hold."""
    for field in model.model_fields.values():
        yield from _models(field.annotation)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


BAD = "The request is not as it is described; `detail` names what is wrong"
UNKNOWN = "There is none of this name, or it is another caller's"
TOO_LARGE = "The body, or what it says, is larger than this server takes"
UNFORESEEN = "Something went wrong here"

_INPUTS = (BodyKwarg, PathParameter, QueryParameter, HeaderParameter)


class OpenApiProblemsPlugin(ReceiveRoutePlugin):
    """Says in the OpenAPI document how each route fails, its guard aside."""

    def receive_route(self, route: BaseRoute) -> None:
        """Describe the handlers of a route that is being registered."""
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else []:
            if handler.include_in_schema:
                describe(handler, _problems(handler, bool(route.path_parameters)))


def describe(handler: HTTPRouteHandler, problems: Mapping[int, str]) -> None:
    """Add problems, by status, to what the document says of `handler`; what it says itself stays."""
    added = {
        status: ResponseSpec(Problem, False, problem, PROBLEM_JSON)
        for status, problem in problems.items()
    }
    handler.responses = dict(sorted({**added, **(handler.responses or {})}.items()))


def _problems(handler: HTTPRouteHandler, named: bool) -> dict[int, str]:
    """What may come of a request, by status; `named`: whether its path names something."""
    parameters = handler.parsed_fn_signature.parameters
    problems: dict[int, str] = {}
    if any(isinstance(field.kwarg_definition, _INPUTS) for field in parameters.values()):
        problems[HTTPStatus.BAD_REQUEST] = BAD
    if named:
        problems[HTTPStatus.NOT_FOUND] = UNKNOWN
    if "data" in parameters:
        problems[HTTPStatus.REQUEST_ENTITY_TOO_LARGE] = TOO_LARGE
    problems[HTTPStatus.INTERNAL_SERVER_ERROR] = UNFORESEEN
    for status, said in _sentences(handler.opt.get("errors", ())).items():
        problems[status] = " ".join(said).rstrip(".")
    return problems


def _sentences(errors: tuple[type[ApideskError], ...]) -> dict[int, list[str]]:
    """What errors say of themselves, by their status."""
    said: dict[int, list[str]] = {}
    for error in errors:
        said.setdefault(status_of(error), []).append((getdoc(error) or "").splitlines()[0])
    return said


EVENTS = "text/event-stream"

STEP = (
    "Update SKU Price error `44203` (Price outside the range of the category). Cause: The category "
    "has a lowest or highest price, and the new price falls outside it. Usually yuan were sent "
    "instead of fen. Remedy: Check the unit first: 139 CNY is 13900. The permitted range is given in "
    "error_message. [1]"
)

ANSWER = Answer(
    id="01a1ff87-c014-73d0-a8f6-8c1069c64748",
    question="what does error 44203 mean?",
    introduction="Hello, this is the documentation desk of the Qingqiao Open Platform.",
    answer=[STEP],
    related_url=["https://open.example.com/#/api?apiId=1206"],
    type="api_call",
    structured=StructuredQuestion(type="api_call", api_name="Update SKU Price", error="44203"),
    sources=[
        Source(
            number=1,
            source="reference",
            document_id="1206",
            title="Update SKU Price",
            section="Error codes",
            page_url="https://open.example.com/#/api?apiId=1206",
            api_name="Update SKU Price",
            api_url="/dop/api/v1/product/sku_price",
            metadata={"version": "v1"},
            score=21.6,
            text="| Error code | Message | Cause | Remedy |…",
        )
    ],
    confidence="high",
    language="en",
    answered_by="extractive",
    session="mine",
    timings={"retrieve": 34, "answer": 2, "total": 56},
)
"""What the sample platform answers."""

LINKS = {
    "judge": Link(operation_id="feedback", parameters={"answer_id": "$response.body#/id"}),
    "forget": Link(operation_id="deleteSession", parameters={"session": "$response.body#/session"}),
}


@dataclass
class AskOperation(Operation):
    """The operation, completed."""

    def __post_init__(self) -> None:
        """Add an example, the events, and what a caller may do with the answer."""
        answered = (self.responses or {})["200"]
        assert isinstance(answered, OpenAPIResponse)
        assert answered.content
        (whole,) = answered.content.values()
        whole.examples = {"answer": Example(value=ANSWER.model_dump(mode="json", by_alias=True))}
        events = Schema(type=OpenAPIType.STRING, description="Server-sent events, JSON in each")
        answered.content[EVENTS] = OpenAPIMediaType(events)
        answered.links = dict(LINKS)


CSV = "text/csv"


@dataclass
class InsightsOperation(Operation):
    """The report as JSON, or a table of it as CSV."""

    def __post_init__(self) -> None:
        """Complete what was made from the handler."""
        told = (self.responses or {})["200"]
        assert isinstance(told, OpenAPIResponse)
        told.content = {
            **(told.content or {}),
            CSV: OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING)),
        }


class AllowHeaderPlugin(ReceiveRoutePlugin):
    """Makes `Allow` name every method of a path: Litestar stops at those of its first handler."""

    def __init__(self) -> None:
        self._first: dict[str, HTTPRoute] = {}

    def receive_route(self, route: BaseRoute) -> None:
        """Take notice of a route, be it new or one more handler's for a known path."""
        if isinstance(route, HTTPRoute):
            self._first.setdefault(route.path, route).methods = route.methods
