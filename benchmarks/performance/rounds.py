"""Measures systems in turns, so that a disturbance of the machine affects all of them equally."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeVar

from app.analytics.evaluation.scoring import percentile

T = TypeVar("T")


def in_turns(things: Sequence[T], rounds: int) -> Iterable[tuple[int, T]]:
    """Yield the number of the round and each of `things`; each round starts with another thing."""
    for number in range(rounds):
        start = number % len(things) if things else 0
        for thing in [*things[start:], *things[:start]]:
            yield number, thing


def p50(values: Sequence[float]) -> float:
    """Return the median."""
    return median(values)


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return percentile(values, 0.95)
