"""A question as it comes in, and what it is understood to be."""

from typing import Literal

from pydantic import Field, JsonValue

from schemas.platform import Language
from schemas.wire import WireModel

QuestionType = Literal["api_call", "general", "unknown"]


class Question(WireModel):
    """What the caller asks."""

    text: str
    k: int
    language: Language
    """The language of the answer."""


class StructuredQuestion(WireModel):
    """What a question is about. `unknown` means: not about this platform."""

    type: QuestionType = Field(
        description="api_call: about one API, its parameters, errors or permission, or a failed "
        "call; general: how something on the platform is done or works; unknown: off-topic"
    )
    api_name: str | None = Field(default=None, description="the API's name, as the question has it")
    api_url: str | None = Field(default=None, description="the API's path, without the host")
    request_param: dict[str, JsonValue] = Field(
        default_factory=dict, description="the parameters that the user sent, by name"
    )
    response: JsonValue = Field(default=None, description="the response that the user got")
    error: str | None = Field(default=None, description="the error code or message, verbatim")
    trace_id: str | None = Field(default=None, description="the trace id of the call, verbatim")
