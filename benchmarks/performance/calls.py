"""The calls that a model has answered, how long each takes, and what else passed meanwhile."""

from collections.abc import Iterable
from typing import NamedTuple


class Pace(NamedTuple):
    """Seconds that the model takes."""

    first: float = 0.0
    """To the first token of a reply."""
    token: float = 0.0
    """For each token of it."""
    embedding: float = 0.0
    """For a request of embeddings, however many texts are in it."""


FIXED = Pace(first=0.2, token=0.02, embedding=0.03)
AT_ONCE = Pace()
"""All that is left is overhead."""


class Call(NamedTuple):
    """One call: when the server had read it, and when it sent the last byte (`time.monotonic`)."""

    kind: str
    began: float
    ended: float


def outside(began: float, ended: float, calls: Iterable[Call]) -> float:
    """Seconds between the two during which none of `calls` was under way.

    Calls that overlap count once: work beside a call costs the caller nothing.
    """
    seconds, since = 0.0, began
    for call in sorted(calls, key=lambda call: call.began):
        seconds += max(0.0, min(call.began, ended) - since)
        since = max(since, call.ended)
    return seconds + max(0.0, ended - since)
