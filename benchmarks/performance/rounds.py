"""Things measured in turns: what disturbs the machine for a while disturbs all of them."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeVar

from app.analytics.evaluation.measures import percentile

T = TypeVar("T")


def in_turns(things: Sequence[T], rounds: int) -> Iterable[tuple[int, T]]:
    """Each of `things` in every round, and which round it is; another one begins each time."""
    for number in range(rounds):
        start = number % len(things) if things else 0
        for thing in [*things[start:], *things[:start]]:
            yield number, thing


def p50(values: Sequence[float]) -> float:
    """The median."""
    return median(values)


def p95(values: Sequence[float]) -> float:
    """What 95 of 100 are at most."""
    return percentile(values, 0.95)
