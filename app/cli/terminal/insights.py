"""Builds the insights report for the command line, and prints it as text.

The report is built from the records in the database and, for the tables `gaps` and `byApi`, from the
documents. If the documents are not available, gaps are detected from unhelpful answers only, and operations
with the same path are counted as one API.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, date, datetime, timedelta

from langchain_core.embeddings import Embeddings
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.analytics.insights.report import (
    SAME_PATH_NOTE,
    DocumentationContext,
    build_documentation_context,
    build_report,
    needs_documentation,
)
from app.analytics.report_text import count_of, time_span
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from ingestion.embeddings import open_embeddings
from ingestion.platform_config import read_platform
from ingestion.store.collection import Collection
from runnables.models.chat_models import open_chat_models
from schemas.choices import TableName
from schemas.errors import ApideskError, CollectionMismatch, StoreError, StoreUnavailable
from schemas.insights import Gap, Insights, RatedAnswer
from schemas.platform import PlatformConfig
from schemas.question import QuestionType
from schemas.settings import Settings

MAX_ROWS = 10
"""Maximum number of rows per section if the whole report is printed."""

MAX_MISSING_WORDS = 10
"""Maximum number of missing words (see `Gap.missing`) that are printed per gap."""

EXTRA_WORDINGS = 2
"""Maximum number of wordings that are printed per gap, below its most typical wording."""

BLOCKS = "▁▂▃▄▅▆▇█"
"""The characters of the sparkline, from the lowest value to the highest."""

MAX_SPARKLINE_CHARS = 40
"""Maximum length of the sparkline, in characters. Longer periods have several days per character."""

FILE_COLUMNS = 1_000
"""Maximum length of a line if the output is not a terminal, in characters."""

MAX_BAR_WIDTH = 30
"""Maximum width of a bar, in characters."""

TYPES: Mapping[QuestionType | None, str] = {
    "general": "how it works",
    "api_call": "about an API",
    "unknown": "off topic",
    None: "failed",
}
"""The names of the question types in the report.

None is the type of questions whose caller got an error instead of an answer.
"""


async def load_insights(settings: Settings, days: int, table: TableName | None) -> Insights:
    """Build the report on the last `days` days. The documents are read only if `table` needs them.

    Raises ConfigurationError for invalid settings, and StoreUnavailable if the database cannot be used.
    """
    async with AsyncExitStack() as stack:
        documentation = None
        if needs_documentation(table):
            documentation = await stack.enter_async_context(_documentation(settings, table))
        engine = await asyncio.to_thread(open_engine, settings)
        stack.push_async_callback(asyncio.to_thread, engine.dispose)
        return await build_report(RecordStore(engine).since, days, documentation, table)


@asynccontextmanager
async def _documentation(
    settings: Settings, table: TableName | None
) -> AsyncIterator[DocumentationContext]:
    """Yield the inputs of a report other than the records.

    If the documents are not available, the result contains only a note. Raises ConfigurationError.
    """
    platform = read_platform(settings.platform)
    embeddings = open_embeddings(settings)
    try:
        collection = await asyncio.to_thread(Collection.connect, settings)
    except StoreUnavailable as error:
        yield _unavailable(error, table)
        return
    try:
        yield await asyncio.to_thread(
            _load_context, collection, platform, embeddings, settings, table
        )
    finally:
        await asyncio.to_thread(collection.close)


def _load_context(
    collection: Collection,
    platform: PlatformConfig,
    embeddings: Embeddings | None,
    settings: Settings,
    table: TableName | None,
) -> DocumentationContext:
    try:
        collection.load()
    except (StoreError, CollectionMismatch) as error:
        return _unavailable(error, table)
    models = open_chat_models(settings)
    return build_documentation_context(platform, collection, embeddings, models, settings)


def _unavailable(error: ApideskError, table: TableName | None) -> DocumentationContext:
    effects = {"gaps": "gaps were detected from unhelpful answers only", "byApi": SAME_PATH_NOTE}
    effect = " and ".join(effects[name] for name in effects if table in (None, name))
    return DocumentationContext(
        notes=(f"{effect}, because the documents are not available: {error}",)
    )


def print_insights(insights: Insights, table: TableName | None = None) -> None:
    """Print the whole report with shortened sections or, if `table` is given, this table in full.

    Lines are cut or wrapped at the width of the terminal. If the output is not a terminal, the limit is
    FILE_COLUMNS.
    """
    terminal = Console(highlight=False)
    if terminal.is_terminal:
        _print(terminal, insights, table)
        return
    file = Console(highlight=False, width=FILE_COLUMNS)
    with file.capture() as capture:
        _print(file, insights, table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _print(console: Console, insights: Insights, table: TableName | None) -> None:
    for note in insights.notes:
        console.print(Text(note, style="yellow"))
    if not insights.questions:
        console.print(f"no questions were recorded in {time_span(insights.days)}")
        return
    limit = None if table else MAX_ROWS
    for name, section in SECTIONS.items():
        if table in (None, name):
            console.print(Group(*section(insights, limit)))
            console.print()
    if table is None:
        console.print(
            Text(
                "to print a complete section: --table NAME; as CSV: --table NAME --csv", style="dim"
            )
        )


def _types(insights: Insights, limit: int | None) -> list[RenderableType]:
    """Return the section with the number of questions per day and per type."""
    counts: Counter[QuestionType | None] = Counter()
    days: Counter[date] = Counter()
    for type_count in insights.by_type:
        counts[type_count.type] += type_count.questions
        days[type_count.day] += type_count.questions
    noun_and_verb = "question has" if insights.unanswered == 1 else "questions have"
    summary = (
        f"{insights.unanswered} on-topic {noun_and_verb} no helpful answer, "
        f"{insights.off_topic_share:.0%} off topic, {insights.cached_share:.0%} from the cache"
    )
    grid = _grid(2)
    for type_ in TYPES:
        if counts[type_]:
            bar = Text("█" * _scale(counts[type_], max(counts.values()), MAX_BAR_WIDTH), "cyan")
            grid.add_row(str(counts[type_]), TYPES[type_], bar)
    heading = _heading(f"{count_of(insights.questions, 'question')} in {time_span(insights.days)}")
    return [heading, Text(summary), _indented(_sparkline(days, insights.days)), grid]


def _sparkline(days: Mapping[date, int], span: int) -> Text:
    """Return a sparkline of the questions over time, with a dot for each period without questions.

    The line begins `span` days ago.
    """
    today = datetime.now(UTC).date()
    step = span // MAX_SPARKLINE_CHARS + 1
    starts = range(span, -1, -step)
    sums = [
        sum(days.get(today - timedelta(days=start - offset), 0) for offset in range(step))
        for start in starts
    ]
    largest = max(sums)
    blocks = [BLOCKS[_scale(count, largest, len(BLOCKS)) - 1] if count else "·" for count in sums]
    first = today - timedelta(days=span)
    period = f"{step} days" if step > 1 else "one day"
    date_format = "%m-%d" if first.year == today.year else "%Y-%m-%d"
    return Text.assemble(
        (f"{first:{date_format}} ", "dim"), ("".join(blocks), "cyan"),
        (f" {today:{date_format}}", "dim"), (f"  highest: {largest} in {period}", "dim"),
    )  # fmt: skip


def _gaps(insights: Insights, limit: int | None) -> list[RenderableType]:
    grid = _grid(1)
    for gap in insights.gaps[:limit]:
        grid.add_row(str(gap.size), Group(*_gap_lines(gap)))
        grid.add_row()
    return _section("Gaps in the documentation", grid, len(insights.gaps), limit)


def _gap_lines(gap: Gap) -> list[Text]:
    """Return lines with the gap's name and question, other wordings, missing words and the nearest page."""
    nearest, missing = gap.nearest, ", ".join(gap.missing[:MAX_MISSING_WORDS])
    title = f"{gap.name}: {gap.question}" if gap.name else gap.question
    lines = [_single_line(title, "bold")]
    lines += [_single_line(text) for text in gap.wordings[1 : 1 + EXTRA_WORDINGS]]
    if missing:
        lines.append(_single_line(f"not in the documents: {missing}", "dim"))
    if nearest:
        page = Text.assemble(("nearest: ", "dim"), nearest.title, "  ", (nearest.page_url, "cyan"))
        lines.append(page)
    return lines


def _apis(insights: Insights, limit: int | None) -> list[RenderableType]:
    asked: Counter[tuple[str, str]] = Counter()
    unanswered: Counter[tuple[str, str]] = Counter()
    for api_count in insights.by_api:
        api = (api_count.api_name, api_count.api_url)
        asked[api] += api_count.questions
        unanswered[api] += api_count.unanswered
    grid = _grid(1)
    for (name, url), count in asked.most_common(limit):
        missed = unanswered[name, url]
        line = Text.assemble(
            _printable(name or url), ("  " + _printable(url) if name and url else "", "cyan")
        )
        line.append(f"  {missed} unanswered" if missed else "", "yellow")
        grid.add_row(str(count), line)
    return _section("Most asked APIs", grid, len(asked), limit)


def _errors(insights: Insights, limit: int | None) -> list[RenderableType]:
    grid = _grid(1)
    for error_count in insights.errors[:limit]:
        line = _single_line(error_count.error)
        line.append("".join(f"  {_printable(text)}" for text in error_count.messages), "dim")
        grid.add_row(str(error_count.questions), line)
    return _section("Errors named in questions", grid, len(insights.errors), limit)


def _feedback(insights: Insights, limit: int | None) -> list[RenderableType]:
    grid = _grid(1)
    for rated in insights.feedback[:limit]:
        grid.add_row("+" if rated.score > 0 else "-", Group(*_rating_lines(rated)))
    helped = sum(rated.score > 0 for rated in insights.feedback)
    heading = f"Feedback: {helped} helped, {len(insights.feedback) - helped} did not"
    return _section(heading, grid, len(insights.feedback), limit)


def _rating_lines(rated: RatedAnswer) -> list[Text]:
    footer = f"{rated.asked_at:%m-%d}  confidence {rated.confidence}"
    lines = [_single_line(rated.question, "bold" if rated.score < 0 else "")]
    if rated.comment:
        lines.append(Text(_printable(rated.comment)))
    return [*lines, Text(footer, style="dim")]


SECTIONS: dict[TableName, Callable[[Insights, int | None], Sequence[RenderableType]]] = {
    "byType": _types,
    "gaps": _gaps,
    "byApi": _apis,
    "errors": _errors,
    "feedback": _feedback,
}


def _section(title: str, grid: Table, count: int, limit: int | None) -> list[RenderableType]:
    """Return a section: its heading, its rows, and the number of rows that are not printed."""
    lines: list[RenderableType] = [
        _heading(title),
        grid if count else _indented(Text("none", "dim")),
    ]
    if limit and count > limit:
        lines.append(_indented(Text(f"{count - limit} more", style="dim")))
    return lines


def _grid(columns: int) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", min_width=7)
    for _ in range(columns):
        grid.add_column()
    return grid


def _heading(text: str) -> Text:
    return Text(text, style="bold underline")


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 4), expand=False)


def _single_line(text: str, style: str = "") -> Text:
    return Text(_printable(text), style=style, no_wrap=True, overflow="ellipsis")


def _printable(text: str) -> str:
    """Return `text` on one line without control characters, because it comes from users."""
    characters = (character if character.isprintable() else " " for character in text)
    return " ".join("".join(characters).split())


def _scale(value: int, largest: int, length: int) -> int:
    """Return the length of the bar for `value`, at least 1.

    The bar for `largest` has the length `length`.
    """
    return max(1, round(length * value / largest))
