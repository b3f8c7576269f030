"""Figures as Markdown, and the place in a document that they are written to."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill

WIDTH = 128
"""Characters of a line of prose in docs/."""


def write_between_markers(path: Path, text: str, name: str = "figures") -> None:
    """Put `text` between the two markers in the file at `path`, and leave all else as it is.

    Raises ValueError for a file that does not hold each of them once, in this order.
    """
    before, after = around_markers(path, name)
    begin, end = _markers(name)
    path.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}", encoding="utf-8")


def around_markers(path: Path, name: str = "figures") -> tuple[str, str]:
    """What stands before the first marker and after the second one. Raises ValueError."""
    begin, end = _markers(name)
    before, begins, rest = path.read_text(encoding="utf-8").partition(begin)
    _, ends, after = rest.partition(end)
    if not (begins and ends) or begin in rest or end in before + after:
        raise ValueError(f"{path}: {begin} and {end} must stand in it once each, in this order")
    return before, after


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A Markdown table whose first `words` columns hold words, the others figures."""
    rule = ["---" if place < words else "---:" for place in range(len(head))]
    return "\n".join(_row(cells) for cells in [head, rule, *rows])


def prose(text: str) -> str:
    """`text` as a paragraph, its lines as long as those around it."""
    return fill(" ".join(text.split()), WIDTH, break_on_hyphens=False, break_long_words=False)


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- /{name} -->"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def shortened(text: str, most: int) -> str:
    """`text` on one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
