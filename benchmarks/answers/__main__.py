"""Measures retrieval and answers on the question sets, without a model.

    python -m benchmarks.answers --part work [--set NAME ...] [--retrieval-only] [--details FILE]

The documents of real platforms are not in the repository. A set whose documents are missing is skipped.
Indexes are stored in the folder of --cache, and built again after a change of the code or the documents.
"""

import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from benchmarks.answers.report import document_text, tables
from benchmarks.answers.run import OFF_TOPIC, measure_part
from benchmarks.answers.sets import PARTS, SETS, Part
from benchmarks.document import around_markers, write_between_markers
from benchmarks.retrieval_sets import ROOT

DATA = ROOT.parent / "shared" / "data"
CACHE = Path(tempfile.gettempdir(), "apidesk-benchmarks")


@click.command()
@click.option("--part", type=click.Choice([*PARTS, "both"]), default="work", show_default=True)
@click.option(
    "--set",
    "names",
    type=click.Choice([*SETS, OFF_TOPIC]),
    multiple=True,
    help="Measure only this set; may be repeated.",
)
@click.option("--retrieval-only", is_flag=True, help="Measure retrieval without answers.")
@click.option(
    "--details",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a JSON object per question to this file, to see why a question fails.",
)
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Markdown file that the figures of both parts are written to, between its markers.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=DATA,
    help="Folder of the documents that the sets ask about.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    default=CACHE,
    show_default=True,
    help="Folder for indexes.",
)
def main(
    part: Part | Literal["both"],
    names: Sequence[str],
    retrieval_only: bool,
    details: Path | None,
    document: Path | None,
    data: Path,
    cache: Path,
) -> None:
    """Measure and print the figures of each set and of all sets together."""
    if details and part != "work":
        raise click.UsageError(
            "--details requires --part work: do not read the details of the measuring part"
        )
    if document:
        if part != "both" or names or retrieval_only:
            raise click.UsageError("--document requires --part both, all sets and answers")
        around_markers(document)  # a missing marker raises now, not after minutes of work
    tell = partial(click.echo, err=True)
    with ExitStack() as stack:
        file = stack.enter_context(details.open("w", encoding="utf-8")) if details else None

        def on_detail(detail: dict[str, Any]) -> None:
            if file:
                file.write(json.dumps(detail, ensure_ascii=False) + "\n")

        measured = [
            measure_part(
                each,
                names or (*SETS, OFF_TOPIC),
                data,
                cache,
                on_detail,
                retrieval_only=retrieval_only,
                tell=tell,
            )
            for each in (PARTS if part == "both" else (part,))
        ]
    if document:
        write_between_markers(document, document_text(measured))
    click.echo("\n\n".join(map(tables, measured)))


if __name__ == "__main__":
    main()
