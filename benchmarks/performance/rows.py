"""What was promised of speed, and what was measured: a row a promise."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reach:
    """How far a ratio, or a difference, is to go."""

    limit: float
    at_least: bool = False
    unit: str = ""

    def holds(self, value: float) -> bool:
        """Whether `value` is as good as promised."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"at {'least' if self.at_least else 'most'} {self.limit:g}{self.unit}"


@dataclass(frozen=True)
class Row:
    """One promise."""

    what: str
    ours: str
    against: str
    """What it is compared with, and its figure; empty where it stands for itself."""
    value: float | None = None
    """What is to reach; None where it could not be measured or nothing is promised."""
    reach: Reach | None = None

    @property
    def verdict(self) -> str:
        """Whether it is reached, and by how much not."""
        if self.reach is None:
            return "reported"
        if self.value is None:
            return "not measured"
        return "yes" if self.reach.holds(self.value) else "**no**"


def milliseconds(seconds: float) -> str:
    """As tables have it: as many digits as mean something."""
    value = seconds * 1000
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.1f} ms"
