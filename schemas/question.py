"""A question as it comes in, and what it is understood to be."""

import json
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema

from schemas.language import Language
from schemas.wire import WireModel


def _object(value: object) -> object:
    """An object, be it sent as JSON text; nothing stands for an empty one."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            return value
    return {} if value is None else value


def _text(value: object) -> object:
    """Numbers and objects as text: a trace id is often sent as a number, an error as an object."""
    if value in (None, "", {}, []):
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _any_of(*types: str) -> WithJsonSchema:
    """A schema that names its types: Anthropic takes none that allows just anything."""
    return WithJsonSchema({"anyOf": [{"type": each} for each in types]}, mode="validation")


ModelObject = Annotated[dict[str, JsonValue], BeforeValidator(_object), _any_of("object", "string")]
ModelValue = Annotated[JsonValue, _any_of("object", "string", "null")]
ModelText = Annotated[str | None, BeforeValidator(_text)]

QuestionType = Literal["api_call", "general", "unknown"]


class Question(WireModel):
    """What the caller asks."""

    text: str
    k: int
    language: Language
    """The language of the answer."""


class StructuredQuestion(WireModel):
    """What a question is about. `unknown` means: not about this platform.

    A model may write it, so null stands for a default, and what it adds is ignored.
    """

    model_config = ConfigDict(extra="ignore")

    type: QuestionType = Field(
        description="api_call: about one API, its parameters, errors or permission, or a failed "
        "call; general: how something on the platform is done or works; unknown: off-topic"
    )
    api_name: ModelText = Field(default=None, description="the API's name, as the question has it")
    api_url: ModelText = Field(default=None, description="the API's path, without the host")
    request_param: ModelObject = Field(
        default_factory=dict, description="the parameters that the user sent, by name"
    )
    response: ModelValue = Field(default=None, description="the response that the user got")
    error: ModelText = Field(default=None, description="the error code or message, verbatim")
    trace_id: ModelText = Field(default=None, description="the trace id of the call, verbatim")
