"""A reply that is still being written -> its steps, each as soon as it is complete and grounded."""

from collections.abc import Sequence

from pydantic_core import from_json

from runnables.grounding.grounded_step import GroundedStep, Grounder, GroundingRules
from runnables.models.json_text import strip_thinking
from schemas.answer import Event, EventSink, Source, Sources, Step
from schemas.document import RetrievedChunk
from schemas.question import Question

MAX_STREAMED_CHARS = 50_000
"""Characters of a reply beyond which nobody waits for single steps."""


class PartialAnswerParser:
    """Follows one model's reply and tells of what can be relied on so far."""

    def __init__(
        self,
        listener: EventSink,
        asked: Question,
        chunks: Sequence[RetrievedChunk],
        rules: GroundingRules,
    ) -> None:
        self._listener = listener
        self._asked = asked
        self._chunks = chunks
        self._rules = rules
        self._grounder = Grounder(asked, chunks, rules)
        self._characters = 0
        """Of the reply so far."""
        self._read = 0
        """Steps of it that are complete."""
        self._told = 0
        """Steps that were told: of some nothing could stay."""

    async def begin(self) -> None:
        """Tell what the answer is written from; its steps begin anew."""
        sources = [Source.from_chunk(number, r) for number, r in enumerate(self._chunks, 1)]
        await self._listener(Event("sources", Sources(sources=sources)))
        self._grounder = Grounder(self._asked, self._chunks, self._rules)
        self._read = 0
        self._told = 0

    async def follow(self, text: str) -> None:
        """Tell of the steps that `text`, the reply so far, has completed since the last time."""
        if len(text) < self._characters and self._read:
            await self.begin()  # the model was asked again
        new = text[self._characters :]
        self._characters = len(text)
        if '"' not in new or len(text) > MAX_STREAMED_CHARS:
            return  # a step ends with a quotation mark
        for written in complete_steps(text)[self._read :]:
            self._read += 1
            grounded = self._grounder.check_step(written)
            if grounded.text:
                self._told += 1
                await self._listener(Event("step", step_event(self._told, grounded)))


def step_event(number: int, grounded: GroundedStep) -> Step:
    """What is told of one step."""
    return Step(
        number=number,
        text=grounded.text,
        unverified=list(grounded.unverified),
        supported=grounded.supported,
    )


def complete_steps(text: str) -> list[str]:
    """The elements of `answer` in unfinished JSON that no further character can change."""
    text = strip_thinking(text)
    start = text.find("{")
    if start < 0:
        return []
    try:
        # The last string is left out until its quotation mark has come.
        value = from_json(text[start:].encode(errors="replace"), allow_partial=True)
    except ValueError:
        return []
    steps = value.get("answer") if isinstance(value, dict) else None
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
        return []
    return [step for step in steps if step.strip()]
