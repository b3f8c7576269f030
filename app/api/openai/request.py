"""Reads the conversation in the request of a chat client, whose last user message is the question.

Clients send earlier answers back as text, so this module also defines the text of a streamed answer.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.markdown import (
    doubt_notes,
    join_paragraphs,
    link_lists,
    list_heading,
    note_start,
)
from app.service.session_store import select_recent_turns
from prompts.user_text import all_user_texts, user_text
from runnables.answer_events import StreamedAnswer
from runnables.question.follow_up import make_standalone
from schemas.answer import Answer, CompleteSources, Event, Sources, Step
from schemas.errors import QuestionError
from schemas.question import Turn
from schemas.settings import Settings


class StreamedText:
    """Converts the events of an answer to text. Text that was sent cannot be changed later.

    If the steps are restarted, no text is sent until the final answer. If the final answer does not
    continue the text that was sent, a correction notice precedes it.
    """

    def __init__(self) -> None:
        self.text = ""
        """The text sent so far."""
        self._streamed = StreamedAnswer()
        self._sent_steps: list[str] = []
        self._is_complete = False
        """Whether the answer is complete, so that its steps can be sent after the note on doubts."""

    def add(self, event: Event) -> str:
        """Return the text to send after `event`, or an empty string."""
        self._streamed.apply(event)
        if isinstance(event.data, Sources):
            self._is_complete = isinstance(event.data, CompleteSources)
        is_held = self._is_complete or self._streamed.is_restarted
        if isinstance(event.data, Step) and not is_held:
            self._sent_steps.append(event.data.text)
            return self._send([event.data.text])
        if isinstance(event.data, Answer):
            return self._send([*self._rest(event.data), *link_lists(event.data)])
        return ""

    def _rest(self, answer: Answer) -> list[str]:
        """Return the steps that were not sent, and the note on doubts.

        The note comes before the steps if no step was sent, otherwise after them.
        """
        notes, count = list(doubt_notes(answer)), len(self._sent_steps)
        if answer.answer[:count] != self._sent_steps:
            notice = user_text(answer.language).answer.correction_notice
            return ["---", notice, *notes, *answer.answer]
        return [*answer.answer[count:], *notes] if count else [*notes, *answer.answer]

    def _send(self, paragraphs: list[str]) -> str:
        if not paragraphs:
            return ""
        text = join_paragraphs(["", *paragraphs] if self.text else paragraphs)
        self.text += text
        return text


def parse_answer_text(text: str) -> str:
    """Return the steps in the text of an answer, without notes on doubts, without lists of links and
    without text that a correction notice has replaced.
    """
    labels = [texts.answer for texts in all_user_texts()]
    for label in labels:
        text = text.rpartition(label.correction_notice)[2]
    for title in chain.from_iterable((label.sources, label.nearest) for label in labels):
        head, heading, tail = text.rpartition(list_heading(title))
        if heading and all(line.startswith("- ") for line in tail.split("\n") if line.strip()):
            text = head
    starts = tuple(map(note_start, labels))
    return "\n\n".join(part for part in text.split("\n\n") if not part.startswith(starts)).strip()


TEXT_PARTS = ("text", "input_text", "output_text")
"""The types of text parts: in a chat message, and in input and output messages of `/v1/responses`."""


class RequestModel(BaseModel):
    """The base class of the request models. Unknown parameters of clients are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ContentPart(RequestModel):
    """A part of a message's content."""

    type: str
    text: str = ""


class ChatMessage(RequestModel):
    """A message of the conversation."""

    role: str
    content: str | list[ContentPart] | None = None

    @property
    def parts(self) -> list[ContentPart]:
        """The content as a list of parts."""
        if isinstance(self.content, str):
            return [ContentPart(type=TEXT_PARTS[0], text=self.content)]
        return self.content or []

    @property
    def text(self) -> str:
        """The text parts of the content, one per line."""
        return "\n".join(part.text for part in self.parts if part.type in TEXT_PARTS)


class TextFormat(RequestModel):
    """The format of the reply. Other formats are refused, because the answer is Markdown."""

    type: Literal["text"] = "text"


class CommonParameters(RequestModel):
    """Parameters of both endpoints. Values that apidesk cannot honour are refused, others ignored."""

    model: str
    stream: bool | None = False
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    tool_choice: Literal["none", "auto"] | None = None
    """Other values are refused, because the tools of the client are never called."""


TokenLimit = Annotated[int, Field(ge=1)] | None


class StreamOptions(RequestModel):
    """Options of a streamed completion."""

    include_usage: bool | None = False


class ChatRequest(CommonParameters):
    """The body of `POST /v1/chat/completions`."""

    messages: list[ChatMessage]
    response_format: TextFormat | None = None
    max_tokens: TokenLimit = None
    max_completion_tokens: TokenLimit = None
    logprobs: Literal[False] | None = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    """The number of completions; only one is supported."""

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with the token usage."""
        return bool(self.stream_options and self.stream_options.include_usage)


def read_conversation(
    messages: Sequence[ChatMessage], settings: Settings, field: str = "messages"
) -> tuple[str, tuple[Turn, ...]]:
    """Return the question and the earlier turns, oldest first. Turns have the same limits as in a session.

    System messages are ignored. Blocks while words are counted. Raises QuestionError for `field` if there
    is no user message, or if the question has a part that is not text.
    """
    questions = [index for index, message in enumerate(messages) if message.role == "user"]
    if not questions:
        raise QuestionError(f"{field}: contain no user message", field=field)
    question = messages[questions[-1]]
    for part in question.parts:
        if part.type not in TEXT_PARTS:
            raise QuestionError(f"{field}: only text is supported, not {part.type}", field=field)
    newest_first = reversed(list(_read_turns(messages[: questions[-1]])))
    recent = select_recent_turns(newest_first, settings.history_turns, settings.history_chars)
    return question.text, _make_standalone(reversed(recent))


def _read_turns(messages: Sequence[ChatMessage]) -> Iterator[Turn]:
    """Yield each question that has an answer."""
    question = ""
    for message in messages:
        if message.role == "user":
            question = message.text
        elif (
            message.role == "assistant" and question and (answer := parse_answer_text(message.text))
        ):
            yield Turn(question=question, answer=answer, asked_at=datetime.now(UTC))
            question = ""


def _make_standalone(turns: Iterator[Turn]) -> tuple[Turn, ...]:
    """Add the missing subjects to follow-up questions, as sessions do before they store them."""
    standalone: list[Turn] = []
    for turn in turns:
        question = make_standalone(turn.question, standalone)
        standalone.append(turn.model_copy(update={"question": question}))
    return tuple(standalone)
