"""Measures the quality and speed of retrieval; writes docs/explanation/retrieval.md.

    python -m benchmarks.retrieval [--data ../shared/data/retrieval] [--corpora ../shared/data]

Quality: the samples' own questions and public sets, by every route, each with three scripted embeddings,
one meaningless, one mediocre and one good. Questions of developers with the facts that answer them: both
parts, by full text. Speed: 10,000 chunks, embedded. Exits with 1 if both routes
fused find less than the better one alone.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from app.analytics.plots import plot_recall
from benchmarks.answers.run import measure_part
from benchmarks.answers.sets import PARTS, SETS
from benchmarks.document import around_markers, write_between_markers
from benchmarks.retrieval_quality import Measured, measure_sets
from benchmarks.retrieval_report import figure_name, plotted_results, report
from benchmarks.retrieval_sets import ROOT, missing_sets, public_sets, sample_set
from benchmarks.retrieval_speed import SECTIONS, measure_speed

CORPORA = ROOT.parent / "shared" / "data"
DATA = CORPORA / "retrieval"
DOCUMENT = ROOT / "docs" / "explanation" / "retrieval.md"


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=DATA,
    help="Folder of public sets; without it the samples alone are measured.",
)
@click.option(
    "--corpora",
    type=click.Path(path_type=Path, file_okay=False),
    default=CORPORA,
    help="Folder of the documents that the questions of developers ask about.",
)
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default=DOCUMENT,
    help="Markdown file that the figures are written to, between its markers.",
)
@click.option("--sections", default=SECTIONS, show_default=True, help="Sections to time.")
def main(data: Path, corpora: Path, document: Path, sections: int) -> None:
    """Measure, print the results and write them into the documentation."""
    tell = partial(click.echo, err=True)
    around_markers(document)  # before minutes of work
    missing = missing_sets(data)
    if missing:
        tell(f"left out, not in {data}: {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sets = [sample_set(), *public_sets(data, folder / "sets")]
        measured = list(measure_sets(sets, tell))
        developers = [
            measure_part(part, SETS, corpora, folder / "cache", retrieval_only=True, tell=tell)
            for part in PARTS
        ]
        tell(f"timing over {sections:,} sections")
        speeds = measure_speed(folder / "speed", sections)
    text = report(measured, developers, speeds, missing, os.cpu_count() or 1)
    write_document(document, text, measured)
    click.echo(text)
    sys.exit(any(each.loses for each in measured))


def write_document(document: Path, text: str, measured: Sequence[Measured]) -> None:
    """Write `text` between the markers of `document`, its figures to `../images`."""
    images = document.parent / "../images"
    images.mkdir(exist_ok=True)
    for each in plotted_results(measured):
        plot_recall(each.evaluation, images / figure_name(each.name))
    write_between_markers(document, text)


if __name__ == "__main__":
    main()
