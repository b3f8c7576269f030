"""Formats lines, counts and time spans for reports, and finds the lines in which two answers differ."""

from collections.abc import Sequence

CONTEXT_CHARS = 40
"""Maximum number of characters that are shown before the first difference in a long line."""


def shorten(text: str, max_chars: int) -> str:
    """Return `text` on one line. If it is longer than `max_chars` characters, it is cut and ends in "…"."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def differing_lines(
    before: Sequence[str], after: Sequence[str], max_chars: int
) -> tuple[list[str], list[str]]:
    """Return the lines of each answer that the other one does not have, without blank lines.

    `before` and `after` are the answers, as lists of paragraphs. A line of more than `max_chars` characters
    is cut, so that its first difference from the other answer is visible.
    """
    old_lines, new_lines = (
        [line.strip() for step in steps for line in step.splitlines()] for steps in (before, after)
    )
    old = [line for line in old_lines if line and line not in new_lines]
    new = [line for line in new_lines if line and line not in old_lines]
    return _cut(old, new, max_chars), _cut(new, old, max_chars)


def _cut(lines: Sequence[str], others: Sequence[str], max_chars: int) -> list[str]:
    """Cut each of `lines` to at most `max_chars` characters; `others` are the lines of the other answer."""
    shown = []
    for line in lines:
        common = max((_common_length(line, other) for other in others), default=0)
        start = _context_start(line, common)
        is_cut = len(line) > max_chars and start > 0
        shown.append(shorten(f"…{line[start:]}" if is_cut else line, max_chars))
    return shown


def _context_start(line: str, difference: int) -> int:
    """Return the index at which the shown part of `line` starts.

    The part contains at most `CONTEXT_CHARS` characters before the index `difference`. If possible, it
    begins with a whole word.
    """
    earliest = difference - CONTEXT_CHARS
    if earliest <= 0:
        return 0
    return line.find(" ", earliest - 1, earliest + CONTEXT_CHARS // 2) + 1 or earliest


def _common_length(one: str, other: str) -> int:
    """Return the number of equal characters at the start of both texts."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def count_of(number: int, noun: str) -> str:
    """Return `number` with the singular `noun`, which gets an s if needed: `1 question`, `2 questions`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def time_span(days: int) -> str:
    """Return the time span of the last `days` days in words, such as "the last 7 days"."""
    return "the last day" if days == 1 else f"the last {days} days"
