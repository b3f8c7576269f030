"""The base of every model that crosses a process boundary."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict


def examples(*bodies: JsonDict) -> ConfigDict:
    """Examples of a model, for its JSON Schema."""
    return ConfigDict(json_schema_extra={"examples": list(bodies)})


class ApiModel(BaseModel):
    """A frozen model: snake_case in Python, camelCase on the wire, unknown keys refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )
