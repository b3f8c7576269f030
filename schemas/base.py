"""The two languages that the desk speaks.
The base of every model that crosses a process boundary.
What every table of platform.toml is made of.
What an API key may do.
"""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

Language = Literal["zh", "en"]


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


Scope = Literal["ask", "ingest", "admin"]

SCOPES: tuple[Scope, ...] = get_args(Scope)
