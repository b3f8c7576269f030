"""Formats results as Markdown and writes them between the markers of a document."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill

WIDTH = 128
"""Characters per line of prose in docs/."""


def write_between_markers(path: Path, text: str, name: str = "figures") -> None:
    """Replace the text between the two markers in the file at `path`.

    Raises ValueError unless the file contains each marker once, in this order.
    """
    before, after = around_markers(path, name)
    begin, end = _markers(name)
    path.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}", encoding="utf-8")


def around_markers(path: Path, name: str = "figures") -> tuple[str, str]:
    """Return the text before the first marker and the text after the second one.

    Raises ValueError unless the file contains each marker once, in this order.
    """
    begin, end = _markers(name)
    before, begins, rest = path.read_text(encoding="utf-8").partition(begin)
    _, ends, after = rest.partition(end)
    if not (begins and ends) or begin in rest or end in before + after:
        raise ValueError(f"{path}: must contain {begin} and {end} once each, in this order")
    return before, after


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return a Markdown table. The first `words` columns are aligned left, the others right."""
    rule = ["---" if column < words else "---:" for column in range(len(head))]
    return "\n".join(_row(cells) for cells in [head, rule, *rows])


def prose(text: str) -> str:
    """Return `text` as a paragraph wrapped at `WIDTH`."""
    return fill(" ".join(text.split()), WIDTH, break_on_hyphens=False, break_long_words=False)


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- /{name} -->"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def truncate(text: str, most: int) -> str:
    """Return `text` on one line, truncated to `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
