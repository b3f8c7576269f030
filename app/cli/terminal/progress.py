"""Progress on stderr: a bar a source or plain lines for an ingestion, a bar for questions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from app.cli.terminal.printing import print_run
from schemas.ingestion import IngestionRun

OnProgress = Callable[[IngestionRun], None]


@contextmanager
def ingestion_progress(summary: bool = True) -> Iterator[OnProgress]:
    """A callback that shows each run it is given; with `summary` the whole, when the block ends well."""
    console = Console(stderr=True, highlight=False)
    shown = _Bars(console) if console.is_terminal else _Lines(console)
    with shown:
        yield shown.show
    if summary and shown.last is not None:
        print_run(shown.last, console)


class _Lines:
    """A line when a source begins."""

    def __init__(self, console: Console) -> None:
        self.last: IngestionRun | None = None
        self._console = console
        self._begun: set[str] = set()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, run: IngestionRun) -> None:
        """Take note of `run`, and show what is new in it."""
        self.last = run
        for source in run.sources:
            if source.name not in self._begun:
                self._begun.add(source.name)
                self._begin(source.name)

    def _begin(self, source: str) -> None:
        self._console.print(f"reading {source} …")


class _Bars(_Lines):
    """A bar a source, over its documents; it only moves where nobody knows how many there are."""

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
        """Move the bars to where `run` is."""
        super().show(run)
        for source in run.sources:
            self._progress.update(
                self._tasks[source.name], completed=source.documents, total=source.expected
            )

    def _begin(self, source: str) -> None:
        self._tasks[source] = self._progress.add_task(source, total=None)


@contextmanager
def question_progress() -> Iterator[Callable[[int, int], None]]:
    """A callback that shows how many questions of how many are done; only on a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("asking"), BarColumn(), TextColumn("{task.completed} of {task.total}"))
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        task = bars.add_task("asking", total=None)
        yield lambda done, count: bars.update(task, completed=done, total=count)
