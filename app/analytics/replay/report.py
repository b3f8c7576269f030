"""A replay, printed for a person."""

from collections.abc import Iterator

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.analytics.replay.result import (
    CHANGES,
    Replay,
    ReplayChange,
    Replayed,
    ReplayOutcome,
    address,
)

SHOWN = 20
"""Changed questions that are listed."""

LONGEST = 160
"""Characters of a question, or of a step, that are shown."""

STYLES: dict[ReplayChange, str] = {"failed": "red", "lost": "red", "won": "green", "same": "dim"}


def print_replay(replay: Replay) -> None:
    """How many changed how, then the questions that did, what weighs most first."""
    console = Console(highlight=False)
    console.print(_heading(replay))
    console.print()
    console.print(_counts(replay))
    changed = [each for each in replay.questions if each.change != "same"]
    changed.sort(key=lambda each: (CHANGES.index(each.change), -each.times))
    for each in changed[:SHOWN]:
        console.print()
        console.print(_changed(each))
    if len(changed) > SHOWN:
        console.print(Text(f"\n{len(changed) - SHOWN} more: --json lists all", style="dim"))


def _heading(replay: Replay) -> Text:
    count, kept = len(replay.questions), replay.kept
    which = f"{count} questions" if count == kept else f"The newest {count} of {kept} questions"
    return Text.assemble(
        (which, "bold"), f" of the last {replay.days} days, now with {replay.settings}"
    )


def _counts(replay: Replay) -> Group:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    for change in CHANGES:
        if number := replay.changes[change]:
            style = STYLES.get(change, "")
            table.add_row(Text(str(number), style=style), Text(change, style=style))
    share = f"on average {replay.overlap:.0%} of the cited pages are the same"
    return Group(table, Text(share, style="dim"))


def _changed(each: Replayed) -> Group:
    """The question, and below it what it was and is."""
    times = f"  asked {each.times} times" if each.times > 1 else ""
    head = Text.assemble(
        (each.change, STYLES.get(each.change, "yellow")),
        "  ",
        (_short(each.question), "bold"),
        (times, "dim"),
    )
    both = Table.grid(padding=(0, 2))
    both.add_column(style="dim")
    both.add_column()
    both.add_column(overflow="fold")
    gone = each.before.addresses - each.after.addresses
    new = each.after.addresses - each.before.addresses
    both.add_row("then", each.before.verdict, _said(each, each.before, gone, "red"))
    both.add_row("now", each.after.verdict, _said(each, each.after, new, "green"))
    return Group(head, Padding(both, (0, 0, 0, 2)))


def _said(each: Replayed, outcome: ReplayOutcome, moved: set[str], style: str) -> Text:
    """The pages, `moved` ones in `style`; where they are the same, the first step that is another."""
    if outcome.failure:
        return Text(outcome.failure, style="red")
    if each.change == "other words":
        step = next(_only_in(outcome, each), None)
        return Text(_short(step)) if step else Text("nothing in its place", style="dim")
    if each.change == "other type":
        return Text(str(outcome.type))
    pages = [
        Text(page.title, style=style if address(page) in moved else "") for page in outcome.pages
    ]
    return Text(", ").join(pages) if pages else Text("cites nothing", style="dim")


def _only_in(outcome: ReplayOutcome, each: Replayed) -> Iterator[str]:
    other = each.after if outcome is each.before else each.before
    return (step for step in outcome.steps if step not in other.steps)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
