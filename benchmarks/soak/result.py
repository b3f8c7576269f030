"""What the soak came to, and whether that is good enough."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks.soak.clients import Asked
from benchmarks.soak.processes import Weight

GROWTH = 0.10
"""The share by which memory may grow after the first minute."""

MINUTE = 60.0


def spread(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile; of one the one, of none zeros."""
    if len(seconds) < 2:
        return sum(seconds), sum(seconds)
    return median(seconds), quantiles(seconds, n=20)[-1]


@dataclass(frozen=True)
class Result:
    """Everything that was seen."""

    minutes: float
    clients: int
    began: float
    asked: list[Asked]
    runs: list[str]
    restarts: int
    weights: list[Weight]
    model: dict[str, int]
    remembered: int
    """Answers that had to be remembered."""
    lost: int
    """Those of them that were not."""
    kept: int
    """Answers whose questions had to be kept."""
    unkept: int
    """Those of them that were not."""
    untimely: int
    """Refusals for want of a store at a time when it was there."""
    stacks: int
    """Stacks in the server's log."""

    @property
    def outcomes(self) -> Counter[str]:
        """How often each outcome came."""
        return Counter(each.outcome for each in self.asked)

    @property
    def kinds(self) -> list[str]:
        """The kinds of question."""
        return sorted({each.kind for each in self.asked})

    def seconds(self, kind: str) -> tuple[float, float]:
        """Median and 95th percentile of the answered questions of one kind."""
        answered = [each for each in self.asked if each.outcome == "answered"]
        return spread([each.seconds for each in answered if each.kind == kind])

    @property
    def seconds_away(self) -> tuple[float, float]:
        """Median and 95th percentile of the questions that found no store."""
        return spread([each.seconds for each in self.asked if each.outcome == "store away"])

    @property
    def by_minute(self) -> list[float]:
        """The median of the server's memory in each minute that was whole."""
        whole = int(self.minutes * 60 // MINUTE)
        minutes: list[list[float]] = [[] for _ in range(whole)]
        for weight in self.weights:
            place = int((weight.at - self.began) // MINUTE)
            if place < whole:
                minutes[place].append(weight.server)
        return [median(minute) for minute in minutes if minute]

    @property
    def growth(self) -> float | None:
        """The last minute's median over the second's; None for a run that was too short to tell."""
        minutes = self.by_minute
        return minutes[-1] / minutes[1] - 1 if len(minutes) > 2 else None

    @property
    def failures(self) -> list[str]:
        """What must not be, in words."""
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
        if self.growth is not None and self.growth > GROWTH:
            said.append(f"memory grew by {self.growth:.0%} after the first minute")
        if not found["answered"]:
            said.append("nothing was answered")
        return said
