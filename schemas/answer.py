"""An answer: what the model writes, and what the caller gets.
What is told while an answer is made: the events of `Accept: text/event-stream`.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue

from schemas.base import ApiModel
from schemas.choices import Language
from schemas.document import RetrievedChunk
from schemas.question import QuestionType, StructuredQuestion

Confidence = Literal["high", "medium", "low"]


def _steps(value: object) -> object:
    """One string stands for one step, and an object for what it says."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return value
    steps = (" ".join(map(str, v.values())) if isinstance(v, dict) else v for v in value)
    return [step for step in steps if not isinstance(step, str) or step.strip()]


def _urls(value: object) -> object:
    if isinstance(value, str):
        return [value]
    return [url for url in value if isinstance(url, str)] if isinstance(value, list) else []


def _sentence(value: object) -> object:
    return "" if value is None else value


class AnswerDraft(ApiModel):
    """What the model writes; nothing in it is trusted before grounding. What it adds is ignored."""

    model_config = ConfigDict(extra="ignore")

    # First, since models write in the order of a schema, and steps are sent as soon as they are complete.
    answer: Annotated[list[str], BeforeValidator(_steps)] = Field(
        min_length=1,
        description="the answer in steps; each statement ends with the numbers of the chunks it "
        "is taken from, like [1] or [1][3]",
    )
    question: Annotated[str, BeforeValidator(_sentence)] = Field(
        default="", description="what was asked, in one sentence, without pasted API details"
    )
    introduction: Annotated[str, BeforeValidator(_sentence)] = Field(
        default="", description="one sentence of greeting in the platform's tone"
    )
    related_url: Annotated[list[str], BeforeValidator(_urls)] = Field(
        default_factory=list, description="page urls of the chunks that the answer used"
    )


class Source(ApiModel):
    """A retrieved chunk as the caller sees it."""

    number: int
    """What citations call it: its place among the chunks that the answer was written from."""
    source: str
    """The name of the source in platform.toml."""
    document_id: str
    """Unique within its source; empty for a page of the web."""
    title: str
    section: str
    page_url: str
    api_name: str
    api_url: str
    metadata: dict[str, str] = Field(default_factory=dict)
    """What the source's profile takes from its documents: a version, a lesson, a paper's id."""
    score: float
    text: str

    @classmethod
    def of(cls, number: int, retrieved: RetrievedChunk) -> "Source":
        """The chunk under the number that citations use."""
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
    """What grounding took out of what the model wrote."""

    citations: int = 0
    """Numbers that no chunk has."""
    links: int = 0
    """Addresses that were neither retrieved nor in the question."""


class Round(ApiModel):
    """One tool call of `mode: "tools"`."""

    tool: str
    arguments: dict[str, JsonValue]
    results: int
    """Documents or chunks that it gave."""
    milliseconds: int
    error: str | None = None
    """Why it gave none, in one sentence."""


class Answer(ApiModel):
    """The body of a 200 from `POST /ask`."""

    id: str
    """Finds its trace too."""
    question: str
    introduction: str
    answer: list[str]
    """The steps; `[n]` in them is the number of a source."""
    related_url: list[str]
    nearest: list[Page] = Field(default_factory=list)
    """Where to look instead, when the documents do not answer the question."""
    type: QuestionType
    """`unknown`: the question is not about this platform."""
    structured: StructuredQuestion
    sources: list[Source]
    confidence: Confidence
    unverified: list[str] = Field(default_factory=list)
    """Paths, names and codes in the answer that neither what it cites nor the question holds."""
    unsupported: list[int] = Field(default_factory=list)
    """Numbers of the steps, from 1, that what they cite does not bear out."""
    refused: Refused = Refused()
    language: Language
    answered_by: str
    degraded: str | None = None
    """A `DegradedReason` if the answer was made with less than the settings ask for, else null."""
    cached: bool = False
    """Whether it was given before, and nothing that it cites has changed since."""
    session: str | None = None
    """The conversation that it belongs to."""
    rounds: list[Round] = Field(default_factory=list)
    """What a model looked up before it answered (`mode: "tools"`)."""
    timings: dict[str, int] = Field(default_factory=dict)
    """Milliseconds by step, and `total`."""


CHAT_FIELDS = ("id", "type", "confidence", "sources", "related_url", "unverified", "structured")
"""The fields that the OpenAI-compatible API returns in addition to the text."""

AGENT_FIELDS = ("id", "type", "confidence", "answer", "sources", "nearest", "unverified")
"""The fields that the MCP tool `ask` returns; its sources are page references."""

EventName = Literal["structured", "sources", "step", "answer", "error"]


class Event(NamedTuple):
    """One event, as its name and the JSON that it carries."""

    name: EventName
    data: ApiModel


class Sources(ApiModel):
    """What the answer is being written from; a list of steps begins, or begins anew."""

    sources: list[Source]


class Step(ApiModel):
    """A step of the answer, complete and grounded."""

    number: int
    text: str
    unverified: list[str]
    supported: bool


EventSink = Callable[[Event], Awaitable[None]]
"""Receives each event while an answer is made."""
