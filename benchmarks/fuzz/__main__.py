"""Fuzzes two servers with schemathesis, with every check and phase.

    python -m benchmarks.fuzz [--examples 1000]

Writes a section of docs/explanation/reliability.md. The exit code is 1 if a check failed or a server logged
a stack trace.
"""

import sys
from datetime import date
from pathlib import Path

import click

from benchmarks.document import around_markers, write_between_markers
from benchmarks.fuzz.report import report
from benchmarks.fuzz.run import SERVER_KINDS, fuzz
from benchmarks.retrieval_sets import ROOT

DOCUMENT = ROOT / "docs" / "explanation" / "reliability.md"

MARKERS = "fuzz"


@click.command()
@click.option(
    "--examples", default=1_000, show_default=True, help="Maximum number of examples per operation."
)
@click.option("--seed", type=int, help="Seed of an earlier run, to repeat it.")
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default=DOCUMENT,
    help="Markdown file that the figures are written to, between its markers.",
)
def main(examples: int, seed: int | None, document: Path) -> None:
    """Run schemathesis, print the findings and write the results into the documentation."""
    around_markers(document, MARKERS)  # fails early if the markers are missing
    found = [fuzz(server_kind, examples, seed) for server_kind in SERVER_KINDS]
    text = report(found, examples, date.today())
    write_between_markers(document, text, MARKERS)
    click.echo(text)
    sys.exit(any(each.failures for each in found))


if __name__ == "__main__":
    main()
