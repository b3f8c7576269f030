"""Soak test: runs clients, ingestions, a failing model and restarts of Milvus at once for some minutes.

    python -m benchmarks.soak [--minutes 10 --clients 50]

Writes a section of docs/explanation/reliability.md. The exit code is 1 if a condition does not hold, for
example if an answer was wrong or a record was lost.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import click

from benchmarks.document import around_markers, write_between_markers
from benchmarks.retrieval_sets import ROOT
from benchmarks.soak.clients import Client, ClientLog
from benchmarks.soak.processes import (
    MemorySample,
    Site,
    keep_indexing,
    record_memory,
    restart_milvus,
    running_site,
)
from benchmarks.soak.report import FIGURE, draw, report
from benchmarks.soak.result import Result

DOCUMENT = ROOT / "docs" / "explanation" / "reliability.md"

RESTARTS = (0.35, 0.7)
"""Times of the restarts of Milvus, as shares of the duration."""

SETTLE_TIME_S = 10
"""Seconds after the end within which the records of the last questions must be stored."""

MAX_PRINTED_FAILURES = 10
"""Maximum number of printed failures per kind."""


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="Duration.")
@click.option("--clients", default=50, show_default=True, help="Number of clients.")
@click.option("--failing", default=0.05, show_default=True, help="Share of model calls that fail.")
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default=DOCUMENT,
    help="Markdown file that the figures are written to, between its markers.",
)
def main(minutes: float, clients: int, failing: float, document: Path) -> None:
    """Run the soak test, print the failures and write the results into the documentation."""
    around_markers(document)  # fails early if the markers are missing
    with tempfile.TemporaryDirectory() as name, running_site(Path(name), failing) as site:
        result = asyncio.run(soak(site, minutes, clients))
    draw(result, document.parent / "../images" / FIGURE)
    text = report(result, os.cpu_count() or 1)
    write_between_markers(document, text)
    click.echo(text)
    for outcome in ("wrong", "failed"):
        details = [f"{e.kind}: {e.detail}" for e in result.asked if e.outcome == outcome]
        click.echo("\n".join(details[:MAX_PRINTED_FAILURES]), err=True)
    sys.exit(bool(result.failures))


async def soak(site: Site, minutes: float, clients: int) -> Result:
    """Run clients, ingestions and restarts at once for some minutes, and return the result."""
    began = time.monotonic()
    end = began + 60 * minutes
    record, memory = ClientLog(), list[MemorySample]()

    def over() -> bool:
        return time.monotonic() > end

    await asyncio.gather(
        keep_indexing(site, over),
        restart_milvus(site, [began + 60 * minutes * share for share in RESTARTS]),
        record_memory(site, memory, over),
        *(
            Client(number, site.server.url, site.documents, record).run(over)
            for number in range(clients)
        ),
    )
    stored_turns = await asyncio.to_thread(site.turns)
    unrecorded = await _unrecorded_answers(site, record.answers)
    refused = [e for e in record.asked if e.outcome == "store unavailable"]
    return Result(
        minutes=minutes,
        clients=clients,
        began=began,
        asked=record.asked,
        runs=site.runs,
        restarts=len(site.outages),
        weights=memory,
        model=site.model.stop(),
        remembered=len(record.turns),
        lost=len(set(record.turns) - stored_turns),
        kept=len(record.answers),
        unkept=len(unrecorded),
        untimely=sum(not site.is_milvus_down(e.at, e.at + e.seconds) for e in refused),
        stacks=site.server.log.count("Traceback"),
    )


async def _unrecorded_answers(site: Site, answers: set[str]) -> set[str]:
    """Return the ids of the `answers` whose questions were not recorded in time."""
    for _ in range(SETTLE_TIME_S):
        missing = answers - await asyncio.to_thread(site.questions)
        if not missing:
            break
        await asyncio.sleep(1)
    return missing


if __name__ == "__main__":
    main()
