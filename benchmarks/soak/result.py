"""The result of the soak test and its failures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks.soak.clients import AskedQuestion
from benchmarks.soak.processes import MemorySample

MAX_GROWTH = 0.10
"""Maximum growth of memory from the second minute to the last, as a share."""

MINUTE = 60.0


def spread(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile of `seconds`; zeros if it is empty."""
    if len(seconds) < 2:
        return sum(seconds), sum(seconds)
    return median(seconds), quantiles(seconds, n=20)[-1]


@dataclass(frozen=True)
class Result:
    """The result of a soak test."""

    minutes: float
    clients: int
    began: float
    asked: list[AskedQuestion]
    runs: list[str]
    restarts: int
    weights: list[MemorySample]
    model: dict[str, int]
    remembered: int
    """Number of answers that must be in the history of their session."""
    lost: int
    """Number of these answers that are missing."""
    kept: int
    """Number of answers whose questions must be recorded."""
    unkept: int
    """Number of these answers whose questions are not recorded."""
    untimely: int
    """Number of questions that failed with a store error while the store was available."""
    stacks: int
    """Number of stack traces in the server's log."""

    @property
    def outcomes(self) -> Counter[str]:
        """The number of questions by outcome."""
        return Counter(each.outcome for each in self.asked)

    @property
    def kinds(self) -> list[str]:
        """The kinds of question."""
        return sorted({each.kind for each in self.asked})

    def seconds(self, kind: str) -> tuple[float, float]:
        """Return the median and 95th percentile of the seconds of answered questions of one kind."""
        answered = [each for each in self.asked if each.outcome == "answered"]
        return spread([each.seconds for each in answered if each.kind == kind])

    @property
    def refusal_seconds(self) -> tuple[float, float]:
        """The median and 95th percentile of the seconds until a question failed because Milvus was down."""
        return spread([each.seconds for each in self.asked if each.outcome == "store unavailable"])

    @property
    def by_minute(self) -> list[float]:
        """The median of the server's memory in each complete minute, in MB."""
        whole = int(self.minutes * 60 // MINUTE)
        minutes: list[list[float]] = [[] for _ in range(whole)]
        for weight in self.weights:
            place = int((weight.at - self.began) // MINUTE)
            if place < whole:
                minutes[place].append(weight.server)
        return [median(minute) for minute in minutes if minute]

    @property
    def growth(self) -> float | None:
        """Growth of memory from the second minute to the last, as a share; None for a short run."""
        minutes = self.by_minute
        return minutes[-1] / minutes[1] - 1 if len(minutes) > 2 else None

    @property
    def failures(self) -> list[str]:
        """A description of each failure."""
        found = self.outcomes
        checks = [
            (found["wrong"], "answers are wrong"),
            (found["failed"], "questions failed"),
            (self.untimely, "questions failed with 503 while the store was available"),
            (self.lost, "answers of sessions were not stored"),
            (self.unkept, "answered questions were not recorded"),
            (self.stacks, "stack traces are in the server's log"),
            (sum(run.startswith("failed") for run in self.runs), "ingestion runs failed"),
        ]
        failures = [f"{count} {what}" for count, what in checks if count]
        if self.growth is not None and self.growth > MAX_GROWTH:
            failures.append(f"memory grew by {self.growth:.0%} after the first minute")
        if not found["answered"]:
            failures.append("no question was answered")
        return failures
