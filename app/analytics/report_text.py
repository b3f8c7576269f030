"""Shortens text and names time spans. This module is separate because several reports use it."""


def shorten(text: str, max_chars: int) -> str:
    """Return `text` on one line. If it is longer than `max_chars` characters, it is cut and ends in "…"."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def time_span(days: int) -> str:
    """Return the time span of the last `days` days in words."""
    return "the last day" if days == 1 else f"the last {days} days"
