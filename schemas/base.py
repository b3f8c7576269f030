"""Base classes of the pydantic models: `ApiModel` for data in JSON, `ConfigModel` for TOML tables.

This module is separate because most other modules of `schemas` import it.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict


def examples(*bodies: JsonDict) -> ConfigDict:
    """Return a model_config with examples for the JSON Schema."""
    return ConfigDict(json_schema_extra={"examples": list(bodies)})


class ApiModel(BaseModel):
    """A frozen model with snake_case fields and camelCase JSON. Rejects unknown keys."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )


NonEmptyStr = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class ConfigModel(BaseModel):
    """A frozen model of a TOML table, in platform.toml or `prompts/text`. Rejects unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)
