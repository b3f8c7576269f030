"""A replay, printed for a person."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.replay.result import CHANGES, Change, Outcome, Replay, Replayed

SHOWN = 20
"""Changed questions that are listed."""

STYLES: dict[Change, str] = {"failed": "red", "lost": "red", "won": "green"}


def print_replay(replay: Replay) -> None:
    """How many changed how, then the questions that did, what is worst first."""
    console = Console(highlight=False)
    count = len(replay.questions)
    console.print(
        Text.assemble(
            (f"{count} questions of the last {replay.days} days", "bold"),
            f"  now with {replay.settings}",
        )
    )
    for change in CHANGES:
        if number := replay.changes[change]:
            console.print(Text(f"  {number:>5}  {change}", style=STYLES.get(change, "")))
    changed = [each for each in replay.questions if each.change != "same"]
    if not changed:
        return
    changed.sort(key=lambda each: (CHANGES.index(each.change), -each.times))
    console.print()
    console.print(_table(changed[:SHOWN]))
    if len(changed) > SHOWN:
        console.print(Text(f"{len(changed) - SHOWN} more: --json lists them all", style="dim"))


def _table(changed: list[Replayed]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("change", "question", "then", "now"):
        table.add_column(title, overflow="fold", ratio=3 if title == "question" else 2)
    for each in changed:
        table.add_row(
            Text(each.change, style=STYLES.get(each.change, "")),
            Text(_short(each.question)),
            Text(_said(each.before)),
            Text(_said(each.after)),
        )
    return table


def _said(outcome: Outcome) -> str:
    pages = ", ".join(page.title for page in outcome.pages) or outcome.failure or "no page"
    return f"{outcome.verdict}: {pages}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"
