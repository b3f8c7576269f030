"""The number of measurements."""

from dataclasses import dataclass

SIZES = (1_000, 10_000, 50_000)
"""Numbers of chunks of the documentation."""


@dataclass(frozen=True)
class Effort:
    """The numbers of starts, rounds and questions. The servers of all sizes are measured in turns."""

    starts: int = 3
    warm_up: int = 50
    """Number of unmeasured questions per server."""
    rounds: int = 5
    asked: int = 20
    """Number of questions per round to `/ask`, one at a time."""
    retrieved: int = 50
    """Number of questions per round to `/retrieve`, one at a time."""
    load_rounds: int = 3
    load_questions: int = 192
    """Number of questions per round from all clients together."""


THOROUGH = Effort()
QUICK = Effort(
    starts=1, warm_up=5, rounds=1, asked=5, retrieved=5, load_rounds=1, load_questions=64
)
"""For a quick check; the results are not meaningful."""
QUICK_SIZES = (700, 1_400)
