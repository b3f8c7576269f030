"""Answers: the model's draft, the response body, stream events, and reasons for degraded answers."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue

from schemas.base import ApiModel
from schemas.choices import Language
from schemas.document import RetrievedChunk
from schemas.errors import ModelError
from schemas.question import QuestionType, StructuredQuestion


class DegradedReason(StrEnum):
    """Why an answer is degraded. The value is the code in the answer's field `degraded`.

    The first five values are the codes of the ModelError with which the chat model failed. The answer's
    field `answered_by` names the model that wrote it, or is `extractive` if all models failed.
    """

    MODEL_UNAVAILABLE = "model_unavailable"
    MODEL_REFUSED = "model_refused"
    MODEL_TIMEOUT = "model_timeout"
    MODEL_BUSY = "model_busy"
    MODEL_OUTPUT_INVALID = "model_output_invalid"
    QUESTION_NOT_CLASSIFIED = "question_not_classified"
    """No model could classify the question, so it was answered as a general question."""
    ANSWER_INCOMPLETE = "answer_incomplete"
    """The model's reply was cut off, or a call after the first one failed.

    With APIDESK_SYNTHESIS=refine, further calls add the chunks that did not fit into the first call.
    """
    ANSWER_UNSUPPORTED = "answer_unsupported"
    """The documents support nothing that the model wrote, so the answer quotes the documents."""
    RESEARCH_INCOMPLETE = "research_incomplete"
    """The research with tools stopped early, so the answer uses the chunks found so far."""
    TOOLS_UNSUPPORTED = "tools_unsupported"
    """Mode `tools` was requested, but the chat model cannot call tools, so there was no research."""
    TOOLS_UNAVAILABLE = "tools_unavailable"
    """Mode `tools` was requested, but no chat model is configured."""

    @classmethod
    def from_error(cls, error: ModelError) -> "DegradedReason":
        """Return the reason with the code of `error`, or MODEL_UNAVAILABLE if no reason has this code."""
        try:
            return cls(error.code)
        except ValueError:
            return cls.MODEL_UNAVAILABLE


Confidence = Literal["high", "medium", "low"]


def _drop_blank_steps(value: object) -> object:
    """Convert the steps to a list without blank texts.

    A step that is an object becomes one text: its values, joined by spaces.
    """
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return value
    steps = (" ".join(map(str, v.values())) if isinstance(v, dict) else v for v in value)
    return [step for step in steps if not isinstance(step, str) or step.strip()]


def _to_urls(value: object) -> object:
    if isinstance(value, str):
        return [value]
    return [url for url in value if isinstance(url, str)] if isinstance(value, list) else []


def _empty_if_null(value: object) -> object:
    return "" if value is None else value


class AnswerDraft(ApiModel):
    """An answer in steps that cite the documents."""

    # A draft is what the model writes, before grounding checks it. Extra keys are ignored.
    model_config = ConfigDict(extra="ignore")

    # `answer` is the first field, because models write the fields in the order of the schema, and each
    # step of the answer is streamed as soon as it is complete.
    answer: Annotated[list[str], BeforeValidator(_drop_blank_steps)] = Field(
        min_length=1,
        description="the answer in steps; each statement ends with the numbers of the chunks it "
        "is based on, like [1] or [1][3]",
    )
    question: Annotated[str, BeforeValidator(_empty_if_null)] = Field(
        default="", description="what was asked, in one sentence, without pasted API details"
    )
    introduction: Annotated[str, BeforeValidator(_empty_if_null)] = Field(
        default="", description="one sentence of greeting in the platform's tone"
    )
    related_url: Annotated[list[str], BeforeValidator(_to_urls)] = Field(
        default_factory=list, description="page urls of the chunks that the answer used"
    )


class Source(ApiModel):
    """A retrieved chunk as returned to the caller."""

    number: int
    """The number that citations use, from 1. Answers list only cited chunks, so numbers may be skipped."""
    source: str
    """The name of the source in platform.toml, or `web` for a result of the web search."""
    document_id: str
    """Unique within its source; the URL for a result of the web search."""
    title: str
    section: str
    page_url: str
    api_name: str
    api_url: str
    metadata: dict[str, str] = Field(default_factory=dict)
    """Values that the source configuration extracts from the document, such as a version."""
    score: float
    text: str

    @classmethod
    def from_chunk(cls, number: int, retrieved: RetrievedChunk) -> "Source":
        """Return the source for a chunk that citations refer to as `number`."""
        chunk = retrieved.chunk
        return cls(
            number=number,
            source=chunk.source,
            document_id=chunk.document_id,
            title=chunk.title,
            section=chunk.section,
            page_url=chunk.page_url,
            api_name=chunk.api_name,
            api_url=chunk.api_url,
            metadata=chunk.metadata,
            score=round(retrieved.score, 4),
            text=chunk.body,
        )


class Page(ApiModel):
    """A page of the documentation."""

    title: str
    page_url: str


class Refused(ApiModel):
    """Counts of what grounding removed from the draft."""

    citations: int = 0
    """Citations with a number that no chunk has."""
    links: int = 0
    """Links that are neither retrieved pages, nor URLs in the question, nor documented endpoints."""


class Round(ApiModel):
    """One tool call of `mode: "tools"`."""

    tool: str
    arguments: dict[str, JsonValue]
    results: int
    """Number of documents or chunks returned."""
    milliseconds: int
    error: str | None = None
    """Why the call failed, in one sentence."""


class Answer(ApiModel):
    """The body of a response to `POST /ask` with status 200."""

    id: str
    """The id of the answer and of its trace."""
    question: str
    introduction: str
    answer: list[str]
    """The steps of the answer; `[n]` in them is the number of a source."""
    related_url: list[str]
    related_pages: list[Page] = Field(default_factory=list)
    """The pages of `related_url` that are not cited, with their titles."""
    nearest: list[Page] = Field(default_factory=list)
    """Pages that may help if the documents do not answer the question."""
    type: QuestionType
    """`unknown`: the question is not, or probably not, about this platform."""
    structured: StructuredQuestion
    sources: list[Source]
    confidence: Confidence
    unverified: list[str] = Field(default_factory=list)
    """Facts (paths, names, codes) in the answer that neither the cited chunks nor the question contain."""
    unsupported: list[int] = Field(default_factory=list)
    """Numbers of the steps, from 1, that their citations do not support."""
    refused: Refused = Refused()
    language: Language
    answered_by: str
    degraded: str | None = None
    """The code of the reason if the answer was not made as configured and requested; otherwise null."""
    cached: bool = False
    """Whether the answer is reused, from the cache or from a concurrent caller with the same question."""
    session: str | None = None
    """The id of the session; null if the question has none."""
    rounds: list[Round] = Field(default_factory=list)
    """The tool calls before the answer (`mode: "tools"`)."""
    timings: dict[str, int] = Field(default_factory=dict)
    """Duration of each step of the pipeline, and of the whole question as `total`, in milliseconds."""


FOOTER_FIELDS = ("confidence", "type", "answered_by")
"""The fields that the terminal prints below an answer, in this order.

The question page lists them in the details of the answer, in its own order. It leaves out the fields that
it shows elsewhere (see `SHOWN_ELSEWHERE` in details.js).
"""

CHAT_FIELDS = (
    "id", "type", "confidence", "sources", "related_url", "nearest", "unverified", "unsupported",
    "degraded", "answered_by", "structured",
)  # fmt: skip
"""The fields that the OpenAI-compatible API returns in addition to the text."""

AGENT_FIELDS = (
    "id", "type", "confidence", "answer", "sources", "nearest", "unverified", "unsupported", "degraded",
)  # fmt: skip
"""The fields that the MCP tool `ask` returns; the sources are references to pages."""

EventName = Literal["structured", "sources", "step", "answer", "error"]


class Event(NamedTuple):
    """An event of the stream: its name, and the object that is its JSON body."""

    name: EventName
    data: ApiModel


class Sources(ApiModel):
    """The numbered chunks from which the answer is written.

    This event invalidates all earlier `step` events.
    """

    sources: list[Source]


class CompleteSources(Sources):
    """The sources of an answer that is already complete, so that all of its steps follow at once."""


class Step(ApiModel):
    """One complete, grounded step of the answer."""

    number: int
    text: str
    unverified: list[str]
    supported: bool


EventSink = Callable[[Event], Awaitable[None]]
"""Receives the events while an answer is being written."""
