"""Measures retrieval and answers on the question sets, without a model.

    python -m benchmarks.answers --part work [--set NAME ...] [--retrieval-only] [--details FILE]

The documents that the sets ask about are not in the repository; a set without its documents is left out.
Indexes are kept in the folder of --cache and built again after a change of the code or the documents.
"""

import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click

from app.analytics.evaluation.answer_result import AnswerResult
from benchmarks.answers.report import Scored, tables
from benchmarks.answers.run import OffTopic, OnDetail, measure_off_topic, measure_set
from benchmarks.answers.sets import PARTS, SETS, Part, is_available
from benchmarks.retrieval_sets import ROOT

DATA = ROOT.parent / "shared" / "data"
OFF_TOPIC = "offtopic"
CACHE = Path(tempfile.gettempdir(), "apidesk-benchmarks")


@click.command()
@click.option("--part", type=click.Choice(PARTS), default="work", show_default=True)
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
    help="File for a JSON object per question, to read why one fails.",
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
    part: Part,
    names: Sequence[str],
    retrieval_only: bool,
    details: Path | None,
    data: Path,
    cache: Path,
) -> None:
    """Measure and print the figures of each set and of all."""
    with ExitStack() as stack:
        file = stack.enter_context(details.open("w", encoding="utf-8")) if details else None

        def on_detail(detail: dict[str, Any]) -> None:
            if file:
                file.write(json.dumps(detail, ensure_ascii=False) + "\n")

        results, off_topic = measure(
            part, names or (*SETS, OFF_TOPIC), data, cache, on_detail, retrieval_only
        )
    click.echo(tables(Scored.of(results) if results else None, off_topic))


def measure(
    part: Part,
    names: Sequence[str],
    data: Path,
    cache: Path,
    on_detail: OnDetail = lambda detail: None,
    retrieval_only: bool = False,
) -> tuple[dict[str, list[AnswerResult]], OffTopic | None]:
    """Measure the sets `names`, which may contain `offtopic`; report progress on stderr."""
    tell = partial(click.echo, err=True)
    results = {}
    for name in (name for name in names if name != OFF_TOPIC):
        if not is_available(name, data):
            tell(f"{name}: left out, its documents are not in {data}")
            continue
        started = time.monotonic()
        results[name] = measure_set(name, part, data, cache, on_detail, retrieval_only)
        tell(f"{name}: {len(results[name])} questions, {time.monotonic() - started:.0f} s")
    if OFF_TOPIC not in names or retrieval_only:
        return results, None
    return results, measure_off_topic(part, data, cache, on_detail)


if __name__ == "__main__":
    main()
