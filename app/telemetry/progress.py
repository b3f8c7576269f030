"""Shows the progress of ingestion runs and evaluations on stderr, and prints the result of a run.

The progress of an ingestion run is shown as bars on a terminal and as lines elsewhere. The server and the
command line use this module.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from ingestion.job import ProgressCallback
from schemas.ingestion import IngestionRun, SourceReport

LINE_INTERVAL_S = 10.0
"""Seconds between two lines of progress if the output is not a terminal."""


@contextmanager
def ingestion_progress(summary: bool = True) -> Iterator[ProgressCallback]:
    """Yield a callback that shows the progress of a run.

    If `summary` is true, the counts of the run are printed at the end of the block, except after an error.
    """
    console = Console(stderr=True, highlight=False)
    display = _BarDisplay(console) if console.is_terminal else _LineDisplay(console)
    with display:
        yield display.show
    if summary and display.last is not None:
        print_run_table(display.last, console)


class _LineDisplay:
    """Prints a line when a source starts, and a line of progress every `LINE_INTERVAL_S` seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.last: IngestionRun | None = None
        self._console = console
        self._clock = clock
        self._began_at = self._printed_at = clock()
        self._started: set[str] = set()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, run: IngestionRun) -> None:
        """Print each new source, and a line of progress every LINE_INTERVAL_S seconds."""
        self.last = run
        for source in run.sources:
            if source.name not in self._started:
                self._started.add(source.name)
                self._console.print(f"reading {source.name} …")
        if run.sources and self._clock() - self._printed_at >= LINE_INTERVAL_S:
            self._printed_at = self._clock()
            line = progress_line(run.sources, self._printed_at - self._began_at)
            self._console.print(line, soft_wrap=True)


class _BarDisplay(_LineDisplay):
    """Shows a bar per source, which pulses while the number of documents is not known."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        columns = (
            TextColumn("reading {task.description}"),
            BarColumn(),
            TextColumn("{task.completed} documents"),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> None:
        self._progress.start()

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, run: IngestionRun) -> None:
        """Add a bar for each new source, and update the bars."""
        self.last = run
        for source in run.sources:
            if source.name not in self._tasks:
                self._tasks[source.name] = self._progress.add_task(source.name, total=None)
            self._progress.update(
                self._tasks[source.name], completed=source.documents, total=source.expected
            )


def progress_line(sources: Sequence[SourceReport], elapsed_s: float) -> str:
    """Return a line with the progress of a run.

    Example: `40 documents, 200 chunks, 10 chunks/s, about 0:00:30 left for apis`. The time left is omitted
    if it cannot be estimated.
    """
    documents = sum(source.documents for source in sources)
    chunks = sum(source.chunks for source in sources)
    line = f"{documents:,} documents, {chunks:,} chunks, {chunks / elapsed_s:.0f} chunks/s"
    expected, done = sources[-1].expected, sources[-1].documents
    if expected and 0 < done < expected:
        left_s = (expected - done) * elapsed_s / documents
        line += f", about {timedelta(seconds=round(left_s))} left for {sources[-1].name}"
    return line


QuestionProgress = Callable[[int, int], None]
"""A callback that receives the number of finished questions and the total number."""


@contextmanager
def question_progress() -> Iterator[QuestionProgress]:
    """Yield a callback that shows the number of finished questions, but only on a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("asking"), BarColumn(), TextColumn("{task.completed} of {task.total}"))
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        task = bars.add_task("asking", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def print_run_table(run: IngestionRun, console: Console) -> None:
    """Print counts and notes of each source, refused documents, refused deletions, and the duration.

    The duration of a failed run is not printed.
    """
    counts = ("documents", "added", "changed", "unchanged", "deleted", "kept", "chunks", "written")
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("source")
    for name in counts:
        table.add_column(name, justify="right")
    for source in run.sources:
        numbers = [getattr(source, name) for name in counts]
        table.add_row(source.name, *map(str, numbers))
    if run.sources:
        console.print(table)
    for source in run.sources:
        _print_notes(source, console)
    for line in run.refused:
        console.print(Text(f"refused  {line}", style="yellow"), soft_wrap=True)
    if run.state in ("succeeded", "partial"):
        duration = f"{run.seconds:.1f} s"
        is_dry_run = run.options.dry_run
        console.print(
            f"compared in {duration}; nothing was written" if is_dry_run else f"done in {duration}"
        )


def _print_notes(source: SourceReport, console: Console) -> None:
    if source.operations:
        noun = "API operation" if source.operations == 1 else "API operations"
        console.print(f"{source.name}: {source.operations} {noun} on the pages read in this run")
    for line in source.warnings:
        console.print(Text(f"{source.name}: {line}", style="yellow"), soft_wrap=True)
    if source.empty:
        names = ", ".join(source.empty)
        console.print(f"{source.name}: files without a body: {names}", soft_wrap=True)
