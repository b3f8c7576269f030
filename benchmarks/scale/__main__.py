"""Measures apidesk with the documents of large platforms, in one run on one machine.

    python -m benchmarks.scale [--sizes 1000,10000,50000] [--quick] [--no-peers] [--document FILE]

Writes the section "Large platforms" of docs/explanation/performance.md, or only prints it with --quick
or --no-peers. The peers' virtual environment is created if it is missing.
"""

import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from benchmarks.document import around_markers, write_between_markers
from benchmarks.performance.__main__ import missing_peers
from benchmarks.performance.systems import one_thread
from benchmarks.retrieval_sets import ROOT
from benchmarks.scale.effort import QUICK, QUICK_SIZES, SIZES, THOROUGH, Effort
from benchmarks.scale.peers import SystemRetrieval, measure_retrieval
from benchmarks.scale.report import Results, report
from benchmarks.scale.servers import measure
from benchmarks.scale.stores import Store, build_store

DOCUMENT = ROOT / "docs" / "explanation" / "performance.md"
MARKER = "large platforms"


class _Sizes(click.ParamType[tuple[int, ...]]):
    """Comma-separated numbers of chunks, at least two."""

    name = "sizes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            sizes = tuple(sorted({int(part) for part in str(value).split(",")}))
        except ValueError:
            self.fail(f"{value} is not a list of numbers", param, ctx)
        if len(sizes) < 2 or sizes[0] < 1:
            self.fail("two different sizes are needed: ratios compare them", param, ctx)
        return sizes


@click.command()
@click.option(
    "--sizes", type=_Sizes(), default=None, help="Numbers of chunks, such as 1000,10000,50000."
)
@click.option("--quick", is_flag=True, help="Measure small sizes once, as a test of this command.")
@click.option(
    "--peers/--no-peers",
    "with_peers",
    default=True,
    help="Whether to measure other frameworks too.",
)
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    default=DOCUMENT,
    help="Markdown file that the figures are written to, between its markers.",
)
def main(sizes: tuple[int, ...] | None, quick: bool, with_peers: bool, document: Path) -> None:
    """Measure, print the results and write them into the documentation."""
    around_markers(document, MARKER)  # fails early if the markers are missing
    one_thread()
    missing = missing_peers() if with_peers else "they were left out."
    effort = QUICK if quick else THOROUGH
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stores = [_build(folder, size) for size in sizes or (QUICK_SIZES if quick else SIZES)]
        servings = measure(stores, effort, folder)
        systems = [] if missing else _measure_retrieval(stores[-1], effort)
    results = Results(
        command=_command(sizes),
        day=datetime.now(UTC).date(),
        cores=os.cpu_count() or 1,
        servings=servings,
        systems=systems,
        missing=missing,
    )
    text = report(results)
    if with_peers and not quick:
        write_between_markers(document, text, MARKER)
    click.echo(text)


def _build(folder: Path, size: int) -> Store:
    began = time.monotonic()
    store = build_store(folder / str(size), size)
    _tell(f"{store.chunks:,} chunks indexed: {time.monotonic() - began:.0f} s")
    return store


def _measure_retrieval(store: Store, effort: Effort) -> list[SystemRetrieval]:
    began = time.monotonic()
    systems = measure_retrieval(store, effort)
    _tell(f"peers measured: {time.monotonic() - began:.0f} s")
    return systems


def _command(sizes: tuple[int, ...] | None) -> str:
    if sizes is None:
        return "make bench-scale"
    return f"python -m benchmarks.scale --sizes {','.join(map(str, sizes))}"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
