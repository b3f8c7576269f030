"""Prints a replay as text."""

from collections.abc import Iterator

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.analytics.replay.run import (
    CHANGES,
    Replay,
    ReplayChange,
    ReplayedQuestion,
    ReplayOutcome,
    page_key,
)

MAX_CHANGED_QUESTIONS = 20
"""Maximum number of listed questions."""

MAX_TEXT_CHARS = 160
"""Longer questions and steps are truncated."""

STYLES: dict[ReplayChange, str] = {"failed": "red", "lost": "red", "won": "green", "same": "dim"}


def print_replay(replay: Replay) -> None:
    """Print the number of questions per kind of change, then the changed questions, worst first."""
    console = Console(highlight=False)
    console.print(_heading(replay))
    console.print()
    console.print(_counts(replay))
    changed = [each for each in replay.questions if each.change != "same"]
    changed.sort(key=lambda each: (CHANGES.index(each.change), -each.times))
    for each in changed[:MAX_CHANGED_QUESTIONS]:
        console.print()
        console.print(_changed_question(each))
    if len(changed) > MAX_CHANGED_QUESTIONS:
        console.print(
            Text(f"\n{len(changed) - MAX_CHANGED_QUESTIONS} more: --json lists all", style="dim")
        )


def _heading(replay: Replay) -> Text:
    count, recorded = len(replay.questions), replay.recorded
    subject = f"The newest {count} of {recorded} questions"
    if count == recorded:
        subject = f"{count} questions"
    return Text.assemble(
        (subject, "bold"), f" of the last {replay.days} days, now with {replay.settings}"
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


def _changed_question(each: ReplayedQuestion) -> Group:
    """The question with its outcome before and after."""
    times = f"  asked {each.times} times" if each.times > 1 else ""
    head = Text.assemble(
        (each.change, STYLES.get(each.change, "yellow")),
        "  ",
        (_shorten(each.question), "bold"),
        (times, "dim"),
    )
    outcomes = Table.grid(padding=(0, 2))
    outcomes.add_column(style="dim")
    outcomes.add_column()
    outcomes.add_column(overflow="fold")
    removed = each.before.page_keys - each.after.page_keys
    added = each.after.page_keys - each.before.page_keys
    outcomes.add_row("then", each.before.verdict, _outcome_text(each, each.before, removed, "red"))
    outcomes.add_row("now", each.after.verdict, _outcome_text(each, each.after, added, "green"))
    return Group(head, Padding(outcomes, (0, 0, 0, 2)))


def _outcome_text(
    each: ReplayedQuestion, outcome: ReplayOutcome, changed: set[str], style: str
) -> Text:
    """The cited pages, `changed` ones in `style`; if only words changed, the first changed step."""
    if outcome.failure:
        return Text(outcome.failure, style="red")
    if each.change == "other words":
        step = next(_new_steps(outcome, each), None)
        return Text(_shorten(step)) if step else Text("nothing in its place", style="dim")
    if each.change == "other type":
        return Text(str(outcome.type))
    pages = [
        Text(page.title, style=style if page_key(page) in changed else "") for page in outcome.pages
    ]
    return Text(", ").join(pages) if pages else Text("cites nothing", style="dim")


def _new_steps(outcome: ReplayOutcome, each: ReplayedQuestion) -> Iterator[str]:
    other = each.after if outcome is each.before else each.before
    return (step for step in outcome.steps if step not in other.steps)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT_CHARS else f"{line[: MAX_TEXT_CHARS - 1]}…"
