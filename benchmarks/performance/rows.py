"""Speed targets and results: a row per target."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """The target for a ratio or a difference."""

    limit: float
    at_least: bool = False
    unit: str = ""

    def holds(self, value: float) -> bool:
        """Return whether `value` meets the target."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"at {'least' if self.at_least else 'most'} {self.limit:g}{self.unit}"


@dataclass(frozen=True)
class Row:
    """One speed target with its result."""

    what: str
    ours: str
    against: str
    """The reference and its value; empty without one."""
    value: float | None = None
    """The value to compare; None if it was not measured or has no target."""
    target: Target | None = None

    @property
    def verdict(self) -> str:
        """Return whether the target is met; `reported` without a target."""
        if self.target is None:
            return "reported"
        if self.value is None:
            return "not measured"
        return "yes" if self.target.holds(self.value) else "**no**"


def milliseconds(seconds: float) -> str:
    """Return `seconds` in milliseconds, formatted for a table."""
    value = seconds * 1000
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.1f} ms"
