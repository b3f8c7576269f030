"""The question with its options, the interface of answerers, and the state of a streamed answer."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from schemas.answer import Answer, Event, EventSink, Source, Sources, Step
from schemas.choices import Language
from schemas.errors import QuestionError, QuestionTooLong
from schemas.question import AnswerMode, Filters, Question, StructuredQuestion, Turn
from schemas.settings import Settings

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler

    from app.masking.masking import SecretScan


class StreamedAnswer:
    """Assembles an answer from its events.

    A `sources` event starts the list of steps. Another `sources` event discards the steps received so
    far. All Python code that receives events uses this class.
    """

    def __init__(self) -> None:
        self.structured: StructuredQuestion | None = None
        """The structured question; None before its event."""
        self.sources: list[Source] = []
        self.steps: list[Step] = []
        self.is_restarted = False
        """Whether steps were discarded."""

    @property
    def texts(self) -> list[str]:
        """The texts of the current steps."""
        return [step.text for step in self.steps]

    def apply(self, event: Event) -> None:
        """Update the state with the next event."""
        if isinstance(event.data, StructuredQuestion):
            self.structured = event.data
        elif isinstance(event.data, Sources):
            self.is_restarted = self.is_restarted or bool(self.steps)
            self.sources = event.data.sources
            self.steps = []
        elif isinstance(event.data, Step):
            self.steps.append(event.data)


@dataclass(frozen=True)
class AskCommand:
    """A question with the options of its caller. Every field except `text` is optional."""

    text: str
    k: int | None = None
    """Maximum number of chunks to retrieve; None means APIDESK_TOP_K."""
    language: Language | None = None
    """The language of the answer; None means the language of the question."""
    filters: Filters | None = None
    mode: AnswerMode = "pipeline"
    session: str | None = None
    """The session that the question belongs to; None for a question without a session."""
    owner: str = ""
    """The id of the caller's API key; empty if no keys are configured."""
    account: str = ""
    """The account that is charged for the tokens."""
    fresh: bool = False
    """Whether to bypass the cache."""
    question: Question | None = field(default=None, repr=False)
    """The question for the pipeline; None until a middleware or the answer service builds it."""
    secrets: "SecretScan | None" = field(default=None, repr=False)
    """The secrets in `text`; None until a middleware scans it."""
    history: tuple[Turn, ...] = ()
    """The earlier turns of the session, oldest first."""
    callbacks: "tuple[BaseCallbackHandler, ...]" = field(default=(), repr=False)
    """LangChain callbacks for this run."""


@runtime_checkable
class Answerer(Protocol):
    """Answers questions, as the answer service and its middleware do."""

    def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Awaitable[Answer]:
        """Return the answer. `on_event` receives events before the answer. Raises ApideskError."""


def check_question(text: str, settings: Settings) -> None:
    """Raise QuestionError if the question is blank or too long."""
    if not text.strip():
        raise QuestionError("question: is empty", field="question")
    if len(text) > settings.max_question_chars:
        raise QuestionTooLong(
            f"question: {len(text)} characters, at most {settings.max_question_chars} are allowed",
            field="question",
        )
