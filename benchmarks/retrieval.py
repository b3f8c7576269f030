"""Measures the quality and speed of retrieval; writes docs/explanation/retrieval.md.

    python -m benchmarks.retrieval [--data ../shared/data/retrieval] [--corpora ../shared/data]

Quality is measured with questions about the samples and with public sets. Each set is measured by every
route (full text, dense and hybrid), with three scripted embeddings: a meaningless, a mediocre and a good
one. Both parts of the developers' question sets are measured by full text. Speed is measured with 10,000
chunks in an embedded store.

The exit code is 1 if, for any set and embedding, the hit@5 of hybrid retrieval is more than `TOLERANCE`
below that of the better of its two routes.
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
    help="Folder of public sets; sets that are not in it are skipped.",
)
@click.option(
    "--corpora",
    type=click.Path(path_type=Path, file_okay=False),
    default=CORPORA,
    help="Folder of the documents that the developers' questions are about.",
)
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default=DOCUMENT,
    help="Markdown file that the figures are written to, between its markers.",
)
@click.option(
    "--sections",
    default=SECTIONS,
    show_default=True,
    help="Number of sections in the speed measurement.",
)
def main(data: Path, corpora: Path, document: Path, sections: int) -> None:
    """Measure, print the results and write them into the documentation."""
    tell = partial(click.echo, err=True)
    around_markers(document)  # fails early if the markers are missing
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
    """Write `text` between the markers of `document`, and the plots into the folder `../images`."""
    images = document.parent / "../images"
    images.mkdir(exist_ok=True)
    for each in plotted_results(measured):
        plot_recall(each.evaluation, images / figure_name(each.name))
    write_between_markers(document, text)


if __name__ == "__main__":
    main()
