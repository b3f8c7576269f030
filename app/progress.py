"""The progress of an ingestion on stderr: a bar a source on a terminal, plain lines elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from ingestion.sync import Progress as OnProgress
from ingestion.sync import Report


@contextmanager
def ingestion_progress() -> Iterator[OnProgress]:
    """A callback that shows each report it is given, and the whole when the block ends well."""
    console = Console(stderr=True, highlight=False)
    shown = _Bars(console) if console.is_terminal else _Lines(console)
    with shown:
        yield shown.show
    shown.summarise()


class _Lines:
    """A line when a source begins."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = Report()
        self._begun: set[str] = set()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, report: Report) -> None:
        """Take note of `report`, and show what is new in it."""
        self._last = report
        for source in report.documents.keys() - self._begun:
            self._begun.add(source)
            self._begin(source)

    def summarise(self) -> None:
        """What was indexed, by source; nothing when nothing was."""
        report = self._last
        for source, documents in report.documents.items():
            chunks = report.chunks[source]
            self._console.print(f"indexed {source}: {documents} documents, {chunks} chunks")
        if report.documents:
            self._console.print(f"done in {report.seconds:.1f} s")

    def _begin(self, source: str) -> None:
        self._console.print(f"indexing {source} …")


class _Bars(_Lines):
    """A bar a source, over its files."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        columns = (TextColumn("indexing {task.description}"), BarColumn(), MofNCompleteColumn())
        self._progress = Progress(*columns, console=console, transient=True)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> None:
        self._progress.start()

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, report: Report) -> None:
        """Move the bars to where `report` is."""
        super().show(report)
        for source, task in self._tasks.items():
            self._progress.update(
                task, completed=report.documents[source], total=report.expected[source]
            )

    def _begin(self, source: str) -> None:
        self._tasks[source] = self._progress.add_task(source)
