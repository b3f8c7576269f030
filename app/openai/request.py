"""What a chat client sends: a conversation, of which the last user message is the question."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from app.history import recent
from app.openai.telling import streamed_answer_text
from runnables.question.follow_up import standalone
from schemas.conversation import Turn
from schemas.errors import QuestionError
from schemas.settings import Settings

TEXT = "text"


class RequestModel(BaseModel):
    """The base of what is received: clients send many parameters, and those unknown are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ContentPart(RequestModel):
    """A part of a message's content."""

    type: str
    text: str = ""


class ChatMessage(RequestModel):
    """Something that was said."""

    role: str
    content: str | list[ContentPart] | None = None

    @property
    def parts(self) -> list[ContentPart]:
        """Its content, in parts."""
        if isinstance(self.content, str):
            return [ContentPart(type=TEXT, text=self.content)]
        return self.content or []

    @property
    def text(self) -> str:
        """Its text, without what is none."""
        return "\n".join(part.text for part in self.parts if part.type == TEXT)


class StreamOptions(RequestModel):
    """How a stream ends."""

    include_usage: bool | None = False


class ChatRequest(RequestModel):
    """The conversation, and how the answer should come."""

    model: str
    messages: list[ChatMessage]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    """A question has one answer."""

    @property
    def counts_at_end(self) -> bool:
        """Whether a stream is to end with the tokens that were used."""
        return bool(self.stream_options and self.stream_options.include_usage)


def read_conversation(
    messages: Sequence[ChatMessage], settings: Settings
) -> tuple[str, tuple[Turn, ...]]:
    """The question, and what was said before it, oldest first and no more than a session remembers.

    System messages say nothing to the desk. It counts words, which takes a moment. Raises QuestionError
    where no question is, or a part of it is no text.
    """
    asked = [number for number, message in enumerate(messages) if message.role == "user"]
    if not asked:
        raise QuestionError("messages: hold no user message, so nothing is asked", field="messages")
    question = messages[asked[-1]]
    for part in question.parts:
        if part.type != TEXT:
            raise QuestionError(
                f"messages: only text can be asked, no {part.type}", field="messages"
            )
    newest_first = reversed(list(_turns(messages[: asked[-1]])))
    kept = recent(newest_first, settings.history_turns, settings.history_chars)
    return question.text, _by_themselves(reversed(kept))


def _turns(messages: Sequence[ChatMessage]) -> Iterator[Turn]:
    """Each question that was answered, with its answer as the desk gave it."""
    question = ""
    for message in messages:
        if message.role == "user":
            question = message.text
        elif (
            message.role == "assistant"
            and question
            and (answer := streamed_answer_text(message.text))
        ):
            yield Turn(question=question, answer=answer, asked_at=datetime.now(UTC))
            question = ""


def _by_themselves(turns: Iterator[Turn]) -> tuple[Turn, ...]:
    """The turns, with the subject in each question that left it out, as sessions keep them."""
    understood: list[Turn] = []
    for turn in turns:
        question = standalone(turn.question, understood)
        understood.append(turn.model_copy(update={"question": question}))
    return tuple(understood)
