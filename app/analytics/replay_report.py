"""Prints a replay as text."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.analytics.evaluation.report import print_parts
from app.analytics.replay import (
    CHANGE_LABELS,
    CHANGES,
    Replay,
    ReplayChange,
    ReplayedQuestion,
    ReplayOutcome,
    page_key,
)
from app.analytics.report_text import count_of, differing_lines, shorten, time_span

MAX_CHANGED_QUESTIONS = 20
"""Maximum number of changed questions that are listed."""

MAX_TEXT_CHARS = 160
"""Maximum length of a question or of a line of an answer, in characters; longer texts are truncated."""

MAX_LINES = 5
"""Maximum number of lines that are shown of a reworded answer."""

STYLES: dict[ReplayChange, str] = {"failed": "red", "lost": "red", "won": "green", "same": "dim"}


def print_replay(replay: Replay) -> None:
    """Print the number of questions per kind of change, then the changed questions.

    The changed questions are in the order of `CHANGES`. Within a kind of change, the most frequently asked
    questions come first.
    """
    changed = [question for question in replay.questions if question.change != "same"]
    changed.sort(key=lambda question: (CHANGES.index(question.change), -question.times))
    listed = map(_changed_question, changed[:MAX_CHANGED_QUESTIONS])
    parts: list[RenderableType] = [_heading(replay), _counts(replay), *listed]
    if (more := len(changed) - MAX_CHANGED_QUESTIONS) > 0:
        parts.append(Text(f"{more} more; use --json to list all", style="dim"))
    print_parts(parts)


def _heading(replay: Replay) -> Text:
    count, recorded = len(replay.questions), replay.recorded
    subject = f"The newest {count} of {recorded} questions"
    if count == recorded:
        subject = count_of(count, "question")
    return Text.assemble(
        (subject, "bold"), f" from {time_span(replay.days)}, asked again with {replay.settings}"
    )


def _counts(replay: Replay) -> Group:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    for change in CHANGES:
        if number := replay.changes[change]:
            style = STYLES.get(change, "")
            label = CHANGE_LABELS[change]
            table.add_row(Text(str(number), style=style), Text(label, style=style))
    lines = [Text(f"on average {replay.overlap:.0%} of the cited pages are the same", style="dim")]
    if replay.judge:
        grades = ", ".join(f"{count} {grade}" for grade, count in replay.grades.items())
        lines.append(
            Text(f"changed answers, graded by {replay.judge} against the recorded ones: {grades}")
        )
    return Group(table, *lines)


def _changed_question(replayed: ReplayedQuestion) -> Group:
    times = f"  asked {replayed.times} times" if replayed.times > 1 else ""
    grade = f"  graded {replayed.grade}" if replayed.grade else ""
    head = Text.assemble(
        (CHANGE_LABELS[replayed.change], STYLES.get(replayed.change, "yellow")),
        "  ",
        (shorten(replayed.question, MAX_TEXT_CHARS), "bold"),
        (times + grade, "dim"),
    )
    outcomes = Table.grid(padding=(0, 2))
    outcomes.add_column(style="dim")
    outcomes.add_column()
    outcomes.add_column(overflow="fold")
    before, after = replayed.before, replayed.after
    removed = before.page_keys - after.page_keys
    added = after.page_keys - before.page_keys
    outcomes.add_row("then", before.verdict, _outcome_text(replayed, before, removed, "red"))
    outcomes.add_row("now", after.verdict, _outcome_text(replayed, after, added, "green"))
    return Group(head, Padding(outcomes, (0, 0, 0, 2)))


def _outcome_text(
    replayed: ReplayedQuestion, outcome: ReplayOutcome, changed: set[str], style: str
) -> Text:
    """Return the details to show of `outcome`, which is one of the two outcomes of `replayed`:

    - the error code, if answering failed
    - the lines that differ, if the answer was reworded
    - the question type, if it has changed
    - otherwise, the pages that the answer cites

    `changed` contains the keys of the pages that only this answer cites. These pages have the style
    `style`. They show their URL if the other answer cites a different page with the same title.
    """
    if outcome.failure:
        return Text(outcome.failure, style="red")
    if replayed.change == "other words":
        lines = _differing_lines(outcome, replayed)
        if not lines:
            return Text("all lines are also in the other answer", style="dim")
        return Text("\n".join(lines[:MAX_LINES]))
    if replayed.change == "other type":
        return Text(str(outcome.type))
    other = replayed.after if outcome is replayed.before else replayed.before
    other_titles = {page.title for page in other.pages if page_key(page) not in outcome.page_keys}
    pages = []
    for page in outcome.pages:
        is_changed = page_key(page) in changed
        needs_url = is_changed and page.title in other_titles
        title = f"{page.title} {page.page_url}" if needs_url else page.title
        pages.append(Text(title.strip(), style=style if is_changed else ""))
    return Text(", ").join(pages) if pages else Text("cites nothing", style="dim")


def _differing_lines(outcome: ReplayOutcome, replayed: ReplayedQuestion) -> list[str]:
    old, new = differing_lines(replayed.before.steps, replayed.after.steps, MAX_TEXT_CHARS)
    return old if outcome is replayed.before else new
