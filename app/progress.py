"""The progress of an ingestion: a live line on a terminal, plain lines elsewhere. On stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from ingestion.sync import Progress, Report


@contextmanager
def ingestion_progress() -> Iterator[Progress]:
    """A callback that shows each report it is given, and the whole when the block ends well."""
    console = Console(stderr=True, highlight=False)
    started = time.monotonic()
    last = Report()
    shown: set[str] = set()
    with console.status("indexing …") as status:

        def show(report: Report) -> None:
            nonlocal last
            last = report
            source = next(reversed(report.documents))
            if console.is_terminal:
                status.update(f"indexing {_line(report, source)}")
            elif source not in shown:
                console.print(f"indexing {source} …")
            shown.add(source)

        yield show
    for source in last.documents:
        console.print(f"indexed {_line(last, source)}")
    if last.documents:
        console.print(f"done in {time.monotonic() - started:.1f} s")


def _line(report: Report, source: str) -> str:
    return f"{source}: {report.documents[source]} documents, {report.chunks[source]} chunks"
