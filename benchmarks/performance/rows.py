"""Targets and results: a row per measurement."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """An upper or a lower limit for a measured value."""

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
    """One result, with its target if there is one."""

    what: str
    ours: str
    against: str
    """The reference and its value; empty without one."""
    value: float | None = None
    """The value that is compared with the target; None if it was not measured."""
    target: Target | None = None

    @property
    def verdict(self) -> str:
        """Whether the target is met; `not measured` without a value, `reported` without a target."""
        if self.target is None:
            return "reported"
        if self.value is None:
            return "not measured"
        return "yes" if self.target.holds(self.value) else "**no**"


def milliseconds(seconds: float) -> str:
    """Return `seconds` in milliseconds, formatted for a table."""
    value = seconds * 1000
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.1f} ms"
