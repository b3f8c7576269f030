"""The number of measurements."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """The numbers of rounds, questions and sections."""

    sections: int = 750
    """Number of sections of the corpus, which yield about 1,000 chunks."""
    rounds: int = 8
    """Number of questions per system, one at a time, with model latency."""
    rounds_at_once: int = 40
    """Number of questions per system, one at a time, without model latency."""
    load_rounds: int = 5
    load_questions: int = 128
    """Number of questions per round from all clients together."""
    ingestion_rounds: int = 5
    ingestion_sections: int = 2_500
    """Number of sections of the indexed corpus, which yield about 3,350 chunks.

    With 1,000 sections, the constant costs of a run would be a third of its time.
    """
    commands: int = 11
    """Number of runs of `apidesk --help`, and of `python -c pass`."""
    starts: int = 5
    memory_questions: int = 50
    growth: tuple[int, ...] = (750, 7_500, 37_500)
    """Numbers of sections, which yield about 1,000, 10,000 and 50,000 chunks. The last is also the size of
    the documentation for the subject `large`."""
    large_rounds: int = 5
    """Number of questions per system over the largest corpus, one at a time.

    They are asked with model latency, and as many others without it.
    """
    large_load_questions: int = 64


THOROUGH = Effort()
QUICK = Effort(
    sections=150,
    rounds=1,
    rounds_at_once=3,
    load_rounds=1,
    load_questions=64,
    ingestion_rounds=1,
    ingestion_sections=150,
    commands=3,
    starts=1,
    memory_questions=5,
    growth=(150, 750),
    large_rounds=1,
    large_load_questions=8,
)
"""For a quick check; the results are not meaningful."""
