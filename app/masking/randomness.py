"""What nobody chose: told from names and numbers by how often its characters change class."""

import re

_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

LONGEST_RUN = 3.2
"""Characters on average: random ones change class after two, words and dates after five."""


def is_random(text: str, shortest: int = 20, longest_run: float = LONGEST_RUN) -> bool:
    """Whether `text` has at least `shortest` letters and digits, as mixed as only chance mixes them."""
    runs = _RUN.findall(text)
    digits = sum(run.isdigit() for run in runs)
    length = sum(map(len, runs))
    return length >= shortest and 2 <= digits < len(runs) and length / len(runs) <= longest_run
