"""Figures of the run, and the table of the documentation."""

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from runnables.models.chat_model import ChatModel
from schemas.answer import Answer

Interval = tuple[float, float]


@dataclass(frozen=True)
class Outcome:
    """One answer and its problems."""

    part: str
    question: str
    answer: Answer | None
    seconds: float
    model_seconds: float
    problems: tuple[str, ...]


@dataclass
class ModelClock:
    """Records when models are called."""

    intervals: list[Interval] = field(default_factory=list)

    def seconds(self) -> float:
        """Return how long at least one model was being called since the last call, in seconds."""
        total, end = 0.0, 0.0
        for start, stop in sorted(self.intervals):
            total += max(0.0, stop - max(start, end))
            end = max(end, stop)
        self.intervals.clear()
        return total

    @contextmanager
    def running(self) -> Iterator["ModelClock"]:
        """Record the calls within the block."""
        ask = ChatModel.ask

        async def timed(*args: Any, **options: Any) -> Any:
            started = time.monotonic()
            try:
                return await ask(*args, **options)
            finally:
                self.intervals.append((started, time.monotonic()))

        ChatModel.ask = timed  # type: ignore[method-assign]
        try:
            yield self
        finally:
            ChatModel.ask = ask  # type: ignore[method-assign]


def table(outcomes: list[Outcome]) -> str:
    """Return the figures as a Markdown table."""
    parts = list(dict.fromkeys(outcome.part for outcome in outcomes))
    lines = [
        "| part | valid | written by the model | quoted | refused or not covered | grounded steps | degraded "
        "| seconds | outside the model |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    lines += [_row(part, [o for o in outcomes if o.part == part]) for part in parts]
    return "\n".join([*lines, _row("all", outcomes)])


def _row(part: str, outcomes: list[Outcome]) -> str:
    answers = [outcome.answer for outcome in outcomes if outcome.answer]
    valid = sum(not outcome.problems for outcome in outcomes)
    cited = [answer for answer in answers if answer.sources]
    quoted = sum(answer.answered_by == "extractive" for answer in cited)
    steps = sum(len(answer.answer) for answer in cited)
    supported = steps - sum(len(answer.unsupported) for answer in cited)
    degraded = Counter(answer.degraded for answer in answers if answer.degraded)
    reasons = ", ".join(f"`{code}` {count}" for code, count in degraded.most_common()) or "none"
    seconds = statistics.median(outcome.seconds for outcome in outcomes)
    outside = statistics.median(max(0.0, o.seconds - o.model_seconds) for o in outcomes)
    return (
        f"| {part} | {valid} of {len(outcomes)} | {len(cited) - quoted} | {quoted} "
        f"| {len(answers) - len(cited)} | {supported} of {steps} | {reasons} | {seconds:.1f} "
        f"| {outside:.2f} |"
    )
