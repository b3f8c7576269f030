"""Streaming of the steps of an answer while the model writes it. Each step is grounded first."""

import re
from collections.abc import Sequence

from pydantic_core import from_json

from runnables.grounding.grounded_step import GroundedStep, Grounder, GroundingRules
from runnables.models.json_text import strip_thinking
from schemas.answer import Event, EventSink, Source, Sources, Step
from schemas.document import RetrievedChunk
from schemas.question import Question

MAX_STREAMED_CHARS = 50_000
"""Number of characters of a reply after which its steps are no longer streamed."""

MAX_PARSES = 300
"""Number of times that a reply is parsed before its steps are no longer streamed."""

_QUOTE = re.compile(r'(?<!\\)"')
"""A quotation mark that may end a step; one inside a step is escaped."""


class PartialAnswerParser:
    """Parses a reply while the model writes it, and sends the events `sources` and `step`.

    Steps are held until one is supported, because an answer without supported steps may be replaced, and
    a client that appends text to its display cannot remove it.
    """

    def __init__(
        self,
        on_event: EventSink,
        question: Question,
        chunks: Sequence[RetrievedChunk],
        rules: GroundingRules,
    ) -> None:
        self._on_event = on_event
        self._question = question
        self._chunks = chunks
        self._rules = rules
        self._grounder = Grounder(question, chunks, rules)
        self._text_length = 0
        """Length of the reply so far, in characters."""
        self._complete_steps = 0
        """Number of complete steps in the reply so far."""
        self._parses = 0
        """Number of times that the reply has been parsed."""
        self._steps: list[Step] = []
        """The steps so far, without steps that grounding removed completely."""

    async def begin(self) -> None:
        """Send the sources, and forget all earlier steps.

        Call it before the first `on_text`, which calls it again when the model starts another attempt.
        """
        sources = [Source.from_chunk(number, r) for number, r in enumerate(self._chunks, 1)]
        await self._on_event(Event("sources", Sources(sources=sources)))
        self._grounder = Grounder(self._question, self._chunks, self._rules)
        self._complete_steps = 0
        self._parses = 0
        self._steps = []

    async def on_text(self, text: str) -> None:
        """Send the steps that have become complete since the last call; `text` is the reply so far."""
        if len(text) < self._text_length and self._complete_steps:
            await self.begin()  # the text belongs to another attempt
        new = text[self._text_length :]
        self._text_length = len(text)
        if not _QUOTE.search(new) or len(text) > MAX_STREAMED_CHARS or self._parses == MAX_PARSES:
            return
        self._parses += 1
        for step in complete_steps(text)[self._complete_steps :]:
            self._complete_steps += 1
            grounded = self._grounder.check_step(step)
            if grounded.text:
                await self._send(grounded)

    async def _send(self, grounded: GroundedStep) -> None:
        """Send the held steps, then `grounded`. If no step so far is supported, hold `grounded` as well."""
        is_held = not any(step.supported for step in self._steps)
        step = Step(
            number=len(self._steps) + 1,
            text=grounded.text,
            unverified=list(grounded.unverified),
            supported=grounded.supported,
        )
        self._steps.append(step)
        if step.supported or not is_held:
            for each in self._steps if is_held else [step]:
                await self._on_event(Event("step", each))


def complete_steps(text: str) -> list[str]:
    """Return the complete elements of the list `answer` in `text`, which may be unfinished JSON."""
    text = strip_thinking(text)
    start = text.find("{")
    if start < 0:
        return []
    try:
        # An unterminated string is left out.
        value = from_json(text[start:].encode(errors="replace"), allow_partial=True)
    except ValueError:
        return []
    steps = value.get("answer") if isinstance(value, dict) else None
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
        return []
    return [step for step in steps if step.strip()]
