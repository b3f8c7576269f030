"""Measures every speed target, compared with other systems, in one run on one machine.

    python -m benchmarks.performance [--only load --only start] [--quick]

Writes docs/explanation/performance.md. With --only, --quick or --no-peers, the results are only printed.
The peers' virtual environment is created if it is missing; if that fails, the report says that the peers
were not measured.
"""

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from subprocess import CalledProcessError

import click

from benchmarks.document import around_markers, write_between_markers
from benchmarks.peers.environment import PEERS, python
from benchmarks.performance.effort import QUICK, THOROUGH
from benchmarks.performance.plots import draw
from benchmarks.performance.report import Conditions, report, target_table
from benchmarks.performance.subjects import SUBJECTS, site
from benchmarks.performance.systems import one_thread
from benchmarks.retrieval_sets import ROOT

DOCUMENT = ROOT / "docs" / "explanation" / "performance.md"


@click.command()
@click.option(
    "--only",
    type=click.Choice(list(SUBJECTS)),
    multiple=True,
    help="Measure only this subject; may be repeated.",
)
@click.option("--quick", is_flag=True, help="Measure everything once, as a test of this command.")
@click.option(
    "--peers/--no-peers", "with_peers", default=True, help="Whether to measure other systems too."
)
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default=DOCUMENT,
    help="Markdown file that the figures are written to, between its markers.",
)
def main(only: Sequence[str], quick: bool, with_peers: bool, document: Path) -> None:
    """Measure, print the results and write them into the documentation."""
    tell = partial(click.echo, err=True)
    around_markers(document)  # fails early if the markers are missing
    one_thread()
    missing = missing_peers() if with_peers else "they were left out."
    peers = () if missing else PEERS
    results = []
    with site(QUICK if quick else THOROUGH, peers) as found:
        for name in only or SUBJECTS:
            began = time.monotonic()
            results.append(SUBJECTS[name](found))
            tell(f"{name}: {time.monotonic() - began:.0f} s")
            tell(target_table(list(results[-1].rows())))
        text = report(results, Conditions(os.cpu_count() or 1, found.corpus.count, missing))
    if with_peers and not (only or quick):
        for result in results:
            draw(result, document.parent / "../images")
        write_between_markers(document, text)
    click.echo(text)


def missing_peers() -> str:
    """Create the peers' environment if needed; return why peers cannot be measured, or an empty text."""
    try:
        python()
    except CalledProcessError:
        return "their packages could not be installed."
    return ""


if __name__ == "__main__":
    main()
