"""A conversation, as later questions need it.
A question as it comes in, and what it is understood to be.
"""

import json
import re
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from langchain_core.utils.uuid import uuid7
from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema

from schemas.base import ApiModel
from schemas.choices import Language
from schemas.document import Chunk


class Turn(ApiModel):
    """A question that was answered in a session, and what was said."""

    question: str
    """As it was understood: it stands by itself."""
    answer: str
    """The steps, a line each, with their citation marks."""
    api_name: str | None = None
    """The API that it was about."""
    api_url: str | None = None
    asked_at: datetime
    """With its zone."""


MOST_TERMS = 12
LONGEST_TERM = 60
"""Characters; a model that writes more has not understood what a term is."""


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


def _terms(value: object) -> object:
    """A list of terms, be it sent as one text; nothing stands for none."""
    if isinstance(value, str):
        value = re.split(r"[,，、;；\n]+", value)
    if not isinstance(value, list | tuple):
        return ()
    words = [str(term).strip()[:LONGEST_TERM] for term in value if isinstance(term, str | int)]
    return tuple(dict.fromkeys(word for word in words if word))[:MOST_TERMS]


def _any_of(*types: str) -> WithJsonSchema:
    """A schema that names its types: Anthropic takes none that allows just anything."""
    return WithJsonSchema({"anyOf": [{"type": each} for each in types]}, mode="validation")


ModelObject = Annotated[dict[str, JsonValue], BeforeValidator(_object), _any_of("object", "string")]
ModelValue = Annotated[JsonValue, _any_of("object", "string", "null")]
ModelText = Annotated[str | None, BeforeValidator(_text)]

ModelTerms = Annotated[tuple[str, ...], BeforeValidator(_terms)]

QuestionType = Literal["api_call", "general", "unknown"]


class Filters(ApiModel):
    """Which chunks may be retrieved; what is not said does not narrow."""

    service: str | None = None
    """A service id."""
    source: str | None = None
    """The name of a source of platform.toml."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """Values that a chunk's metadata has to have, by name."""

    def allow(self, chunk: Chunk) -> bool:
        """Whether they let `chunk` through."""
        return (
            self.service in (None, chunk.service_id)
            and self.source in (None, chunk.source)
            and self.metadata.items() <= chunk.metadata.items()
        )


AnswerMode = Literal["pipeline", "tools"]
"""How an answer comes about: straight, or after a model has looked things up with tools."""


class Question(ApiModel):
    """What the caller asks."""

    id: UUID = Field(default_factory=uuid7)
    """Also that of its answer and of its trace."""
    text: str
    """It stands by itself: a follow-up is condensed with its history first."""
    k: int
    language: Language
    """The language of the answer."""
    filters: Filters = Filters()
    history: tuple[Turn, ...] = ()
    """What was asked and answered before in its session, oldest first."""
    said: str = ""
    """The caller's own words, where `text` was condensed from them."""
    small_talk: bool = False
    """Whether a follow-up asks nothing: thanks, a greeting."""


class StructuredQuestion(ApiModel):
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
    search_terms: ModelTerms = Field(
        default_factory=tuple,
        description="3 to 8 terms to look for in the documentation, in the language that the question "
        "is not in: Chinese terms for an English question, English ones for a Chinese question",
    )
    trace_id: ModelText = Field(default=None, description="the trace id of the call, verbatim")
