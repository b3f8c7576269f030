"""The text of an answer as a chat client gets it, and how it is read when the client sends it back.
What a chat client sends: a conversation, of which the last user message is the question.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Literal

from pydantic import BaseModel, ConfigDict

from app.api.markdown import WORDS, heading, lists, paragraphs
from app.service.sessions import recent
from runnables.question.follow_up import standalone
from schemas.answer import Answer, Event, Sources, Step
from schemas.choices import Language
from schemas.errors import QuestionError
from schemas.question import Turn
from schemas.settings import Settings

WITHDRAWN: dict[Language, str] = {
    "zh": "以上内容已收回，请以下面的回答为准：",
    "en": "What stands above is withdrawn. This is the answer:",
}


class StreamedText:
    """The text of an answer, given out while it is made: what was given cannot be taken back.

    Where the steps begin anew, the rest waits for the answer itself; one that does not go on from what
    was given says that it stands in its place.
    """

    def __init__(self) -> None:
        self.text = ""
        """All that was given out."""
        self._steps: list[str] = []
        self._waits = False

    def hear(self, event: Event) -> str:
        """What is to be given out after `event`."""
        if isinstance(event.data, Sources):
            self._waits = self._waits or bool(self._steps)
        elif isinstance(event.data, Step) and not self._waits:
            self._steps.append(event.data.text)
            return self._given([event.data.text])
        elif isinstance(event.data, Answer):
            return self._given([*self._rest(event.data), *lists(event.data)])
        return ""

    def _rest(self, answer: Answer) -> list[str]:
        count = len(self._steps)
        if answer.answer[:count] == self._steps:
            return answer.answer[count:]
        return ["---", WITHDRAWN[answer.language], *answer.answer]

    def _given(self, texts: list[str]) -> str:
        if not texts:
            return ""
        piece = paragraphs(["", *texts] if self.text else texts)
        self.text += piece
        return piece


def streamed_answer_text(text: str) -> str:
    """What `text`, that a client sends back, says of itself: without lists, and nothing withdrawn."""
    for sentence in WITHDRAWN.values():
        text = text.rpartition(sentence)[2]
    for title in chain.from_iterable(WORDS.values()):
        head, found, tail = text.rpartition(heading(title))
        if found and all(line.startswith("- ") for line in tail.split("\n") if line.strip()):
            text = head
    return text.strip()


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
