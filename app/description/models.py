"""The models of requests and responses, as the OpenAPI document has them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args

from litestar.openapi.spec import Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition
from pydantic import BaseModel
from pydantic.alias_generators import to_snake
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

if TYPE_CHECKING:
    from litestar._openapi.schema_generation import SchemaCreator

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
