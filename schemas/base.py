"""The base classes of pydantic models: on the wire and in platform.toml."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints
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


NonEmptyStr = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class ConfigModel(BaseModel):
    """A table of platform.toml: unknown keys are refused, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)
