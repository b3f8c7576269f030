"""The question, the turns of its conversation, its filters, and its structured form."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Annotated, Literal
from uuid import UUID

from langchain_core.utils.uuid import uuid7
from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema

from schemas.base import ApiModel
from schemas.choices import Language
from schemas.document import Chunk

MAX_TERMS = 6
"""Maximum number of `StructuredQuestion.search_terms`, three per language; further terms are dropped."""

MAX_TERM_CHARS = 100
"""Maximum length of a search term, in characters; longer ones are truncated."""


MAX_PASTED_WORDS = 6
"""Maximum number of words from pasted JSON that are added to the search query."""

_WORD = re.compile(r"[A-Za-z]+(?:[_-][A-Za-z]+)*")
"""A string in pasted JSON that is one word, such as `provider_rejected`."""

GENERAL_OUTCOME = re.compile(
    r"success|ok|(?:bad|invalid)_?request"
    r"|(?:(?:api|bad|client|internal|invalid|request|server|unknown)_?)*(?:error|exception|fail(?:ed|ure)?)",
    re.IGNORECASE,
)
"""A string in pasted JSON that says only whether a call succeeded, such as `failed` and `api_error`."""

_COMPOUND = re.compile(r"[A-Za-z]+(?:_[A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]*)+")
"""The name of a field in pasted JSON, if it consists of several words.

Names of one word, such as `id`, are too common to search for.
"""


class Turn(ApiModel):
    """A question of a session and its answer."""

    question: str
    """The standalone form of the question."""
    answer: str
    """The text of the answer with its citations: one step per line."""
    api_name: str | None = None
    """The API that the question is about."""
    api_url: str | None = None
    asked_at: datetime
    """With time zone."""


def _parse_object(value: object) -> object:
    """Parse an object sent as JSON text. Null, and text that is no JSON object, become an empty object."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
        return value if isinstance(value, dict) else {}
    return {} if value is None else value


def _to_text(value: object) -> object:
    """Convert empty values to None, and numbers and objects to text.

    Models send trace ids as numbers and errors as objects.
    """
    if value in (None, "", {}, []):
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _parse_terms(value: object) -> object:
    """Parse terms sent as one text, or as lists or objects of texts; other values give no terms."""
    terms = [term.strip()[:MAX_TERM_CHARS] for term in _texts_in(value)]
    return tuple(dict.fromkeys(term for term in terms if term))[:MAX_TERMS]


def _texts_in(value: object) -> Iterator[str]:
    match value:
        case str():
            yield from re.split(r"[,，、;；\n]+", value)
        case list() | tuple():
            for item in value:
                yield from [item] if isinstance(item, str) else _texts_in(item)
        case dict():
            yield from _texts_in(list(value.values()))


def _any_of(*types: str) -> WithJsonSchema:
    """Return a JSON Schema with explicit types, because Anthropic rejects schemas that allow any value."""
    return WithJsonSchema({"anyOf": [{"type": name} for name in types]}, mode="validation")


# Types of the fields that models write. Values of a wrong JSON type are converted.
ModelObject = Annotated[
    dict[str, JsonValue], BeforeValidator(_parse_object), _any_of("object", "string")
]
ModelValue = Annotated[JsonValue, _any_of("object", "string", "null")]
ModelText = Annotated[str | None, BeforeValidator(_to_text)]

ModelTerms = Annotated[tuple[str, ...], BeforeValidator(_parse_terms)]

QuestionType = Literal["api_call", "general", "unknown"]
"""`api_call`: about one API or a failed call; `unknown`: off-topic; `general`: any other question."""


class Filters(ApiModel):
    """Conditions that a chunk must meet to be retrieved. An unset condition allows every chunk."""

    service: str | None = None
    """Service id."""
    source: str | None = None
    """Name of a source in platform.toml."""
    metadata: dict[str, str] = Field(default_factory=dict, max_length=20)
    """Required metadata values by name."""

    def allow(self, chunk: Chunk) -> bool:
        """Return whether `chunk` meets all conditions."""
        return (
            self.service in (None, chunk.service_id)
            and self.source in (None, chunk.source)
            and self.metadata.items() <= chunk.metadata.items()
        )


AnswerMode = Literal["pipeline", "tools"]
"""`tools`: a model researches with tools before the answer is written; `pipeline`: no research."""


@dataclass
class ExtractedDetails:
    """Technical details in a question, such as paths and pasted JSON, and the question without them."""

    question: str
    """The question from which the details were extracted."""
    text: str
    """The question without the frames of stack traces, and with pasted XML converted to JSON."""
    prose: str
    """The text around the details, on one line."""
    paths: list[str] = field(default_factory=list)
    """API paths, without scheme, host and query."""
    request_param: dict[str, JsonValue] = field(default_factory=dict)
    response: JsonValue = None
    error: str | None = None
    trace_id: str | None = None

    @property
    def shown(self) -> str:
        """The question, as answers show it: without pasted JSON and query strings."""
        has_values = bool(self.request_param) or self.response is not None
        return (self.prose or self.text) if has_values else self.text

    @property
    def asked(self) -> str:
        """The prose, the API paths and the error, as far as the question contains them.

        An error that is one word of the prose, such as a code, is not repeated.
        """
        error = self.error or ""
        if error.isascii() and " " not in error and error in self.prose:
            error = ""
        return " ".join(part for part in (self.prose, *self.paths, error) if part)

    @property
    def search_query(self) -> str:
        """The text to search for: `asked`, and up to `MAX_PASTED_WORDS` words from pasted JSON.

        The words are values such as `provider_rejected` and field names such as `lostPackets`. Field names
        are omitted if there is an error, which is more specific. Values such as ids and amounts are
        omitted, because documents do not contain them.
        """
        words = _words_in([self.response, self.request_param], with_names=not self.error)
        new_words = islice((word for word in words if word not in self.asked), MAX_PASTED_WORDS)
        return " ".join([self.asked, *new_words]).strip() or self.text


def _words_in(value: JsonValue, *, with_names: bool) -> Iterator[str]:
    """Yield the strings in `value` that are one word and, if `with_names`, the compound names of fields.

    Words that say only whether a call succeeded are left out.
    """
    if isinstance(value, str):
        if _WORD.fullmatch(value) and not GENERAL_OUTCOME.fullmatch(value):
            yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _words_in(inner, with_names=with_names)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if with_names and _COMPOUND.fullmatch(name):
                yield name
            yield from _words_in(inner, with_names=with_names)


class Question(ApiModel):
    """A question, as the steps of the pipeline use it."""

    id: UUID = Field(default_factory=uuid7)
    """Also the id of its answer and its trace."""
    text: str
    """The question. The step `condense` replaces a follow-up by a standalone question."""
    k: int
    """Maximum number of chunks to retrieve."""
    language: Language
    """The language of the answer."""
    filters: Filters = Filters()
    history: tuple[Turn, ...] = ()
    """Earlier turns of the session, oldest first."""
    original_text: str = ""
    """The caller's wording if `text` was condensed from it; otherwise empty."""
    small_talk: bool = False
    """Whether `condense` found that the text is a follow-up that asks nothing, such as thanks."""
    details: ExtractedDetails | None = Field(default=None, exclude=True, repr=False)
    """The details pasted into the question; read them with `extract_details.details_of`."""


class StructuredQuestion(ApiModel):
    """What a question is about; `unknown` means off-topic."""

    # Lenient, because models write it: null becomes the default, extra keys are ignored.
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
        description="three short searches in each language of the documentation, in your own words",
    )
    trace_id: ModelText = Field(default=None, description="the trace id of the call, verbatim")
