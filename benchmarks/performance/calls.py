"""Model calls: their latency, and the time of a question outside model calls."""

from collections.abc import Iterable
from typing import NamedTuple


class Latencies(NamedTuple):
    """Latencies of the model, in seconds."""

    first: float = 0.0
    """Time to the first token."""
    token: float = 0.0
    """Time per token."""
    embedding: float = 0.0
    """Time per embedding request, whatever its size."""


FIXED = Latencies(first=0.2, token=0.02, embedding=0.03)
NO_LATENCY = Latencies()
"""Without latency, only the overhead of a system remains."""


class Call(NamedTuple):
    """A call, with the times when its request was read and its last byte was sent (`time.monotonic`)."""

    kind: str
    began: float
    ended: float


def seconds_outside_calls(began: float, ended: float, calls: Iterable[Call]) -> float:
    """Return the seconds of the interval during which none of `calls` was active.

    Overlapping calls count once: work during a call does not delay the caller.
    """
    seconds, since = 0.0, began
    for call in sorted(calls, key=lambda call: call.began):
        seconds += max(0.0, min(call.began, ended) - since)
        since = max(since, call.ended)
    return seconds + max(0.0, ended - since)
