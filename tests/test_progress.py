"""The progress of an ingestion run where output is not a terminal."""

from datetime import UTC, datetime
from io import StringIO

from rich.console import Console

from app.telemetry.progress import LINE_INTERVAL_S, _LineDisplay, progress_line
from schemas.ingestion import IngestionOptions, IngestionRun, SourceReport


def test_a_line_names_documents_chunks_rate_and_time_left() -> None:
    sources = [
        SourceReport(name="guides", expected=100, documents=100, chunks=500),
        SourceReport(name="apis", expected=1_100, documents=100, chunks=1_500),
    ]
    line = progress_line(sources, elapsed_s=20)
    assert line == "200 documents, 2,000 chunks, 100 chunks/s, about 0:01:40 left for apis"


def test_time_left_is_omitted_while_the_number_of_files_is_unknown() -> None:
    line = progress_line([SourceReport(name="apis", documents=10, chunks=50)], elapsed_s=5)
    assert line == "10 documents, 50 chunks, 10 chunks/s"


def test_lines_are_printed_at_intervals() -> None:
    output, now = StringIO(), 0.0
    display = _LineDisplay(Console(file=output), clock=lambda: now)
    run = IngestionRun(
        id="1",
        trigger="command",
        options=IngestionOptions(),
        started_at=datetime.now(UTC),
        host="localhost",
        pid=1,
        sources=[SourceReport(name="guides", expected=1_000)],
    )
    for second in range(26):
        now = float(second)
        run.sources[0].documents = run.sources[0].chunks = second
        display.show(run)
    lines = output.getvalue().splitlines()
    assert lines[0] == "reading guides …"
    assert [line.partition(" ")[0] for line in lines[1:]] == ["10", "20"]
    assert LINE_INTERVAL_S == 10
