"""Insights, printed for a person."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from schemas.insights import Gap, Insights, Rated, Table
from schemas.question import QuestionType

SHOWN = 10
"""Lines of a section that is not all that was asked for."""

MORE_WORDINGS = 2

BLOCKS = "▁▂▃▄▅▆▇█"

LONGEST_LINE = 40
"""Characters of the line that draws the days."""

LONGEST_BAR = 30

TYPES: Mapping[QuestionType | None, str] = {
    "general": "how it works",
    "api_call": "about an API",
    "unknown": "off topic",
    None: "failed",
}


def print_insights(found: Insights, table: Table | None = None) -> None:
    """The whole report, or all of one table."""
    console = Console(highlight=False)
    for note in found.notes:
        console.print(Text(note, style="yellow"))
    if not found.questions:
        console.print(f"no question of {_span(found)} was kept")
        return
    most = None if table else SHOWN
    for name, section in SECTIONS.items():
        if table in (None, name):
            console.print(Group(*section(found, most)))
            console.print()
    if table is None:
        console.print(
            Text("all of a section: --table NAME, as CSV: --table NAME --csv", style="dim")
        )


def _types(found: Insights, most: int | None) -> list[RenderableType]:
    """How many questions there were, on which days and of which types."""
    counts: Counter[QuestionType | None] = Counter()
    days: Counter[date] = Counter()
    for each in found.by_type:
        counts[each.type] += each.questions
        days[each.day] += each.questions
    summary = (
        f"{found.unanswered} about the platform unanswered, {found.off_topic_share:.0%} off topic, "
        f"{found.cached_share:.0%} from the cache"
    )
    grid = _grid(2)
    for type_ in TYPES:
        if counts[type_]:
            bar = Text("█" * _scaled(counts[type_], max(counts.values()), LONGEST_BAR), "cyan")
            grid.add_row(str(counts[type_]), TYPES[type_], bar)
    heading = _heading(f"{found.questions} questions of {_span(found)}")
    return [heading, Text(summary), _indented(_line(days, found.days)), grid]


def _span(found: Insights) -> str:
    return "the last day" if found.days == 1 else f"the last {found.days} days"


def _line(days: Mapping[date, int], span: int) -> Text:
    """A block for each day, or for as many days as it takes; a dot where nothing was asked."""
    today = datetime.now(UTC).date()
    step = span // LONGEST_LINE + 1
    starts = range(span, -1, -step)
    sums = [
        sum(days.get(today - timedelta(days=start - offset), 0) for offset in range(step))
        for start in starts
    ]
    blocks = [BLOCKS[_scaled(each, max(sums), len(BLOCKS)) - 1] if each else "·" for each in sums]
    first = today - timedelta(days=span)
    unit = f"in {step} days" if step > 1 else "a day"
    return Text.assemble(
        (f"{first:%m-%d} ", "dim"), ("".join(blocks), "cyan"), (f" {today:%m-%d}", "dim"),
        (f"  at most {max(sums)} {unit}", "dim"),
    )  # fmt: skip


def _gaps(found: Insights, most: int | None) -> list[RenderableType]:
    grid = _grid(1)
    for gap in found.gaps[:most]:
        grid.add_row(str(gap.size), Group(*_gap(gap)))
        grid.add_row()
    return _section("What the documentation does not answer", grid, len(found.gaps), most)


def _gap(gap: Gap) -> list[Text]:
    """Its wordings, and where its answers came to."""
    nearest, missing = gap.nearest, ", ".join(gap.missing[:SHOWN])
    said = f"{gap.name}: {gap.question}" if gap.name else gap.question
    lines = [_line_of(said, "bold")]
    lines += [_line_of(text) for text in gap.wordings[1 : 1 + MORE_WORDINGS]]
    if missing:
        lines.append(_line_of(f"not in the documents: {missing}", "dim"))
    if nearest:
        page = Text.assemble(("nearest: ", "dim"), nearest.title, "  ", (nearest.page_url, "cyan"))
        lines.append(page)
    return lines


def _apis(found: Insights, most: int | None) -> list[RenderableType]:
    asked: Counter[tuple[str, str]] = Counter()
    unanswered: Counter[tuple[str, str]] = Counter()
    for each in found.by_api:
        asked[each.api_name, each.api_url] += each.questions
        unanswered[each.api_name, each.api_url] += each.unanswered
    grid = _grid(1)
    for (name, url), count in asked.most_common(most):
        missed = unanswered[name, url]
        said = Text.assemble(
            _tame(name or url), ("  " + _tame(url) if name and url else "", "cyan")
        )
        said.append(f"  {missed} unanswered" if missed else "", "yellow")
        grid.add_row(str(count), said)
    return _section("APIs that were asked for", grid, len(asked), most)


def _errors(found: Insights, most: int | None) -> list[RenderableType]:
    grid = _grid(1)
    for each in found.errors[:most]:
        grid.add_row(str(each.questions), _line_of(each.error))
    return _section("Errors that questions name", grid, len(found.errors), most)


def _feedback(found: Insights, most: int | None) -> list[RenderableType]:
    grid = _grid(1)
    for each in found.feedback[:most]:
        grid.add_row("+" if each.score > 0 else "-", Group(*_rated(each)))
    helped = sum(each.score > 0 for each in found.feedback)
    heading = f"Feedback: {helped} helped, {len(found.feedback) - helped} did not"
    return _section(heading, grid, len(found.feedback), most)


def _rated(rated: Rated) -> list[Text]:
    day = f"{rated.asked_at:%m-%d}  confidence {rated.confidence}"
    lines = [_line_of(rated.question, "bold" if rated.score < 0 else "")]
    if rated.comment:
        lines.append(Text(_tame(rated.comment)))
    return [*lines, Text(day, style="dim")]


SECTIONS: dict[Table, Callable[[Insights, int | None], Sequence[RenderableType]]] = {
    "byType": _types,
    "gaps": _gaps,
    "byApi": _apis,
    "errors": _errors,
    "feedback": _feedback,
}


def _section(title: str, grid: Grid, count: int, most: int | None) -> list[RenderableType]:
    """A heading over its lines; what is left out is counted."""
    lines: list[RenderableType] = [
        _heading(title),
        grid if count else _indented(Text("none", "dim")),
    ]
    if most and count > most:
        lines.append(_indented(Text(f"{count - most} more", style="dim")))
    return lines


def _grid(columns: int) -> Grid:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", min_width=7)
    for _ in range(columns):
        grid.add_column()
    return grid


def _heading(text: str) -> Text:
    return Text(text, style="bold underline")


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 4), expand=False)


def _line_of(text: str, style: str = "") -> Text:
    """One line, however long `text` is."""
    return Text(_tame(text), style=style, no_wrap=True, overflow="ellipsis")


def _tame(text: str) -> str:
    """Without line breaks, nor what a terminal would obey: strangers wrote it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _scaled(value: int, largest: int, length: int) -> int:
    """`value` as a length, at least 1."""
    return max(1, round(length * value / largest))
