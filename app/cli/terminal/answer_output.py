"""Prints answers and retrieved chunks on the terminal."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rich import markdown
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from app.api.markdown import warning_sentences
from prompts.user_text import user_text
from runnables.answer_events import StreamedAnswer
from schemas.answer import FOOTER_FIELDS, Answer, Event, EventSink, Source

PIPED_WIDTH = 10_000
"""Width of the console if stderr is not a terminal, in characters, so that URLs stay on one line."""


class _FoldingTable(markdown.TableElement):
    """A table that wraps long words in its cells.

    Rich truncates long words. Chinese has no spaces, so whole sentences would be cut off.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for item in super().__rich_console__(console, options):
            for column in item.columns if isinstance(item, Table) else ():
                column.overflow = "fold"
            yield item


class Markdown(markdown.Markdown):
    """Rich's Markdown with tables that wrap long words."""

    elements = {**markdown.Markdown.elements, "table_open": _FoldingTable}  # noqa: RUF012


def print_answer(answer: Answer) -> None:
    """Print an answer on stdout, with its introduction, steps, sources, related pages and notes."""
    labels = user_text(answer.language).answer
    console = Console(highlight=False)
    console.print(Text(answer.introduction, style="dim"))
    console.print()
    print_steps(answer, console)
    sources = [Text(f"[{source.number}] {source_heading(source)}") for source in answer.sources]
    _print_list(console, labels.sources, sources)
    _print_list(console, labels.related, [Text(url, style="cyan") for url in answer.related_url])
    print_notes(answer, console)


def print_steps(answer: Answer, console: Console) -> None:
    """Print the steps of an answer, without adding numbers.

    If the steps are a procedure, their texts already begin with numbers. If the output is not a terminal,
    the Markdown is printed as it is: lines are not wrapped, and links keep their URLs.
    """
    text = "\n\n".join(answer.answer)
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        console.print(Text(text), soft_wrap=True)


def print_notes(answer: Answer, console: Console) -> None:
    """Print the suggested pages (`nearest`), the warnings, and how the answer was produced."""
    nearest = [Text.assemble(f"{page.title}  ", (page.page_url, "cyan")) for page in answer.nearest]
    _print_list(console, user_text(answer.language).answer.nearest, nearest)
    console.print()
    for warning in warning_sentences(answer):
        console.print(Text(warning, style="yellow"), soft_wrap=True)
    console.print(Text(_footer(answer), style="dim"), soft_wrap=True)


def _print_list(console: Console, heading: str, lines: Sequence[Text]) -> None:
    if lines:
        console.print()
        console.print(Text(heading, style="bold"))
    for line in lines:
        console.print(Text.assemble("  ", line), soft_wrap=True)


def _footer(answer: Answer) -> str:
    """Return the line with the FOOTER_FIELDS and the duration of the answer.

    The confidence is left out if there are no sources. The type `unknown` is left out if the answer
    suggests pages: the question may then be on topic, but its type would be shown as "off topic".
    """
    labels = user_text(answer.language).answer.fields
    is_uncovered = answer.type == "unknown" and bool(answer.nearest)
    is_omitted = {"type": is_uncovered, "confidence": not answer.sources}
    names = [name for name in FOOTER_FIELDS if not is_omitted.get(name)]
    values = [(labels.get(name, ""), _footer_value(answer, name)) for name in names]
    parts = [f"{label} {value}".strip() for label, value in values if value]
    return " · ".join([*parts, f"{answer.timings.get('total', 0)} ms"])


def _footer_value(answer: Answer, name: str) -> str:
    """Return the value of a field as the question page shows it; empty if there is nothing to show.

    Values such as `low` and `api_call` are shown in the language of the answer.
    """
    value = getattr(answer, name)
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return user_text(answer.language).page.get(str(value), str(value))


def print_retrieved(sources: list[Source], console: Console | None = None) -> None:
    """Print the score, page and section of each chunk, on stderr if no console is given."""
    if console is None:
        console = Console(stderr=True, highlight=False)
        if not console.is_terminal:
            console.width = PIPED_WIDTH
    table = Table("#", "score", "page", "section", box=None, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    for source in sources:
        page = Group(Text(source.title), Text(source.page_url, style="dim"))
        table.add_row(str(source.number), f"{source.score:.3f}", page, source.section)
    console.print(table)


def source_heading(source: Source) -> str:
    """Return the titles of the page and the section."""
    return " > ".join(part for part in (source.title, source.section) if part)


@asynccontextmanager
async def live_answer() -> AsyncIterator[EventSink | None]:
    """Yield an event sink that shows the steps of an answer on stderr, or None if stderr is not a terminal.

    The output disappears when the block ends.
    """
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield None
        return
    streamed = StreamedAnswer()

    def render() -> Group:
        return Group(Markdown("\n\n".join(streamed.texts)), Spinner("dots"))

    with Live(render(), console=console, transient=True, refresh_per_second=8) as live:

        async def show(event: Event) -> None:
            streamed.apply(event)
            live.update(render(), refresh=True)

        yield show
