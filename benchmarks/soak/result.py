"""The result of the soak test and its failures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks.soak.clients import AskedQuestion
from benchmarks.soak.processes import MemorySample

MAX_GROWTH = 0.10
"""Tolerated growth of memory after the first minute."""

MINUTE = 60.0


def spread(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile; zeros without values."""
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
    """Answers that must be stored."""
    lost: int
    """Answers that are missing."""
    kept: int
    """Answers whose questions must be recorded."""
    unkept: int
    """Answers that are missing."""
    untimely: int
    """Store errors while the store was available."""
    stacks: int
    """Stack traces in the server's log."""

    @property
    def outcomes(self) -> Counter[str]:
        """Return the number of each outcome."""
        return Counter(each.outcome for each in self.asked)

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of question."""
        return sorted({each.kind for each in self.asked})

    def seconds(self, kind: str) -> tuple[float, float]:
        """Return the median and 95th percentile of the answered questions of one kind."""
        answered = [each for each in self.asked if each.outcome == "answered"]
        return spread([each.seconds for each in answered if each.kind == kind])

    @property
    def seconds_away(self) -> tuple[float, float]:
        """Return the median and 95th percentile of the questions during a store's downtime."""
        return spread([each.seconds for each in self.asked if each.outcome == "store away"])

    @property
    def by_minute(self) -> list[float]:
        """Return the median of the server's memory in each complete minute."""
        whole = int(self.minutes * 60 // MINUTE)
        minutes: list[list[float]] = [[] for _ in range(whole)]
        for weight in self.weights:
            place = int((weight.at - self.began) // MINUTE)
            if place < whole:
                minutes[place].append(weight.server)
        return [median(minute) for minute in minutes if minute]

    @property
    def growth(self) -> float | None:
        """Return the growth from the second minute to the last; None for a short run."""
        minutes = self.by_minute
        return minutes[-1] / minutes[1] - 1 if len(minutes) > 2 else None

    @property
    def failures(self) -> list[str]:
        """Return a description of each failure."""
        found = self.outcomes
        checks = [
            (found["wrong"], "answers are wrong"),
            (found["failed"], "questions failed"),
            (self.untimely, "questions found no store though it was there"),
            (self.lost, "answers were given in a session and not remembered"),
            (self.unkept, "questions were answered and not kept"),
            (self.stacks, "stacks stand in the server's log"),
            (sum(run.startswith("failed") for run in self.runs), "runs of the ingestion failed"),
        ]
        said = [f"{count} {what}" for count, what in checks if count]
        if self.growth is not None and self.growth > MAX_GROWTH:
            said.append(f"memory grew by {self.growth:.0%} after the first minute")
        if not found["answered"]:
            said.append("nothing was answered")
        return said
